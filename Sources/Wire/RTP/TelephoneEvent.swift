/// One telephone-event payload (RFC 4733 §2.3): four octets.
@frozen public struct TelephoneEvent: Sendable, Equatable {
  /// 0–9, 10 `*`, 11 `#`, 12–15 A–D; others are not DTMF.
  public var event: UInt8
  public var isEnd: Bool
  /// Power as −dBm0, 0…63.
  public var volume: UInt8
  /// In units of the RTP clock since the packet's timestamp; 65535 at most per segment (§2.5.1.3).
  public var duration: UInt16

  public init(event: UInt8, isEnd: Bool, volume: UInt8, duration: UInt16) {
    (self.event, self.isEnd, self.volume, self.duration) = (event, isEnd, volume & 0x3f, duration)
  }

  public static let length = 4

  /// Events in a payload, at most `Limits.eventsPerPacket`. Each after the first begins where the one before it ends (§2.5.1.5).
  public static func count(in payload: Span<UInt8>) -> Int { min(payload.count / length, Limits.eventsPerPacket) }

  /// Reads the event block `index`; nil if it is incomplete. The reserved bit is ignored (§2.3.3: receivers MUST ignore it).
  public init?(parsing payload: Span<UInt8>, at index: Int = 0) {
    guard index >= 0, index < Limits.eventsPerPacket, payload.count >= (index &+ 1) &* Self.length else { return nil }
    let offset = index &* Self.length
    self.init(
      event: payload[offset], isEnd: payload[offset &+ 1] & 0x80 != 0, volume: payload[offset &+ 1] & 0x3f,
      duration: payload.bytes.bigEndian16(at: offset &+ 2))
  }

  /// Writes the four octets and returns 4, or nil if they do not fit.
  public func write(into payload: inout MutableSpan<UInt8>) -> Int? {
    guard payload.count >= Self.length else { return nil }
    payload[0] = event
    payload[1] = (isEnd ? 0x80 : 0) | (volume & 0x3f)
    payload[2] = UInt8(truncatingIfNeeded: duration >> 8)
    payload[3] = UInt8(truncatingIfNeeded: duration)
    return Self.length
  }

  /// The event code of `0-9 * # A-D` (also lower case a–d); nil for anything else.
  public static func code(of digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit &- UInt8(ascii: "0")
    case UInt8(ascii: "*"): 10
    case UInt8(ascii: "#"): 11
    case UInt8(ascii: "A")...UInt8(ascii: "D"): digit &- UInt8(ascii: "A") &+ 12
    case UInt8(ascii: "a")...UInt8(ascii: "d"): digit &- UInt8(ascii: "a") &+ 12
    default: nil
    }
  }

  /// The digit of a DTMF event code as ASCII; nil beyond 15.
  public static func digit(of code: UInt8) -> UInt8? {
    switch code {
    case 0...9: UInt8(ascii: "0") &+ code
    case 10: UInt8(ascii: "*")
    case 11: UInt8(ascii: "#")
    case 12...15: UInt8(ascii: "A") &+ code &- 12
    default: nil
    }
  }
}
