/// Keys in the order of their last touch. A touch costs two amortised dictionary accesses, regardless of the number of keys.
struct RecencyQueue<Key: Hashable & Sendable>: Sendable {
  /// The number of each key's last touch.
  private var touched: [Key: UInt64] = [:]
  /// Touches, oldest first; those superseded by a later one of the same key are skipped.
  private var touches: [(key: Key, number: UInt64)] = []
  private var head = 0
  private var last: UInt64 = 0

  func contains(_ key: Key) -> Bool { touched[key] != nil }

  mutating func touch(_ key: Key) {
    last += 1
    touched[key] = last
    touches.append((key, last))
    // Never more than twice as many touches as keys.
    if touches.count > 2 * touched.count + 64 { compact() }
  }

  mutating func remove(_ key: Key) { touched[key] = nil }

  /// Removes and returns the key that was not touched for the longest time.
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
