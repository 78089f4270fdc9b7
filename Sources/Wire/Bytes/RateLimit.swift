/// A limit per second, of which `burst` may come at once: a token bucket, stored as the time at which it would be full again
/// (GCRA). 16 bytes, a few nanoseconds per call.
///
///     var attempts = RateLimit(perSecond: 4, burst: 4)
///     guard attempts.consume(at: now) else { return }   // refuses the fifth at once, allows another 250 ms later
public struct RateLimit: Sendable {
  private let intervalNanoseconds: Int64
  private let spareNanoseconds: Int64
  private var fullAt = Instant.zero

  /// Both at least 1; more than 10⁹ a second is 10⁹.
  public init(perSecond: Int, burst: Int) {
    intervalNanoseconds = Int64(1_000_000_000 / max(1, min(perSecond, 1_000_000_000)))
    spareNanoseconds = intervalNanoseconds * Int64(max(1, burst) - 1)
  }

  /// False: the limit is exceeded, and nothing is used up.
  public mutating func consume(at now: Instant) -> Bool {
    let from = max(fullAt, now)
    guard (from - now).nanoseconds <= spareNanoseconds else { return false }
    fullAt = from + .nanoseconds(intervalNanoseconds)
    return true
  }
}
