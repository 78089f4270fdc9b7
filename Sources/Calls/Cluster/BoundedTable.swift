import TrunklineBytes

/// A bounded table of values with expiry times. When it is full, the value that expires first is evicted.
struct BoundedTable<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private var values: [Key: Value] = [:]
  private var ends = DeadlineQueue<Key>()
  let most: Int

  init(most: Int) { self.most = most }

  var count: Int { values.count }
  /// In arbitrary order.
  var keys: Dictionary<Key, Value>.Keys { values.keys }
  subscript(key: Key) -> Value? { values[key] }

  /// False if another value was evicted.
  @discardableResult mutating func set(_ key: Key, _ value: Value, until end: Instant, at now: Instant) -> Bool {
    values[key] = value
    ends.schedule(key, at: end)
    while let old = ends.popDue(at: now) { values[old] = nil }
    guard values.count > most, let first = ends.popDue(at: .distantFuture) else { return true }
    values[first] = nil
    return false
  }

  mutating func change(_ key: Key, _ change: (inout Value) -> Void) {
    if values[key] != nil { change(&values[key]!) }
  }

  mutating func remove(_ key: Key) {
    values[key] = nil
    ends.cancel(key)
  }

  mutating func expire(at now: Instant) {
    while let old = ends.popDue(at: now) { values[old] = nil }
  }
}
