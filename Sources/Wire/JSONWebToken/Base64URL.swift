/// Base64 with the URL alphabet and without padding (RFC 7515 §2).
public enum Base64URL {
  private static let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

  public static func encode(_ bytes: some Sequence<UInt8>) -> String {
    var out: [UInt8] = []
    var bits: UInt32 = 0
    var count = 0
    for byte in bytes {
      bits = (bits << 8 | UInt32(byte)) & 0xffff
      count += 8
      while count >= 6 {
        count -= 6
        out.append(letters[Int(bits >> UInt32(count) & 63)])
      }
    }
    if count > 0 { out.append(letters[Int(bits << UInt32(6 - count) & 63)]) }
    return String(decoding: out, as: UTF8.self)
  }

  /// Nil for padding, white space, another alphabet, an impossible length, or bits left over that are not zero (so that one
  /// value
  /// has one text).
  public static func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
    var out: [UInt8] = []
    var bits: UInt32 = 0
    var count = 0
    var length = 0
    for letter in text {
      guard let value = value(letter) else { return nil }
      bits = (bits << 6 | UInt32(value)) & 0xffff
      count += 6
      length += 1
      if count >= 8 {
        count -= 8
        out.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
      }
    }
    guard length % 4 != 1, bits & (1 << UInt32(count) - 1) == 0 else { return nil }
    return out
  }

  private static func value(_ letter: UInt8) -> UInt8? {
    switch letter {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): letter - 65
    case UInt8(ascii: "a")...UInt8(ascii: "z"): letter - 71
    case UInt8(ascii: "0")...UInt8(ascii: "9"): letter + 4
    case UInt8(ascii: "-"): 62
    case UInt8(ascii: "_"): 63
    default: nil
    }
  }
}
