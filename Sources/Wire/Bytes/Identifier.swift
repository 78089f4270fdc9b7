/// A UUID compared as a value and printed in lower case, as the app protocol asks (docs/reference/protocol.md, Frames). 16 bytes, no Foundation.
public struct Identifier: Hashable, Sendable, CustomStringConvertible, Codable {
  /// The first eight bytes, big-endian.
  public let high: UInt64
  /// The last eight.
  public let low: UInt64

  /// From its two halves.
  public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// A version 4 UUID (RFC 9562 §5.4) from the given source.
  public init(random: RandomSource) {
    high = random.next() & 0xffff_ffff_ffff_0fff | 0x4000
    low = random.next() & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000
  }

  /// Parses `8-4-4-4-12` hex digits in either case; nil for anything else.
  public init?(_ text: some StringProtocol) {
    let bytes = Array(text.utf8)
    guard bytes.count == 36 else { return nil }
    var value: (UInt64, UInt64) = (0, 0)
    var digits = 0
    for (index, byte) in bytes.enumerated() {
      if index == 8 || index == 13 || index == 18 || index == 23 {
        guard byte == UInt8(ascii: "-") else { return nil }
        continue
      }
      guard let digit = hexDigit(byte) else { return nil }
      if digits < 16 { value.0 = value.0 << 4 | UInt64(digit) } else { value.1 = value.1 << 4 | UInt64(digit) }
      digits += 1
    }
    (high, low) = value
  }

  public var description: String {
    let text = hexString(high) + hexString(low)
    var out = ""
    for (index, character) in text.enumerated() {
      if index == 8 || index == 12 || index == 16 || index == 20 { out.append("-") }
      out.append(character)
    }
    return out
  }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    let text = try container.decode(String.self)
    guard let value = Identifier(text) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a UUID: \(text.prefix(40))")
    }
    self = value
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}
