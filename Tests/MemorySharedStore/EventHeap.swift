public import TrunklineBytes

/// Events by time; those of equal time in the order of insertion.
public struct EventHeap<Event> {
  private var heap: [(at: Instant, order: UInt64, event: Event)] = []
  private var order: UInt64 = 0
  public init() {}

  public var next: Instant? { heap.first?.at }
  public var count: Int { heap.count }

  public mutating func add(_ event: Event, at time: Instant) {
    order += 1
    heap.append((time, order, event))
    var index = heap.count - 1
    while index > 0, isBefore(index, (index - 1) / 2) {
      heap.swapAt(index, (index - 1) / 2)
      index = (index - 1) / 2
    }
  }

  public mutating func pop() -> (at: Instant, event: Event)? {
    guard let first = heap.first else { return nil }
    let last = heap.removeLast()
    if !heap.isEmpty {
      heap[0] = last
      var index = 0
      while true {
        var child = 2 * index + 1
        guard child < heap.count else { break }
        if child + 1 < heap.count, isBefore(child + 1, child) { child += 1 }
        guard isBefore(child, index) else { break }
        heap.swapAt(child, index)
        index = child
      }
    }
    return (first.at, first.event)
  }

  private func isBefore(_ a: Int, _ b: Int) -> Bool {
    heap[a].at != heap[b].at ? heap[a].at < heap[b].at : heap[a].order < heap[b].order
  }
}
