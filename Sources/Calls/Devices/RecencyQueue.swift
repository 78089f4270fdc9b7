/// Keys in the order in which they were touched last. A touch costs two amortised dictionary accesses, however many keys there are.
struct RecencyQueue<Key: Hashable & Sendable>: Sendable {
  /// The number of each key's last touch.
  private var touched: [Key: UInt64] = [:]
  /// Touches, oldest first; those that a later one of the same key has made void are passed over.
  private var touches: [(key: Key, number: UInt64)] = []
  private var head = 0
  private var last: UInt64 = 0

  func contains(_ key: Key) -> Bool { touched[key] != nil }

  mutating func touch(_ key: Key) {
    last += 1
    touched[key] = last
    touches.append((key, last))
    // never more than twice as many touches as keys
    if touches.count > 2 * touched.count + 64 { compact() }
  }

  mutating func remove(_ key: Key) { touched[key] = nil }

  /// The key that was not touched for the longest time; it is forgotten.
  mutating func popOldest() -> Key? {
    while head < touches.count {
      let (key, number) = touches[head]
      head += 1
      guard touched[key] == number else { continue }
      touched[key] = nil
      return key
    }
    return nil
  }

  private mutating func compact() {
    touches = touches[head...].filter { touched[$0.key] == $0.number }
    head = 0
  }
}
