/// When which of many keys is due next: a binary heap with one place per key, so that a key that is forgotten leaves nothing
/// behind. Each change costs O(log n), `next` nothing.
///
///     queue.schedule(call, at: now + .seconds(45))      // nil forgets it
///     while let call = queue.takeDue(at: now) { … }
public struct DeadlineQueue<Key: Hashable & Sendable>: Sendable {
  @usableFromInline struct Entry: Sendable {
    @usableFromInline var due: Instant
    @usableFromInline var key: Key
    @inlinable init(_ due: Instant, _ key: Key) { (self.due, self.key) = (due, key) }
  }
  @usableFromInline var heap: [Entry] = []
  @usableFromInline var places: [Key: Int] = [:]

  @inlinable public init() {}

  @inlinable public var next: Instant? { heap.first?.due }
  @inlinable public var count: Int { heap.count }

  /// Notes, moves or (nil) forgets a key's deadline.
  @inlinable public mutating func schedule(_ key: Key, at due: Instant?) {
    switch (places[key], due) {
    case (nil, nil): break
    case (nil, let due?):
      heap.append(Entry(due, key))
      places[key] = heap.count - 1
      rise(heap.count - 1)
    case (let place?, let due?):
      guard heap[place].due != due else { return }
      heap[place].due = due
      settle(place)
    case (let place?, nil): remove(place)
    }
  }

  /// For a key whose deadline mostly moves later without firing: it comes up at `due` or before, and its owner schedules it
  /// again. Moving later costs a look-up.
  @inlinable public mutating func schedule(_ key: Key, notLaterThan due: Instant) {
    if let place = places[key], heap[place].due <= due { return }
    schedule(key, at: due)
  }

  @inlinable public mutating func cancel(_ key: Key) { schedule(key, at: nil) }

  /// A key whose deadline has come, once.
  @inlinable public mutating func takeDue(at now: Instant) -> Key? {
    guard let first = heap.first, first.due <= now else { return nil }
    remove(0)
    return first.key
  }

  @inlinable mutating func remove(_ place: Int) {
    places[heap[place].key] = nil
    let last = heap.removeLast()
    guard place < heap.count else { return }
    heap[place] = last
    places[last.key] = place
    settle(place)
  }

  /// One of the two moves, or none.
  @inlinable mutating func settle(_ place: Int) {
    rise(place)
    sink(place)
  }

  @inlinable mutating func rise(_ place: Int) {
    var child = place
    while child > 0, heap[child].due < heap[(child - 1) / 2].due {
      swap(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  @inlinable mutating func sink(_ place: Int) {
    var parent = place
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && heap[child].due < heap[least].due {
        least = child
      }
      if least == parent { return }
      swap(parent, least)
      parent = least
    }
  }

  @inlinable mutating func swap(_ a: Int, _ b: Int) {
    heap.swapAt(a, b)
    (places[heap[a].key], places[heap[b].key]) = (a, b)
  }
}
