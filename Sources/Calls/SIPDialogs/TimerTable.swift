import Bytes

/// Deadlines by key in a binary heap that knows where each key stands, so that a cancelled timer leaves nothing behind. O(log n); a key
/// is hashed once for a change, however far its entry moves.
struct TimerTable<Key: Hashable & Sendable>: Sendable {
  private struct Entry {
    var deadline: Instant
    /// Equal deadlines fire in the order they were set.
    var order: UInt64
    var slot: Int
  }
  /// A key, and where its entry stands in the heap.
  private struct Slot {
    var key: Key
    var place: Int
  }

  private var heap: [Entry] = []
  private var slots: [Slot] = []
  private var free: [Int] = []
  private var slotOf: [Key: Int] = [:]
  private var order: UInt64 = 0

  var next: Instant? { heap.first?.deadline }
  var count: Int { heap.count }

  /// Sets a timer, replacing one with the same key.
  mutating func set(_ key: Key, at deadline: Instant) {
    order &+= 1
    if let slot = slotOf[key] {
      let place = slots[slot].place
      heap[place] = Entry(deadline: deadline, order: order, slot: slot)
      return settle(place)
    }
    let slot: Int
    if let unused = free.popLast() {
      slot = unused
      slots[slot] = Slot(key: key, place: heap.count)
    } else {
      slot = slots.count
      slots.append(Slot(key: key, place: heap.count))
    }
    slotOf[key] = slot
    heap.append(Entry(deadline: deadline, order: order, slot: slot))
    settle(heap.count - 1)
  }

  mutating func cancel(_ key: Key) {
    guard let slot = slotOf.removeValue(forKey: key) else { return }
    free.append(slot)
    let place = slots[slot].place
    let last = heap.removeLast()
    guard place < heap.count else { return }
    heap[place] = last
    slots[last.slot].place = place
    settle(place)
  }

  /// Takes the earliest timer that is due.
  mutating func popDue(_ now: Instant) -> Key? {
    guard let first = heap.first, first.deadline <= now else { return nil }
    let key = slots[first.slot].key
    cancel(key)
    return key
  }

  private func isBefore(_ a: Entry, _ b: Entry) -> Bool { a.deadline != b.deadline ? a.deadline < b.deadline : a.order < b.order }

  /// Moves the entry at a place up or down to where it belongs.
  private mutating func settle(_ start: Int) {
    let entry = heap[start]
    var place = start
    while place > 0, isBefore(entry, heap[(place - 1) / 2]) {
      put(heap[(place - 1) / 2], place)
      place = (place - 1) / 2
    }
    while true {
      var child = 2 * place + 1
      guard child < heap.count else { break }
      if child + 1 < heap.count, isBefore(heap[child + 1], heap[child]) { child += 1 }
      guard isBefore(heap[child], entry) else { break }
      put(heap[child], place)
      place = child
    }
    put(entry, place)
  }

  private mutating func put(_ entry: Entry, _ place: Int) {
    heap[place] = entry
    slots[entry.slot].place = place
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
