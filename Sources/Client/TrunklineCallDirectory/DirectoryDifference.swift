/// Compares one list of two files, both ascending: entries that only the newer has, and those that only the older has.
/// Memory: two buffers.
struct DirectoryDifference {
  enum Change: Equatable {
    case removed(Int64)
    case added(DirectoryCursor.Item)
    /// The same number with another label.
    case changed(DirectoryCursor.Item)
  }
  private var old: DirectoryCursor
  private var new: DirectoryCursor
  private var oldItem: DirectoryCursor.Item?
  private var newItem: DirectoryCursor.Item?

  init(from old: DirectoryReader, to new: DirectoryReader, _ list: DirectoryList) throws(DirectoryError) {
    (self.old, self.new) = (old.cursor(list), new.cursor(list))
    oldItem = try self.old.next()
    newItem = try self.new.next()
  }

  /// Nil at the end of both.
  mutating func next() throws(DirectoryError) -> Change? {
    while oldItem != nil || newItem != nil {
      let (before, after) = (oldItem, newItem)
      let (oldNumber, newNumber) = (before?.number ?? .max, after?.number ?? .max)
      if oldNumber <= newNumber { oldItem = try old.next() }
      if newNumber <= oldNumber { newItem = try new.next() }
      if oldNumber < newNumber { return .removed(oldNumber) }
      guard let after else { return nil }
      if newNumber < oldNumber { return .added(after) }
      if before != after { return .changed(after) }
    }
    return nil
  }
}
