import Bytes

/// Whether a push service is worth asking: after several failures in a row only now and then a push tries.
///
/// | state | success | failure | a push asks |
/// |---|---|---|---|
/// | closed | closed | closed; open at the fifth in a row | yes |
/// | open | – (none is under way) | open | yes once the pause is over: probing; else no |
/// | probing | closed | open, the pause doubles up to 30 s | no |
///
/// A failure is a transport that broke or a 5xx; an answer about one token is none.
struct CircuitBreaker {
  private enum State { case closed, open(until: Instant), probing(until: Instant) }
  private var state = State.closed
  private var failures = 0
  private var pause = Self.firstPause

  var isOpen: Bool { if case .closed = state { false } else { true } }

  mutating func allows(at now: Instant) -> Bool {
    switch state {
    case .closed: return true
    case .open(let until), .probing(let until):
      guard now >= until else { return false }
      // A probe that nobody reports on must not shut the service off for ever.
      state = .probing(until: now + Limits.attemptTime)
      return true
    }
  }

  mutating func succeeded() { (state, failures, pause) = (.closed, 0, Self.firstPause) }

  mutating func failed(at now: Instant) {
    failures += 1
    switch state {
    case .closed where failures < Self.tolerated: break
    case .closed: state = .open(until: now + pause)
    case .probing:
      pause = min(pause * 2, Self.longestPause)
      state = .open(until: now + pause)
    case .open: break
    }
  }

  private static let tolerated = 5
  private static let firstPause = Duration.seconds(1)
  private static let longestPause = Duration.seconds(30)
}
