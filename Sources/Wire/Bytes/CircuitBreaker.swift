/// Decides whether a server that may be failing gets another attempt: after several failures in a row only one now and then.
///
/// | state | failure | success | undecided | an attempt is allowed |
/// |---|---|---|---|---|
/// | closed | open after `Policy.failures` in a row | counts from 0 | – | yes |
/// | open | ignored | closed | – | once the pause is over: then half open |
/// | half open | open, the pause is doubled | closed | open without a pause | after `Policy.attemptTime` without a result of the first |
///
/// The owner decides what counts as a failure.
public struct CircuitBreaker: Equatable, Sendable {
  public struct Policy: Equatable, Sendable {
    /// Failures in a row that open it.
    public var failures: Int
    /// The first pause and the longest.
    public var pause: ClosedRange<Duration>
    /// After this long without a result a half-open attempt counts as lost, and another is allowed; nil: every attempt
    /// reports a result.
    public var attemptTime: Duration?
    public init(failures: Int, pause: ClosedRange<Duration>, attemptTime: Duration? = nil) {
      (self.failures, self.pause, self.attemptTime) = (failures, pause, attemptTime)
    }
  }
  private enum State: Equatable { case closed, open(until: Instant), halfOpen(until: Instant) }
  private let policy: Policy
  private var state = State.closed
  private var failures = 0
  private var pause: Duration

  public init(_ policy: Policy) { (self.policy, pause) = (policy, policy.pause.lowerBound) }

  /// Open or half open.
  public var isOpen: Bool { state != .closed }

  public func allows(at now: Instant) -> Bool {
    switch state {
    case .closed: true
    case .open(let until), .halfOpen(let until): until <= now
    }
  }

  /// An attempt that was allowed is made.
  public mutating func attempted(at now: Instant) {
    guard isOpen, allows(at: now) else { return }
    state = .halfOpen(until: policy.attemptTime.map { now + $0 } ?? .distantFuture)
  }

  /// True if it has just opened.
  @discardableResult public mutating func failed(at now: Instant) -> Bool {
    switch state {
    case .closed:
      failures += 1
      guard failures >= policy.failures else { return false }
    case .halfOpen: break
    case .open: return false
    }
    state = .open(until: now + pause)
    pause = min(pause * 2, policy.pause.upperBound)
    return true
  }

  /// True if it has just closed.
  @discardableResult public mutating func succeeded() -> Bool {
    let wasOpen = isOpen
    self = CircuitBreaker(policy)
    return wasOpen
  }

  /// The half-open attempt ended without showing whether the server works.
  public mutating func undecided(at now: Instant) { if case .halfOpen = state { state = .open(until: now) } }
}
