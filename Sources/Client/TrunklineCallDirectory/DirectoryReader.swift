/// A directory file whose header, length and checksum are valid. Its entries are checked as they are read.
struct DirectoryReader {
  /// Bytes of one read; a reader needs one such buffer at a time, a cursor one for its life.
  static let bufferBytes = 32_768

  let file: DirectoryFile
  let header: DirectoryHeader
  let sharedLabels: [String]

  /// Cost: one pass over the file, 64 KB of memory.
  init(_ path: String) throws(DirectoryError) {
    file = try DirectoryFile(reading: path)
    header = try Self.header(file)
    var buffer = [UInt8](repeating: 0, count: Self.bufferBytes)
    var checksum = Checksum()
    var offset = DirectoryHeader.length
    while offset < file.size {
      let count = try file.read(Self.bufferBytes, at: offset, into: &buffer)
      guard count > 0 else { throw .damaged(file.name, .length) }
      checksum.add(buffer[..<count])
      offset += count
    }
    guard checksum.value == header.bodyChecksum else { throw .damaged(file.name, .checksum) }
    sharedLabels = try Self.sharedLabels(file, header)
  }

  /// The header alone, to check the version.
  static func header(_ file: DirectoryFile) throws(DirectoryError) -> DirectoryHeader {
    var bytes = [UInt8](repeating: 0, count: DirectoryHeader.length)
    guard try file.read(bytes.count, at: 0, into: &bytes) == bytes.count else { throw .damaged(file.name, .tooShort) }
    return try DirectoryHeader(bytes, fileBytes: file.size, file: file.name)
  }

  private static func sharedLabels(_ file: DirectoryFile, _ header: DirectoryHeader) throws(DirectoryError) -> [String] {
    var bytes = SectionBytes(file, from: DirectoryHeader.length, count: header.sharedLabelBytes)
    var labels: [String] = []
    labels.reserveCapacity(header.sharedLabels)
    for _ in 0..<header.sharedLabels {
      guard let label = try bytes.label() else { throw .damaged(file.name, .dictionary) }
      labels.append(label)
    }
    guard bytes.isAtEnd else { throw .damaged(file.name, .dictionary) }
    return labels
  }

  func count(_ list: DirectoryList) -> Int { list == .blocking ? header.blocked : header.identified }

  func cursor(_ list: DirectoryList) -> DirectoryCursor {
    let start = DirectoryHeader.length + header.sharedLabelBytes
    switch list {
    case .blocking:
      return DirectoryCursor(
        SectionBytes(file, from: start, count: header.blockedBytes), count: header.blocked, list, labels: [])
    case .identification:
      let bytes = SectionBytes(file, from: start + header.blockedBytes, count: header.identifiedBytes)
      return DirectoryCursor(bytes, count: header.identified, list, labels: sharedLabels)
    }
  }
}

/// Iterates over one list, ascending. HOT: 2 × 10⁶ entries a load.
struct DirectoryCursor {
  struct Item: Equatable {
    var number: Int64
    /// Empty in the blocking list.
    var label: String
  }
  private var bytes: SectionBytes
  private var remaining: Int
  private var last: Int64 = 0
  private let list: DirectoryList
  private let labels: [String]

  init(_ bytes: SectionBytes, count: Int, _ list: DirectoryList, labels: [String]) {
    (self.bytes, remaining, self.list, self.labels) = (bytes, count, list, labels)
  }

  /// Nil after the last entry, which must be the section's end.
  mutating func next() throws(DirectoryError) -> Item? {
    guard remaining > 0 else {
      guard bytes.isAtEnd else { throw .damaged(bytes.file.name, .trailingBytes) }
      return nil
    }
    remaining -= 1
    guard let gap = try bytes.number() else { throw .damaged(bytes.file.name, .entry) }
    // a gap of 0 is a duplicate number; one that overflows would go back
    guard gap > 0, gap <= UInt64(PhoneNumber.range.upperBound - last) else { throw .damaged(bytes.file.name, .order) }
    last += Int64(gap)
    guard PhoneNumber.range.contains(last) else { throw .damaged(bytes.file.name, .entry) }
    return Item(number: last, label: list == .blocking ? "" : try label())
  }

  private mutating func label() throws(DirectoryError) -> String {
    guard let token = try bytes.number() else { throw .damaged(bytes.file.name, .entry) }
    if token > 0 {
      guard token <= UInt64(labels.count) else { throw .damaged(bytes.file.name, .label) }
      return labels[Int(token) - 1]
    }
    guard let label = try bytes.label() else { throw .damaged(bytes.file.name, .label) }
    return label
  }
}
