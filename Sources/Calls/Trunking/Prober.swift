import Bytes

/// OPTIONS at an interval, with hysteresis: one lost probe says nothing, and one answer after a silence neither.
struct Prober: Equatable {
  let settings: TrunkSettings.Probe
  private(set) var isUp = true
  private var inARow = 0
  /// When the next probe goes out; nil while one is under way.
  private(set) var due: Instant?

  init(_ settings: TrunkSettings.Probe, at now: Instant) { (self.settings, due) = (settings, now) }

  mutating func sent() { due = nil }

  /// True if the trunk's state changed. A trunk that is down, or may be, is probed more often.
  mutating func answered(alive: Bool, at now: Instant) -> Bool {
    inARow = alive == isUp ? 0 : inARow + 1
    let flips = inARow >= (isUp ? settings.downAfter : settings.upAfter)
    if flips { (isUp, inARow) = (!isUp, 0) }
    let hurried = !isUp || inARow > 0
    due = now + (hurried ? min(settings.interval, Self.hurry) : settings.interval)
    return flips
  }

  private static let hurry = Duration.seconds(5)
}
