/// A rate limit: `perSecond` in a second, and `burst` at once.
///
///     var bucket = TokenBucket(perSecond: 10, burst: 40, at: now)
///     bucket.consume(at: now)     // false when nothing is left
public struct TokenBucket: Sendable, Equatable {
  private var perSecond: Double
  private var burst: Double
  private var level: Double
  private var filled: Instant

  /// Begins full.
  public init(perSecond: Double, burst: Double, at now: Instant) {
    (self.perSecond, self.burst, level, filled) = (perSecond, burst, burst, now)
  }

  /// The burst is one second's worth.
  public init(perSecond: Int, at now: Instant = .zero) {
    self.init(perSecond: Double(perSecond), burst: Double(perSecond), at: now)
  }

  /// False when the bucket holds less than `amount`, and then nothing is consumed.
  public mutating func consume(_ amount: Double = 1, at now: Instant) -> Bool {
    fill(now)
    guard level >= amount else { return false }
    level -= amount
    return true
  }

  /// Whether `consume` would succeed.
  public func has(_ amount: Double = 1, at now: Instant) -> Bool {
    var copy = self
    copy.fill(now)
    return copy.level >= amount
  }

  /// Whether the bucket is full: nothing was consumed lately.
  public func isFull(at now: Instant) -> Bool { has(burst, at: now) }

  /// Consumes `amount` even if less is left: for work that cannot wait, and that later work makes up for.
  public mutating func spend(_ amount: Double = 1, at now: Instant) {
    fill(now)
    level -= amount
  }

  /// Sets a new rate and burst (one second's worth without `burst`); what is left stays, as far as it fits.
  public mutating func setRate(_ perSecond: Int, burst most: Int? = nil) {
    (self.perSecond, burst) = (Double(perSecond), Double(most ?? perSecond))
    level = min(burst, level)
  }

  private mutating func fill(_ now: Instant) {
    guard now > filled else { return }
    level = min(burst, level + (now - filled).inSeconds * perSecond)
    filled = now
  }
}
