/// Makes directory files by the table of docs/design/call-directory.md, with a checksum of its own: the second reading of the format, and
/// the way to files that no writer would write.
struct FileCraft {
  var magic = Array("TLDIRECT".utf8)
  var format: UInt16 = 1
  var headerLength: UInt16 = 64
  var version: UInt64 = 1
  var shared: [[UInt8]] = []
  var blocked: [UInt8] = []
  var identified: [UInt8] = []
  var sharedCount: UInt32?
  var blockedCount: UInt32 = 0
  var identifiedCount: UInt32 = 0
  var sharedBytes: UInt32?
  var blockedBytes: UInt64?
  var identifiedBytes: UInt64?
  var reserved: UInt32 = 0

  static func little<Value: FixedWidthInteger>(_ value: Value) -> [UInt8] {
    (0..<Value.bitWidth / 8).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }
  static func varint(_ value: UInt64) -> [UInt8] {
    value < 0x80 ? [UInt8(value)] : [UInt8(value & 0x7F) | 0x80] + varint(value >> 7)
  }
  static func label(_ text: String) -> [UInt8] { [UInt8(text.utf8.count)] + Array(text.utf8) }

  static func crc(_ bytes: some Sequence<UInt8>) -> UInt32 {
    // four bits at a time
    let table: [UInt32] = [
      0, 0x1DB7_1064, 0x3B6E_20C8, 0x26D9_30AC, 0x76DC_4190, 0x6B6B_51F4, 0x4DB2_6158, 0x5005_713C, 0xEDB8_8320, 0xF00F_9344,
      0xD6D6_A3E8, 0xCB61_B38C, 0x9B64_C2B0, 0x86D3_D2D4, 0xA00A_E278, 0xBDBD_F21C,
    ]
    var crc = UInt32.max
    for byte in bytes {
      crc = table[Int((crc ^ UInt32(byte)) & 15)] ^ (crc >> 4)
      crc = table[Int((crc ^ UInt32(byte >> 4)) & 15)] ^ (crc >> 4)
    }
    return ~crc
  }

  func bytes() -> [UInt8] {
    let dictionary = shared.flatMap(\.self)
    let body = dictionary + blocked + identified
    var header = magic + Self.little(format) + Self.little(headerLength)
    header += Self.little(sharedCount ?? UInt32(shared.count)) + Self.little(version)
    header += Self.little(blockedCount) + Self.little(identifiedCount)
    header += Self.little(sharedBytes ?? UInt32(dictionary.count)) + Self.little(Self.crc(body))
    header += Self.little(blockedBytes ?? UInt64(blocked.count)) + Self.little(identifiedBytes ?? UInt64(identified.count))
    header += Self.little(reserved)
    return header + Self.little(Self.crc(header)) + body
  }

  /// Both checksums made right again, so that a changed file gets past them.
  static func sealed(_ bytes: [UInt8]) -> [UInt8] {
    guard bytes.count >= 64 else { return bytes }
    var bytes = bytes
    bytes.replaceSubrange(36..<40, with: little(crc(bytes[64...])))
    bytes.replaceSubrange(60..<64, with: little(crc(bytes[..<60])))
    return bytes
  }
}
