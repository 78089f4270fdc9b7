import TrunklineBytes

/// The journal entry of a call: 180, 200 and INVITE wait for it.
///
/// | state | input | → | returns |
/// |---|---|---|---|
/// | absent | `request` | requested | true: write the entry |
/// | requested, onDisk | `request` | same | false |
/// | absent, requested | `confirmed`, also by the deadline | onDisk | true: what has waited continues |
/// | onDisk | `confirmed` | onDisk | false |
/// | absent, requested | `close`: the call has ended | absent | – |
struct CallJournal {
  private enum State { case absent, requested(until: Instant), onDisk }
  private var state = State.absent

  var isOnDisk: Bool { if case .onDisk = state { true } else { false } }
  /// The entry is on disk, or on its way.
  var hasEntry: Bool { if case .absent = state { false } else { true } }

  mutating func request(until deadline: Instant) -> Bool {
    guard !hasEntry else { return false }
    state = .requested(until: deadline)
    return true
  }

  mutating func confirmed() -> Bool {
    guard !isOnDisk else { return false }
    state = .onDisk
    return true
  }

  mutating func close() { if !isOnDisk { state = .absent } }

  var next: DueTimer? { if case .requested(let until) = state { DueTimer(.journal, until) } else { nil } }
}
