/// One list of one extension as iOS keeps it: ascending numbers, each with or without a label of the pool. An identified entry
/// has 12 bytes, a blocked one 8; each different label is stored once.
struct CallDirectoryTable: Sendable, Equatable {
  private(set) var numbers: [Int64] = []
  /// Parallel to `numbers`; empty for blocked numbers.
  private(set) var labels: [UInt32] = []

  var count: Int { numbers.count }

  /// - Returns: the code that iOS returns for a number that is invalid or does not follow the last one; nil: it was accepted.
  mutating func append(_ number: Int64, label: UInt32? = nil) -> CXErrorCodeCallDirectoryManagerError.Code? {
    guard number > 0, number <= CXCallDirectoryPhoneNumberMax else { return .unknown }
    if let last = numbers.last, number <= last { return number == last ? .duplicateEntries : .entriesOutOfOrder }
    numbers.append(number)
    if let label { labels.append(label) }
    return nil
  }

  /// Position by binary search.
  func position(of number: Int64) -> Int? {
    var (low, high) = (0, numbers.count)
    while low < high {
      let middle = (low + high) / 2
      if numbers[middle] < number { low = middle + 1 } else { high = middle }
    }
    return low < numbers.count && numbers[low] == number ? low : nil
  }

  /// This list without the removed numbers and with the added ones, in one pass. `duplicate`: a stored number was added again.
  func merged(removing removed: Set<Int64>, adding added: CallDirectoryTable) -> (table: CallDirectoryTable, duplicate: Bool) {
    var merged = CallDirectoryTable()
    merged.numbers.reserveCapacity(count + added.count)
    var (mine, theirs, duplicate) = (0, 0, false)
    while mine < count || theirs < added.count {
      if theirs == added.count || (mine < count && numbers[mine] < added.numbers[theirs]) {
        if !removed.contains(numbers[mine]) { merged.copyEntry(self, mine) }
        mine += 1
        continue
      }
      if mine < count, numbers[mine] == added.numbers[theirs] {
        duplicate = duplicate || !removed.contains(numbers[mine])
        mine += 1
      }
      merged.copyEntry(added, theirs)
      theirs += 1
    }
    return (merged, duplicate)
  }

  private mutating func copyEntry(_ other: CallDirectoryTable, _ index: Int) {
    numbers.append(other.numbers[index])
    if !other.labels.isEmpty { labels.append(other.labels[index]) }
  }
}
