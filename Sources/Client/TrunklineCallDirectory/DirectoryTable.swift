/// The two lists while they are being made, in the app's memory: 16 bytes an addition or removal, and each different label once.
///
/// For each number of each list the last change wins, whether it adds or removes.
struct DirectoryTable {
  struct Record {
    var number: Int64
    /// Its index among the changes of the list.
    var order: UInt32
    /// 0: removed; 1: blocked; else a label's index + 2.
    var meaning: UInt32
    var label: Int { Int(meaning) - 2 }
  }
  private(set) var blocking: [Record] = []
  private(set) var identification: [Record] = []
  private(set) var labels: [String] = []
  private var index: [String: UInt32] = [:]

  mutating func add(_ entry: DirectoryEntry) throws(DirectoryError) {
    if entry.isBlocked { try append(entry.number.value, 1, to: .blocking) }
    if let label = entry.label { try add(entry.number.value, label: label) }
  }

  /// An empty label adds nothing.
  mutating func add(_ number: Int64, label: String) throws(DirectoryError) {
    guard let label = Self.cut(label) else { return }
    let known = index[label] ?? UInt32(truncatingIfNeeded: labels.count)
    if Int(known) == labels.count {
      labels.append(label)
      index[label] = known
    }
    try append(number, known + 2, to: .identification)
  }

  mutating func remove(_ number: Int64, from list: DirectoryList) throws(DirectoryError) { try append(number, 0, to: list) }
  mutating func block(_ number: Int64) throws(DirectoryError) { try append(number, 1, to: .blocking) }

  private mutating func append(_ number: Int64, _ meaning: UInt32, to list: DirectoryList) throws(DirectoryError) {
    guard blocking.count + identification.count < DirectoryLimits.changes else { throw .tooManyChanges }
    switch list {
    case .blocking: blocking.append(Record(number: number, order: UInt32(blocking.count), meaning: meaning))
    case .identification:
      identification.append(Record(number: number, order: UInt32(identification.count), meaning: meaning))
    }
  }

  /// Sorts the lists: ascending, each number once, without removals. Call it once, after the last change.
  mutating func finish() {
    Self.normalise(&blocking)
    Self.normalise(&identification)
    index = [:]
  }

  private static func normalise(_ records: inout [Record]) {
    records.sort { ($0.number, $0.order) < ($1.number, $1.order) }
    var kept = 0
    for position in records.indices {
      let isLast = position + 1 == records.count || records[position + 1].number != records[position].number
      guard isLast, records[position].meaning > 0 else { continue }
      records[kept] = records[position]
      kept += 1
    }
    records.removeSubrange(kept...)
  }

  /// The label, or its first characters that fit; nil if nothing is left.
  static func cut(_ label: String) -> String? {
    guard label.utf8.count > DirectoryLimits.labelBytes else { return label.isEmpty ? nil : label }
    var (kept, bytes) = ("", 0)
    for character in label {
      bytes += String(character).utf8.count
      guard bytes <= DirectoryLimits.labelBytes else { break }
      kept.append(character)
    }
    return kept.isEmpty ? nil : kept
  }
}
