/// So many a second, and so many at once.
///
///     var bucket = TokenBucket(perSecond: 10, burst: 40, at: now)
///     bucket.take(at: now)        // false when they are used up
public struct TokenBucket: Sendable, Equatable {
  private var perSecond: Double
  private var burst: Double
  private var level: Double
  private var filled: Instant

  /// Begins full.
  public init(perSecond: Double, burst: Double, at now: Instant) {
    (self.perSecond, self.burst, level, filled) = (perSecond, burst, burst, now)
  }

  /// One second's worth at once.
  public init(perSecond: Int, at now: Instant = .zero) {
    self.init(perSecond: Double(perSecond), burst: Double(perSecond), at: now)
  }

  /// False when the bucket holds less than `amount`, which then is not taken.
  public mutating func consume(_ amount: Double = 1, at now: Instant) -> Bool {
    fill(now)
    guard level >= amount else { return false }
    level -= amount
    return true
  }

  /// Whether `take` would succeed.
  public func has(_ amount: Double = 1, at now: Instant) -> Bool {
    var copy = self
    copy.fill(now)
    return copy.level >= amount
  }

  /// Nothing of it was used of late.
  public func isFull(at now: Instant) -> Bool { has(burst, at: now) }

  /// Takes `amount`, whether it is there or not: for what cannot wait, and is made up for by what comes later.
  public mutating func spend(_ amount: Double = 1, at now: Instant) {
    fill(now)
    level -= amount
  }

  /// A new rate, and so many at once (one second's worth without `burst`); what is left stays, as far as it fits.
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
