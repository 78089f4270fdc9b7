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

/// A bounded queue of keys in the order of insertion, each once.
struct KeyQueue<Key: Hashable & Sendable>: Sendable {
  private var keys: [Key] = []
  private var head = 0
  private var waiting: Set<Key> = []
  let most: Int

  init(most: Int) { self.most = most }

  var isEmpty: Bool { head == keys.count }
  var count: Int { keys.count - head }

  /// False: full.
  mutating func append(_ key: Key) -> Bool {
    guard !waiting.contains(key) else { return true }
    guard count < most else { return false }
    keys.append(key)
    waiting.insert(key)
    return true
  }

  mutating func popFirst() -> Key? {
    guard head < keys.count else { return nil }
    let key = keys[head]
    head += 1
    waiting.remove(key)
    if head > 1_024, head * 2 > keys.count {
      keys.removeFirst(head)
      head = 0
    }
    return key
  }
}
