import Bytes

/// Leaves a trunk alone that fails every call, and tries it with one.
///
/// | phase | failure | success | time |
/// |---|---|---|---|
/// | closed | open at the fifth in a row | counts from 0 | – |
/// | open | ignored | closed | half open |
/// | half open, one call | open, twice as long | closed | – |
struct Breaker: Equatable {
  private enum Phase: Equatable { case closed, open(until: Instant), trying }
  private var phase = Phase.closed
  private var failures = 0
  private var pause = Limits.breakerPause.lowerBound

  var isOpen: Bool { phase != .closed }

  /// Whether a call may try the trunk.
  func admits(at now: Instant) -> Bool {
    switch phase {
    case .closed: true
    case .open(let until): until <= now
    case .trying: false
    }
  }

  /// A call goes out.
  mutating func tried(at now: Instant) {
    if case .open(let until) = phase, until <= now { phase = .trying }
  }

  /// True if it has just opened.
  mutating func failed(at now: Instant) -> Bool {
    switch phase {
    case .closed:
      failures += 1
      guard failures >= Limits.breakerFailures else { return false }
    case .trying: break
    case .open: return false
    }
    phase = .open(until: now + pause)
    pause = min(pause * 2, Limits.breakerPause.upperBound)
    return true
  }

  /// True if it has just closed.
  mutating func succeeded() -> Bool {
    let wasOpen = isOpen
    self = Breaker()
    return wasOpen
  }

  /// The call that tried it ended without telling anything about the trunk.
  mutating func undecided(at now: Instant) { if phase == .trying { phase = .open(until: now) } }
}
