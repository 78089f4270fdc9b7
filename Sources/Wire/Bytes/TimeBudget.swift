/// CPU time that one kind of work may use in a second. The time used is reported afterwards (`spend`): a debt is paid off before
/// there is more.
public struct TimeBudget: Sendable {
  private let perSecond: Duration
  private var left: Duration
  private var filled = Instant.zero

  public init(perSecond: Duration) { (self.perSecond, left) = (perSecond, perSecond) }

  /// Whether more than `share` of a second's time is left.
  public mutating func has(_ share: Double = 0, at now: Instant) -> Bool {
    fill(now)
    return left > perSecond * share
  }

  public mutating func spend(_ time: Duration, at now: Instant) {
    fill(now)
    left -= max(.zero, time)
  }

  /// When `share` of a second's time will be available, if nothing is spent until then.
  public func time(of share: Double) -> Instant {
    let missing = (perSecond * share - left).inSeconds / perSecond.inSeconds
    return filled + .seconds(max(0, missing))
  }

  private mutating func fill(_ now: Instant) {
    guard now > filled else { return }
    left = min(perSecond, left + perSecond * min(1, (now - filled).inSeconds))
    filled = now
  }
}
