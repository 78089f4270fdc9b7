/// The bytes of one section of a file, through a buffer of `DirectoryReader.bufferBytes`. Never reads beyond the section.
struct SectionBytes {
  let file: DirectoryFile
  private var offset: Int
  private let end: Int
  private var buffer: [UInt8] = []
  private var position = 0
  private var filled = 0
  /// The label that is being read.
  private var text: [UInt8] = []

  init(_ file: DirectoryFile, from offset: Int, count: Int) {
    (self.file, self.offset, end) = (file, offset, offset + count)
  }

  var isAtEnd: Bool { position == filled && offset == end }

  /// Nil at the section's end.
  private mutating func byte() throws(DirectoryError) -> UInt8? {
    if position == filled {
      guard offset < end else { return nil }
      if buffer.isEmpty { buffer = [UInt8](repeating: 0, count: min(DirectoryReader.bufferBytes, end - offset)) }
      filled = try file.read(end - offset, at: offset, into: &buffer)
      position = 0
      guard filled > 0 else { throw .damaged(file.name, .length) }
      offset += filled
    }
    position += 1
    return buffer[position - 1]
  }

  /// LEB128: seven bits a byte, least significant first; the top bit marks that more follow. Nil if it is cut, has more than
  /// 64 bits, or is longer than its value needs.
  mutating func number() throws(DirectoryError) -> UInt64? {
    var (value, shift) = (UInt64(0), UInt64(0))
    while let byte = try byte() {
      let bits = UInt64(byte & 0x7F)
      guard shift < 63 || bits <= 1 else { return nil }
      value |= bits << shift
      if byte & 0x80 == 0 { return bits == 0 && shift > 0 ? nil : value }
      shift += 7
      guard shift <= 63 else { return nil }
    }
    return nil
  }

  /// A byte with the length, 1…255, and UTF-8. Nil if it is cut, empty or not UTF-8.
  mutating func label() throws(DirectoryError) -> String? {
    guard let length = try byte(), length > 0 else { return nil }
    text.removeAll(keepingCapacity: true)
    for _ in 0..<length {
      guard let byte = try byte() else { return nil }
      text.append(byte)
    }
    return String(validating: text, as: UTF8.self)
  }
}
