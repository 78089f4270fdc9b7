import TrunklinePlatform
import TrunklineSIP
import TrunklineSIPDialogs

/// The rows of `messages` that were used before, found by numbers instead of three texts. One thread.
struct MessageCounts {
  enum Kind: Hashable {
    case code(Int)
    case method(Method)

    init(_ bytes: [UInt8]) {
      let line = bytes.prefix(16)
      if line.starts(with: "SIP/2.0 ".utf8) {
        let digits = line.dropFirst(8).prefix(3)
        let isCode = digits.count == 3 && digits.allSatisfy { (48...57).contains($0) } && digits.first != 48
        self = isCode ? .code(digits.reduce(0) { $0 * 10 + Int($1 - 48) }) : .method(.other)
        return
      }
      let word = line.prefix { $0 != UInt8(ascii: " ") }
      self = .method(Self.methods.first { word.elementsEqual($0.name) }?.method ?? .other)
    }

    /// The value of the metric's label.
    var name: String {
      switch self {
      case .code(let code): String(code)
      case .method(let method): method.name
      }
    }

    private static let methods = Method.allCases.filter { $0 != .other }.map { (method: $0, name: Array($0.name.utf8)) }
  }
  private struct Row: Hashable {
    var isOurs: Bool
    var transport: TransportProtocol
    var kind: Kind
  }
  private var rows: [Row: Counter] = [:]

  mutating func count(_ bytes: [UInt8], isOurs: Bool, _ transport: TransportProtocol, in table: CounterTable) {
    let row = Row(isOurs: isOurs, transport: transport, kind: Kind(bytes))
    if let counter = rows[row] { return counter.increment() }
    let counter = table.counter(isOurs ? "out" : "in", transport.rawValue, row.kind.name)
    rows[row] = counter
    counter.increment()
  }
}

final class TransportMetrics: Sendable {
  /// Why something was dropped; the raw value is the metric label.
  enum Drop: String, CaseIterable, Sendable {
    /// From an address of no trunk.
    case stranger
    /// More messages or connections of unlisted sources than allowed per second.
    case guestRate = "guest_rate"
    /// More connections of an address than allowed before it has authenticated.
    case guestLimit = "guest_limit"
    /// A connection that was closed or refused in favour of others: those without authentication have half of the table.
    case guestTable = "guest_table"
    /// A connection whose peer has not authenticated within its time or its number of messages.
    case unauthenticated
    /// More new connections per second than one address, or all of them, may make.
    case connectionRate = "connection_rate"
    /// TLS handshakes have used their CPU time of this second.
    case handshakeRate = "handshake_rate"
    /// A TLS hello on a listener without TLS.
    case tlsOnPlain = "tls_on_plain"
    /// A connection whose first bytes cannot begin a SIP message.
    case notSIP = "not_sip"
    /// A TCP stream without message boundaries, or a message that arrived too slowly.
    case framing
    /// Too short for a message: keep-alives.
    case keepAlive = "keep_alive"
    /// More connections than allowed.
    case connectionLimit = "connection_limit"
    /// A connection was not accepted because the process has no descriptor left.
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
  let guests = Gauge()
  let messages = CounterTable(labelNames: ["direction", "transport", "kind"])

  /// The method or the status code of a message, from its first line alone; `other` if it has neither.
  static func kind(_ bytes: [UInt8]) -> String {
    MessageCounts.Kind(bytes).name
  }

  var families: [MetricFamily] {
    [
      .counters("trunkline_sip_messages_total", help: "SIP messages by method or status code.", messages),
      .counters("trunkline_sip_dropped_total", help: "SIP traffic dropped by the transport, by reason.", label: "reason", drops),
      .counters(
        "trunkline_sip_transport_failures_total", help: "Messages whose peer could not be reached.", label: "transport", failures),
      .gauge("trunkline_sip_connections", help: "Open TCP connections of trunks.", connections),
      .gauge(
        "trunkline_sip_guest_connections", help: "TCP connections of unlisted peers that have not authenticated yet.", guests),
    ]
  }
}
