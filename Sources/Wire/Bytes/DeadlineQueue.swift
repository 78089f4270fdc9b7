/// Deadlines by key: a binary heap with one entry per key, so that a cancelled key leaves no entry. Each change costs O(log n)
/// and one hash of the key, `next` nothing. Equal deadlines are returned in the order in which they were set.
///
///     queue.schedule(call, at: now + .seconds(45))      // nil cancels it
///     while let call = queue.popDue(at: now) { … }
public struct DeadlineQueue<Key: Hashable & Sendable>: Sendable {
  @usableFromInline struct Entry: Sendable {
    @usableFromInline var due: Instant
    @usableFromInline var order: UInt64
    @usableFromInline var slot: Int
    @inlinable init(due: Instant, order: UInt64, slot: Int) { (self.due, self.order, self.slot) = (due, order, slot) }
    @inlinable func isBefore(_ other: Entry) -> Bool { due != other.due ? due < other.due : order < other.order }
  }
  /// A key, and its entry's index in the heap: moving an entry needs no hash.
  @usableFromInline struct Slot: Sendable {
    @usableFromInline var key: Key
    @usableFromInline var index: Int
    @inlinable init(key: Key, index: Int) { (self.key, self.index) = (key, index) }
  }
  @usableFromInline var heap: [Entry] = []
  @usableFromInline var slots: [Slot] = []
  @usableFromInline var free: [Int] = []
  @usableFromInline var slotOf: [Key: Int] = [:]
  @usableFromInline var order: UInt64 = 0

  @inlinable public init() {}

  @inlinable public var next: Instant? { heap.first?.due }
  @inlinable public var count: Int { heap.count }

  /// Sets, moves or (nil) cancels a key's deadline.
  @inlinable public mutating func schedule(_ key: Key, at due: Instant?) {
    guard let due else { return cancel(key) }
    order &+= 1
    let slot = slotOf[key] ?? added(key)
    let index = slots[slot].index
    heap[index] = Entry(due: due, order: order, slot: slot)
    restoreOrder(from: index)
  }

  /// For a key whose deadline mostly moves later without firing: it is returned at `due` or before, and its owner schedules it
  /// again. Moving later costs a look-up.
  @inlinable public mutating func schedule(_ key: Key, notLaterThan due: Instant) {
    if let slot = slotOf[key], heap[slots[slot].index].due <= due { return }
    schedule(key, at: due)
  }

  @inlinable public mutating func cancel(_ key: Key) {
    guard let slot = slotOf.removeValue(forKey: key) else { return }
    free.append(slot)
    let index = slots[slot].index
    let last = heap.removeLast()
    guard index < heap.count else { return }
    put(last, index)
    restoreOrder(from: index)
  }

  /// Removes and returns a key whose deadline has passed; nil if there is none.
  @inlinable public mutating func popDue(at now: Instant) -> Key? {
    guard let first = heap.first, first.due <= now else { return nil }
    let key = slots[first.slot].key
    cancel(key)
    return key
  }

  /// Returns a slot for a new key; its entry is the heap's last.
  @inlinable mutating func added(_ key: Key) -> Int {
    let slot = free.popLast() ?? slots.count
    let new = Slot(key: key, index: heap.count)
    if slot == slots.count { slots.append(new) } else { slots[slot] = new }
    slotOf[key] = slot
    heap.append(Entry(due: .zero, order: 0, slot: slot))
    return slot
  }

  /// Moves the entry at an index up or down to its position.
  @inlinable mutating func restoreOrder(from start: Int) {
    let entry = heap[start]
    var index = start
    while index > 0, entry.isBefore(heap[(index - 1) / 2]) {
      put(heap[(index - 1) / 2], index)
      index = (index - 1) / 2
    }
    while true {
      var child = 2 * index + 1
      guard child < heap.count else { break }
      if child + 1 < heap.count, heap[child + 1].isBefore(heap[child]) { child += 1 }
      guard heap[child].isBefore(entry) else { break }
      put(heap[child], index)
      index = child
    }
    put(entry, index)
  }

  @inlinable mutating func put(_ entry: Entry, _ index: Int) {
    heap[index] = entry
    slots[entry.slot].index = index
  }
}
