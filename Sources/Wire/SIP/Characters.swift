/// The character classes of RFC 3261 §25.1 as bit maps over ASCII (word 0: 0…63, word 1: 64…127).
struct CharacterClass: Sendable {
  let low: UInt64
  let high: UInt64

  @inline(__always) func contains(_ byte: UInt8) -> Bool {
    byte < 128 && (byte < 64 ? low : high) &>> UInt64(byte & 63) & 1 != 0
  }

  /// `token`: letters, digits and -.!%*_+`'~
  static var token: CharacterClass { CharacterClass(low: 0x03ff_6ca2_0000_0000, high: 0x47ff_ffff_87ff_fffe) }
  /// `word`, of which a Call-ID is made.
  static var word: CharacterClass { CharacterClass(low: 0xd7ff_efa6_0000_0000, high: 0x6fff_ffff_bfff_fffe) }
  /// `user` of a SIP URI, with `%`.
  static var user: CharacterClass { CharacterClass(low: 0xabff_fff2_0000_0000, high: 0x47ff_fffe_87ff_fffe) }
  /// `password` of a SIP URI, with `%`.
  static var password: CharacterClass { CharacterClass(low: 0x23ff_7ff2_0000_0000, high: 0x47ff_fffe_87ff_fffe) }
  /// `hostname` and `IPv4address`, and `_`, which real hosts have.
  static var host: CharacterClass { CharacterClass(low: 0x03ff_6000_0000_0000, high: 0x07ff_fffe_87ff_fffe) }
  /// Inside the brackets of an `IPv6reference`.
  static var ipv6: CharacterClass { CharacterClass(low: 0x07ff_4000_0000_0000, high: 0x0000_007e_0000_007e) }
  /// `token / host`, and other characters that occur in values without quotes.
  static var parameterValue: CharacterClass { CharacterClass(low: 0x07ff_eff2_0000_0000, high: 0x47ff_ffff_afff_fffe) }
  /// `paramchar` of a SIP URI, with `%`.
  static var uriParameter: CharacterClass { CharacterClass(low: 0x07ff_eff2_0000_0000, high: 0x47ff_ffff_afff_fffe) }
  /// The `headers` part of a SIP URI.
  static var uriHeaders: CharacterClass { CharacterClass(low: 0xafff_fff2_0000_0000, high: 0x47ff_ffff_afff_ffff) }
  /// Any other URI after its scheme.
  static var opaque: CharacterClass { CharacterClass(low: 0xafff_fffa_0000_0000, high: 0x47ff_fffe_afff_ffff) }
}

extension UInt8 {
  @inline(__always) var isBlank: Bool { self == 32 || self == 9 }
  @inline(__always) var isDigit: Bool { self &- 48 < 10 }
  @inline(__always) var lowered: UInt8 { self &- 65 < 26 ? self | 32 : self }
}

extension UInt8 {
  static var cr: UInt8 { 13 }
  static var lf: UInt8 { 10 }
  static var colon: UInt8 { 58 }
  static var semicolon: UInt8 { 59 }
  static var comma: UInt8 { 44 }
  static var equals: UInt8 { 61 }
  static var quote: UInt8 { 34 }
  static var backslash: UInt8 { 92 }
  static var less: UInt8 { 60 }
  static var greater: UInt8 { 62 }
  static var slash: UInt8 { 47 }
  static var at: UInt8 { 64 }
  static var question: UInt8 { 63 }
  static var percent: UInt8 { 37 }
}
