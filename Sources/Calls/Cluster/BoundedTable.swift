import TrunklineBytes

/// A bounded table of values with expiry times. When it is full, the value that expires first is evicted. A change costs no more
/// than some accesses, whatever has expired: of that it removes some at a time, and reads of what has expired may find it.
struct BoundedTable<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private struct Entry: Sendable {
    var value: Value
    var index: Int
  }
  private var values: [Key: Entry] = [:]
  /// A removed key is replaced by the last one, so that a walk from the last to the first meets every key that stays.
  private(set) var keys: [Key] = []
  private var ends = DeadlineQueue<Key>()
  private static var expiriesPerChange: Int { 16 }
  let most: Int

  init(most: Int) { self.most = most }

  var count: Int { values.count }
  subscript(key: Key) -> Value? { values[key]?.value }

  /// Keys below an index (nil: all), at most `most`, and the index to go on below: 0 at the end. In no particular order; a key that
  /// stays in the table is in one of the pages, or in two.
  func page(below index: Int?, most: Int) -> (keys: ArraySlice<Key>, below: Int) {
    let end = min(index ?? keys.count, keys.count)
    let start = max(0, end - most)
    return (keys[start..<end], start)
  }

  /// False if another value was evicted.
  @discardableResult mutating func set(_ key: Key, _ value: Value, until end: Instant, at now: Instant) -> Bool {
    if values[key] != nil {
      values[key]?.value = value
    } else {
      values[key] = Entry(value: value, index: keys.count)
      keys.append(key)
    }
    ends.schedule(key, at: end)
    expire(at: now)
    guard values.count > most, let first = ends.popDue(at: .distantFuture) else { return true }
    drop(first)
    return false
  }

  mutating func change(_ key: Key, _ change: (inout Value) -> Void) {
    if values[key] != nil { change(&values[key]!.value) }
  }

  mutating func remove(_ key: Key) {
    drop(key)
    ends.cancel(key)
  }

  /// Removes some of what has expired.
  mutating func expire(at now: Instant) {
    for _ in 0..<Self.expiriesPerChange {
      guard let old = ends.popDue(at: now) else { return }
      drop(old)
    }
  }

  private mutating func drop(_ key: Key) {
    guard let entry = values.removeValue(forKey: key) else { return }
    let last = keys.removeLast()
    guard entry.index < keys.count else { return }
    keys[entry.index] = last
    values[last]?.index = entry.index
  }
}
