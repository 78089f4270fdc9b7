public import TrunklineBytes

/// The time at which a loop runs its machine. After the machine's timer at `now` its deadline must be later than `now`. If it is
/// not, by a fault of ours, the loop would spin and empty the battery; with this guard it runs every 10 ms, so that other timers
/// still run.
public struct DeadlineGuard: Sendable {
  private var last: Instant?

  public init() {}

  /// The machine's timer has run.
  public mutating func ran(at now: Instant) { last = now }

  /// When the machine must run for this deadline.
  public func due(_ deadline: Instant) -> Instant {
    guard let last, deadline <= last else { return deadline }
    return last + Limits.stuckDeadline
  }
}
