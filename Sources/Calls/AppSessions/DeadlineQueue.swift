import Bytes

/// Deadlines by key, for many keys whose deadlines mostly move later without firing. At most one live entry per key: moving a
/// deadline later costs nothing, its owner is asked again when the old one comes.
struct DeadlineQueue<Key: Hashable> {
  private var heap: [(at: Instant, key: Key)] = []
  private var scheduled: [Key: Instant] = [:]

  /// The earliest entry; may be earlier than any true deadline, never later.
  var next: Instant? { heap.first?.at }

  /// Makes sure that `key` comes up at `at` or before.
  mutating func schedule(_ key: Key, at: Instant) {
    if let old = scheduled[key], old <= at { return }
    scheduled[key] = at
    if heap.count > 2 * scheduled.count + 64 { dropStale() }
    insert(at, key)
  }

  /// Entries that were moved earlier or cancelled stay in the heap until they come up, which may be hours: rebuilt before
  /// they
  /// are the majority.
  private mutating func dropStale() {
    heap.removeAll(keepingCapacity: true)
    for (key, at) in scheduled { insert(at, key) }
  }

  private mutating func insert(_ at: Instant, _ key: Key) {
    heap.append((at, key))
    var child = heap.count - 1
    while child > 0, heap[child].at < heap[(child - 1) / 2].at {
      heap.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  /// Forgets `key`; its entry is passed over when it comes up.
  mutating func cancel(_ key: Key) { scheduled[key] = nil }

  /// A key whose entry has come, once; the owner schedules it again if it still has a deadline.
  mutating func due(_ now: Instant) -> Key? {
    while let first = heap.first, first.at <= now || scheduled[first.key] != first.at {
      removeFirst()
      guard scheduled[first.key] == first.at else { continue }
      scheduled[first.key] = nil
      return first.key
    }
    return nil
  }

  private mutating func removeFirst() {
    let last = heap.removeLast()
    guard !heap.isEmpty else { return }
    heap[0] = last
    var parent = 0
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && heap[child].at < heap[least].at {
        least = child
      }
      if least == parent { return }
      heap.swapAt(parent, least)
      parent = least
    }
  }
}
