/// Writes one extension's share of a finished table into a file that replaces the previous one atomically.
struct DirectoryEncoder {
  private let file: DirectoryFile
  private var buffer: [UInt8] = []
  private var written = DirectoryHeader.length
  private var checksum = Checksum()

  private init(_ file: DirectoryFile) {
    self.file = file
    buffer.reserveCapacity(DirectoryReader.bufferBytes * 2)
  }

  /// - Parameters:
  ///   - temporary: the file to write; renamed to `path` when it is on the disk. A failure leaves `path` unchanged.
  static func write(
    _ table: DirectoryTable, blocking: Range<Int>, identification: Range<Int>, version: UInt64, temporary: String, path: String
  ) throws(DirectoryError) {
    var encoder = DirectoryEncoder(try DirectoryFile(writing: temporary))
    var header = DirectoryHeader(version: version)
    let tokens = sharedLabels(table, identification)
    for label in tokens.labels { try encoder.append(label: table.labels[label]) }
    header.sharedLabels = tokens.labels.count
    header.sharedLabelBytes = encoder.length
    try encoder.append(table.blocking[blocking]) { _, _ throws(DirectoryError) in }
    (header.blocked, header.blockedBytes) = (blocking.count, encoder.length - header.sharedLabelBytes)
    try encoder.append(table.identification[identification]) { record, encoder throws(DirectoryError) in
      let token = tokens.byLabel[record.label]
      encoder.append(number: UInt64(token))
      if token == 0 { try encoder.append(label: table.labels[record.label]) }
    }
    header.identified = identification.count
    header.identifiedBytes = encoder.length - header.sharedLabelBytes - header.blockedBytes
    try encoder.flush()
    header.bodyChecksum = encoder.checksum.value
    try encoder.file.write(header.encoded(), at: 0)
    try encoder.file.synchronise()
    try DirectoryFolder.rename(temporary, to: path)
  }

  /// Labels that occur more than once, the most frequent first; `byLabel` has 0 for the others.
  private static func sharedLabels(_ table: DirectoryTable, _ range: Range<Int>) -> (labels: [Int], byLabel: [Int]) {
    var counts = [Int](repeating: 0, count: table.labels.count)
    for record in table.identification[range] { counts[record.label] += 1 }
    let frequent = counts.indices.filter { counts[$0] > 1 }.sorted { (counts[$0], $1) > (counts[$1], $0) }
    let labels = Array(frequent.prefix(DirectoryLimits.sharedLabels))
    for index in counts.indices { counts[index] = 0 }
    for (position, label) in labels.enumerated() { counts[label] = position + 1 }
    return (labels, counts)
  }

  /// Number of bytes after the header so far.
  private var length: Int { written - DirectoryHeader.length + buffer.count }

  private mutating func append(
    _ records: ArraySlice<DirectoryTable.Record>,
    _ rest: (DirectoryTable.Record, inout DirectoryEncoder) throws(DirectoryError) -> Void
  ) throws(DirectoryError) {
    var last: Int64 = 0
    for record in records {
      append(number: UInt64(record.number - last))
      last = record.number
      try rest(record, &self)
      if buffer.count >= DirectoryReader.bufferBytes { try flush() }
    }
  }

  private mutating func append(number: UInt64) {
    var rest = number
    while rest > 0x7F {
      buffer.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    buffer.append(UInt8(rest))
  }

  private mutating func append(label: String) throws(DirectoryError) {
    let bytes = label.utf8
    buffer.append(UInt8(truncatingIfNeeded: bytes.count))
    buffer.append(contentsOf: bytes)
    if buffer.count >= DirectoryReader.bufferBytes { try flush() }
  }

  private mutating func flush() throws(DirectoryError) {
    checksum.add(buffer)
    try file.write(buffer, at: written)
    written += buffer.count
    buffer.removeAll(keepingCapacity: true)
  }
}
