/// CRC-32 as in ITU V.42, by half bytes: FINGERPRINT's checksum (RFC 8489 §14.7). 16 table entries suffice for a few checks a
/// second.
struct Checksum {
  private var state: UInt32 = 0xffff_ffff
  private static let table: [UInt32] = [
    0x0000_0000, 0x1db7_1064, 0x3b6e_20c8, 0x26d9_30ac, 0x76dc_4190, 0x6b6b_51f4, 0x4db2_6158, 0x5005_713c,
    0xedb8_8320, 0xf00f_9344, 0xd6d6_a3e8, 0xcb61_b38c, 0x9b64_c2b0, 0x86d3_d2d4, 0xa00a_e278, 0xbdbd_f21c,
  ]

  mutating func add(_ byte: UInt8) {
    state ^= UInt32(byte)
    state = state >> 4 ^ Self.table[Int(state & 15)]
    state = state >> 4 ^ Self.table[Int(state & 15)]
  }

  /// FINGERPRINT's value over a message whose length field is taken as `lengthField`.
  static func fingerprint(_ message: UnsafeRawBufferPointer, lengthField: UInt16) -> UInt32 {
    var sum = Checksum()
    for (offset, byte) in message.enumerated() {
      switch offset {
      case 2: sum.add(UInt8(lengthField >> 8))
      case 3: sum.add(UInt8(lengthField & 255))
      default: sum.add(byte)
      }
    }
    return ~sum.state ^ 0x5354_554e
  }
}
