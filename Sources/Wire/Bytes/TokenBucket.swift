/// A bucket that refills at `perSecond` up to `burst`: how often something may happen.
public struct TokenBucket: Sendable {
  private let perSecond: Double
  private let burst: Double
  private var level: Double
  private var at: Instant

  /// Begins full.
  public init(perSecond: Double, burst: Double, at now: Instant) {
    (self.perSecond, self.burst, level, at) = (perSecond, burst, burst, now)
  }

  /// False when the bucket holds less than `amount`, which then is not taken.
  public mutating func take(_ amount: Double = 1, at now: Instant) -> Bool {
    refill(now)
    guard level >= amount else { return false }
    level -= amount
    return true
  }

  /// Takes what was spent already, also below zero: for costs that are known only afterwards.
  public mutating func spend(_ amount: Double, at now: Instant) {
    refill(now)
    level -= amount
  }

  /// When it will hold `amount`; `now` if it does.
  public mutating func ready(_ amount: Double = 0, at now: Instant) -> Instant {
    refill(now)
    guard level < amount else { return now }
    return now + .nanoseconds(Int64((amount - level) / perSecond * 1e9) + 1)
  }

  /// Nothing of it was used of late.
  public mutating func isFull(at now: Instant) -> Bool {
    refill(now)
    return level >= burst
  }

  private mutating func refill(_ now: Instant) {
    level = min(burst, level + max(0, (now - at).inSeconds) * perSecond)
    at = max(at, now)
  }
}
