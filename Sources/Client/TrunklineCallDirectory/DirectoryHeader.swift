/// The first 64 bytes of a directory file, little-endian. docs/design/call-directory.md has the whole format as a table.
struct DirectoryHeader: Equatable {
  static let length = 64
  static let magic = Array("TLDIRECT".utf8)
  static let formatVersion = 1

  var version: UInt64
  var sharedLabels = 0
  var sharedLabelBytes = 0
  var blocked = 0
  var blockedBytes = 0
  var identified = 0
  var identifiedBytes = 0
  var bodyChecksum: UInt32 = 0

  var bodyBytes: Int { sharedLabelBytes + blockedBytes + identifiedBytes }

  func encoded() -> [UInt8] {
    var bytes = Self.magic
    func append<Value: FixedWidthInteger>(_ value: Value) {
      for shift in 0..<Value.bitWidth / 8 { bytes.append(UInt8(truncatingIfNeeded: value >> (8 * shift))) }
    }
    append(UInt16(Self.formatVersion))
    append(UInt16(Self.length))
    append(UInt32(truncatingIfNeeded: sharedLabels))
    append(version)
    append(UInt32(truncatingIfNeeded: blocked))
    append(UInt32(truncatingIfNeeded: identified))
    append(UInt32(truncatingIfNeeded: sharedLabelBytes))
    append(bodyChecksum)
    append(UInt64(blockedBytes))
    append(UInt64(identifiedBytes))
    append(UInt32(0))
    append(Checksum.of(bytes))
    return bytes
  }

  /// - Parameter fileBytes: the whole file's size. Sections must fill it exactly, and counts must fit into their sections, so
  ///   that no number in the file is trusted beyond the file's size.
  init(_ bytes: [UInt8], fileBytes: Int, file: String) throws(DirectoryError) {
    func value<Value: FixedWidthInteger>(_ offset: Int, _: Value.Type) -> Value {
      (0..<Value.bitWidth / 8).reduce(0) { $0 | Value(truncatingIfNeeded: bytes[offset + $1]) << (8 * $1) }
    }
    guard bytes.count == Self.length, fileBytes >= Self.length else { throw .damaged(file, .tooShort) }
    guard Array(bytes[..<8]) == Self.magic else { throw .damaged(file, .notADirectory) }
    let format = value(8, UInt16.self)
    guard format == Self.formatVersion else { throw .formatVersion(Int(format)) }
    guard value(60, UInt32.self) == Checksum.of(bytes[..<60]) else { throw .damaged(file, .headerChecksum) }
    version = value(16, UInt64.self)
    (sharedLabels, blocked, identified) = (
      Int(value(12, UInt32.self)), Int(value(24, UInt32.self)), Int(value(28, UInt32.self))
    )
    (sharedLabelBytes, bodyChecksum) = (Int(value(32, UInt32.self)), value(36, UInt32.self))
    guard let blockedBytes = Int(exactly: value(40, UInt64.self)), blockedBytes <= fileBytes,
      let identifiedBytes = Int(exactly: value(48, UInt64.self)), identifiedBytes <= fileBytes, sharedLabelBytes <= fileBytes
    else { throw .damaged(file, .length) }
    (self.blockedBytes, self.identifiedBytes) = (blockedBytes, identifiedBytes)
    guard Self.length + bodyBytes == fileBytes, value(10, UInt16.self) == Self.length, value(56, UInt32.self) == 0
    else { throw .damaged(file, .length) }
    // an entry has at least one byte in the blocking list, two in the other; a shared label two
    guard blocked <= blockedBytes, identified <= identifiedBytes / 2, sharedLabels <= DirectoryLimits.sharedLabels,
      sharedLabels <= sharedLabelBytes / 2
    else { throw .damaged(file, .counts) }
  }

  init(version: UInt64) { self.version = version }
}

/// CRC-32 of IEEE 802.3, as in zlib: finds each burst of up to 32 bits, and others with a probability of 1 − 2⁻³². It does not
/// protect against an attacker: only the app itself can write into the app group.
struct Checksum {
  private static let table: [UInt32] = (0..<256).map { index in
    (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ (value >> 1) : value >> 1 }
  }
  private let table = Self.table
  private var state: UInt32 = 0xFFFF_FFFF

  var value: UInt32 { ~state }

  mutating func add(_ bytes: some Sequence<UInt8>) {
    var state = state
    for byte in bytes { state = table[Int(UInt8(truncatingIfNeeded: state) ^ byte)] ^ (state >> 8) }
    self.state = state
  }

  static func of(_ bytes: some Sequence<UInt8>) -> UInt32 {
    var checksum = Checksum()
    checksum.add(bytes)
    return checksum.value
  }
}
