import TrunklineBytes
import TrunklinePlatform

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What a peer reports while it runs: for people a line of text, for programs (`--events`) one JSON object a line.
public struct PeerEvent: Codable, Sendable {
  public var event: String
  /// Milliseconds since 1970, with microseconds as the fraction.
  public var at: Double
  public var fields: [String: String]

  public init(_ event: String, at instant: Instant? = nil, _ fields: [String: String] = [:]) {
    let age = instant.map { MonotonicClock.now() - $0 } ?? .zero
    self.event = event
    at = Double(WallClock.nowMicroseconds()) / 1000 - Double(age.nanoseconds) / 1e6
    self.fields = fields
  }

  /// An instant as milliseconds since 1970; empty for nil.
  static func wall(_ instant: Instant?) -> String { instant.map { number(PeerEvent("", at: $0).at) } ?? "" }

  /// Two decimals.
  static func number(_ value: Double) -> String {
    let hundredths = Int64((value * 100).rounded())
    let fraction = abs(hundredths % 100)
    return "\(hundredths / 100).\(fraction < 10 ? "0" : "")\(fraction)"
  }

  /// One JSON object without line breaks.
  public var line: String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
  }

  /// For people.
  public var text: String {
    ([event] + fields.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }).joined(separator: "  ")
  }
}
