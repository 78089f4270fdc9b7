import Bytes

/// When which call is due next: a binary heap with one place per call, so that a call that ends leaves nothing behind.
struct DeadlineQueue {
  private var heap: [(due: Instant, call: CallID)] = []
  private var places: [CallID: Int] = [:]

  var next: Instant? { heap.first?.due }
  var count: Int { heap.count }

  /// Notes, moves or (nil) forgets a call's deadline.
  mutating func schedule(_ call: CallID, at due: Instant?) {
    switch (places[call], due) {
    case (nil, nil): break
    case (nil, let due?):
      heap.append((due, call))
      places[call] = heap.count - 1
      rise(heap.count - 1)
    case (let place?, let due?):
      guard heap[place].due != due else { return }
      heap[place].due = due
      settle(place)
    case (let place?, nil): remove(place)
    }
  }

  /// Takes a call whose deadline has come.
  mutating func takeDue(at now: Instant) -> CallID? {
    guard let first = heap.first, first.due <= now else { return nil }
    remove(0)
    return first.call
  }

  private mutating func remove(_ place: Int) {
    places[heap[place].call] = nil
    let last = heap.removeLast()
    guard place < heap.count else { return }
    heap[place] = last
    places[last.call] = place
    settle(place)
  }

  private mutating func settle(_ place: Int) {
    rise(place)
    sink(place)
  }

  private mutating func rise(_ place: Int) {
    var child = place
    while child > 0, heap[child].due < heap[(child - 1) / 2].due {
      swap(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  private mutating func sink(_ place: Int) {
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

  private mutating func swap(_ a: Int, _ b: Int) {
    heap.swapAt(a, b)
    (places[heap[a].call], places[heap[b].call]) = (a, b)
  }
}
