public import Bytes

/// A machine's deadline as its loop waits for it. After the machine's timer at `now` its deadline is later than `now`; were it not, by a fault of
/// ours, the loop would spin and empty the battery. It goes on every 10 ms instead, so that what else is due is done.
public struct DeadlineGuard: Sendable {
  private var last: Instant?

  public init() {}

  /// The machine's timer has run.
  public mutating func ran(at now: Instant) { last = now }

  /// When it is to run for this deadline.
  public func due(_ deadline: Instant) -> Instant {
    guard let last, deadline <= last else { return deadline }
    return last + Limits.stuckDeadline
  }
}
