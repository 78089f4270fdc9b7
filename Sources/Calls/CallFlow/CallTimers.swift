import Bytes

/// What a call can wait for. Each has one place; setting it again moves it.
enum CallTimer: Int, CaseIterable {
  /// 180 or INVITE goes without the journal's word.
  case journal
  /// Nobody answered: incoming ring window, outgoing Timer C.
  case ring
  /// The media gate did not open.
  case gate
  /// The winner's DTLS failed and it may still restart.
  case restart
  /// `media.active` is taken as sent.
  case mediaActive
  /// The app leg stayed silent.
  case appGrace
  /// The trunk is asked, or asked again.
  case trunkPing
  case longestCall
  case softPause
  /// A device's session ended while it rang, and no new one came.
  case vanished
  /// The record goes without the final statistics.
  case finalStatistics
}

/// The deadlines of one call.
struct CallTimers {
  private var due = [Instant](repeating: .distantFuture, count: CallTimer.allCases.count)

  subscript(timer: CallTimer) -> Instant? {
    get { due[timer.rawValue] == .distantFuture ? nil : due[timer.rawValue] }
    set { due[timer.rawValue] = newValue ?? .distantFuture }
  }

  /// The earliest deadline; `distantFuture` if nothing waits.
  var next: Instant { due.min() ?? .distantFuture }

  mutating func clear() { for index in due.indices { due[index] = .distantFuture } }

  /// Takes one timer that is due, earliest first.
  mutating func takeDue(at now: Instant) -> CallTimer? {
    guard let earliest = due.indices.min(by: { due[$0] < due[$1] }), due[earliest] <= now, due[earliest] != .distantFuture else {
      return nil
    }
    due[earliest] = .distantFuture
    return CallTimer(rawValue: earliest)
  }
}

/// When which call is due next: a binary heap in which a call may stand more than once. An entry that comes too early does no harm.
struct DeadlineQueue {
  private var heap: [(due: Instant, call: CallID)] = []

  var next: Instant? { heap.first?.due }
  var count: Int { heap.count }

  mutating func insert(_ call: CallID, due: Instant) {
    heap.append((due, call))
    var child = heap.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      guard heap[child].due < heap[parent].due else { break }
      heap.swapAt(child, parent)
      child = parent
    }
  }

  mutating func takeDue(at now: Instant) -> CallID? {
    guard let first = heap.first, first.due <= now else { return nil }
    let last = heap.removeLast()
    if !heap.isEmpty {
      heap[0] = last
      sink()
    }
    return first.call
  }

  private mutating func sink() {
    var parent = 0
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && heap[child].due < heap[least].due { least = child }
      if least == parent { return }
      heap.swapAt(parent, least)
      parent = least
    }
  }
}
