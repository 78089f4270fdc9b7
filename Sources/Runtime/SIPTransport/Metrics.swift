import Platform
import SIP
import SIPDialogs

/// What the transport counts.
final class TransportMetrics: Sendable {
  /// Why something was dropped; the raw value is the metric label.
  enum Drop: String, CaseIterable, Sendable {
    /// From an address that is no trunk's.
    case stranger
    /// A TCP stream without message boundaries, or a message that came too slowly.
    case framing
    /// Too short for a message: keep-alives.
    case keepAlive = "keep_alive"
    /// More connections than allowed.
    case connectionLimit = "connection_limit"
    /// A connection was not taken because the process has no descriptor left.
    case descriptors
    /// The kernel's send buffer was full.
    case sendBuffer = "send_buffer"
    /// A peer that does not read.
    case slowReader = "slow_reader"
    /// A TLS handshake that was refused, or took too long.
    case handshake
    /// No listener of that protocol and address family.
    case noListener = "no_listener"
  }
  enum Failure: String, CaseIterable, Sendable { case udp, tcp, tls }

  let drops = LabelledCounters<Drop>()
  let failures = LabelledCounters<Failure>()
  let connections = Gauge()
  let messages = CounterTable(labelNames: ["direction", "transport", "kind"])

  func count(_ direction: String, _ transport: TransportProtocol, _ bytes: [UInt8]) {
    messages.counter(direction, transport.rawValue, Self.kind(bytes)).increment()
  }

  /// The method or the status code of a message, from its first line alone; `other` for what is neither.
  static func kind(_ bytes: [UInt8]) -> String {
    let line = bytes.prefix(16)
    if line.starts(with: "SIP/2.0 ".utf8) {
      let digits = line.dropFirst(8).prefix(3)
      guard digits.count == 3, digits.allSatisfy({ (48...57).contains($0) }), digits.first != 48 else { return "other" }
      return String(decoding: digits, as: UTF8.self)
    }
    let word = String(decoding: line.prefix { $0 != UInt8(ascii: " ") }, as: UTF8.self)
    return methods.contains(word) ? word : "other"
  }

  private static let methods = Set(Method.allCases.filter { $0 != .other }.map(\.name))

  var families: [MetricFamily] {
    [
      .counters("trunkline_sip_messages_total", "SIP messages by method or status code.", messages),
      .counters("trunkline_sip_dropped_total", "SIP traffic dropped by the transport, by reason.", label: "reason", drops),
      .counters(
        "trunkline_sip_transport_failures_total", "Messages whose peer could not be reached.", label: "transport", failures),
      .gauge("trunkline_sip_connections", "Open TCP connections of trunks.", connections),
    ]
  }
}
