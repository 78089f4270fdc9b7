/// So many a second, and as many at once: a token bucket.
///
///     var bucket = RateBucket(perSecond: 10)
///     bucket.take(at: now)        // false when this second's are used up
public struct RateBucket: Sendable, Equatable {
  public private(set) var perSecond: Int
  private var tokens: Double
  private var filled: Instant

  /// Full at first.
  public init(perSecond: Int, at now: Instant = .zero) {
    (self.perSecond, tokens, filled) = (perSecond, Double(perSecond), now)
  }

  public mutating func take(at now: Instant) -> Bool {
    fill(now)
    guard tokens >= 1 else { return false }
    tokens -= 1
    return true
  }

  /// Whether `take` would succeed.
  public func has(at now: Instant) -> Bool {
    var copy = self
    copy.fill(now)
    return copy.tokens >= 1
  }

  /// A new rate; what is left stays, at most a second's worth.
  public mutating func setRate(_ perSecond: Int) {
    self.perSecond = perSecond
    tokens = min(tokens, Double(perSecond))
  }

  private mutating func fill(_ now: Instant) {
    let seconds = (now - filled).inSeconds
    guard seconds > 0 else { return }
    tokens = min(Double(perSecond), tokens + seconds * Double(perSecond))
    filled = now
  }
}
