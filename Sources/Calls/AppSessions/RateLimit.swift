import Bytes

/// A bucket that refills at `perSecond` up to `burst`.
struct RateLimit {
  private let perSecond: Double
  private let burst: Double
  private var level: Double
  private var at: Instant

  init(perSecond: Double, burst: Double, at now: Instant) {
    (self.perSecond, self.burst, level, at) = (perSecond, burst, burst, now)
  }

  /// False when the bucket holds less than `amount`, which then is not taken.
  mutating func take(_ amount: Double, at now: Instant) -> Bool {
    level = min(burst, level + max(0, (now - at).inSeconds) * perSecond)
    at = max(at, now)
    guard level >= amount else { return false }
    level -= amount
    return true
  }
}
