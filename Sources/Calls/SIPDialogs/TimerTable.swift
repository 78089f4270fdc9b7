import Bytes

/// Deadlines by key in a binary heap that knows where each key stands, so that a cancelled timer leaves nothing behind. O(log n).
struct TimerTable<Key: Hashable & Sendable>: Sendable {
  private struct Entry {
    var deadline: Instant
    /// Equal deadlines fire in the order they were set.
    var order: UInt64
    var key: Key
  }

  private var heap: [Entry] = []
  private var places: [Key: Int] = [:]
  private var order: UInt64 = 0

  var next: Instant? { heap.first?.deadline }
  var count: Int { heap.count }

  /// Sets a timer, replacing one with the same key.
  mutating func set(_ key: Key, at deadline: Instant) {
    order &+= 1
    let entry = Entry(deadline: deadline, order: order, key: key)
    if let place = places[key] {
      heap[place] = entry
      settle(place)
    } else {
      heap.append(entry)
      places[key] = heap.count - 1
      settle(heap.count - 1)
    }
  }

  mutating func cancel(_ key: Key) {
    guard let place = places.removeValue(forKey: key) else { return }
    let last = heap.removeLast()
    guard place < heap.count else { return }
    heap[place] = last
    places[last.key] = place
    settle(place)
  }

  /// Takes the earliest timer that is due.
  mutating func popDue(_ now: Instant) -> Key? {
    guard let first = heap.first, first.deadline <= now else { return nil }
    cancel(first.key)
    return first.key
  }

  private func isBefore(_ a: Entry, _ b: Entry) -> Bool { a.deadline != b.deadline ? a.deadline < b.deadline : a.order < b.order }

  private mutating func swapAt(_ a: Int, _ b: Int) {
    heap.swapAt(a, b)
    places[heap[a].key] = a
    places[heap[b].key] = b
  }

  /// Moves the entry at a place up or down to where it belongs.
  private mutating func settle(_ start: Int) {
    var place = start
    while place > 0, isBefore(heap[place], heap[(place - 1) / 2]) {
      swapAt(place, (place - 1) / 2)
      place = (place - 1) / 2
    }
    while true {
      var least = place
      for child in [2 * place + 1, 2 * place + 2] where child < heap.count && isBefore(heap[child], heap[least]) { least = child }
      guard least != place else { return }
      swapAt(place, least)
      place = least
    }
  }
}

/// Every timer of a user agent.
enum TimerKey: Hashable {
  case server(UInt64, ServerTimer)
  case client(UInt64, ClientTimer)
  case leg(LegID, LegTimer)
}

/// G: retransmission of a final response. End: H, I, J and L, of which a transaction has one at a time.
enum ServerTimer: Hashable { case g, end }
/// Retransmission: A and E. End: B, D, F, K and M, of which a transaction has one at a time.
enum ClientTimer: Hashable { case retransmission, end }

enum LegTimer: Hashable, CaseIterable {
  /// Our 2xx is sent again.
  case answer
  /// Our 2xx has had no ACK.
  case acknowledgement
  /// The last 18x is sent again.
  case provisional
  /// A cancelled INVITE has had no final response (RFC 3261 §9.1).
  case cancelled
  /// The server of an outbound INVITE has said nothing.
  case silence
  /// The reliable provisional response again, and its 64·T1 (RFC 3262 §3).
  case reliable, unacknowledged
  /// A session refresh is due; the session has had none (RFC 4028).
  case refresh, sessionEnd
  /// A glare is waited out (RFC 3261 §14.1).
  case glare
}
