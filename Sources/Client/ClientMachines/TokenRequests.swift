import Bytes

/// When the app's token function is asked: at most once in `Limits.tokenFloor`, whoever wants a token, and less and less often while there is
/// none that helps.
struct TokenRequests {
  private(set) var isAsked = false
  /// When it is asked next without another reason.
  private(set) var dueAt: Instant?
  private(set) var attempts = 0
  private var askedAt: Instant?

  /// There was a failure, and nothing but time has passed since.
  var isWaiting: Bool { dueAt != nil }

  /// - Returns: whether to ask now; else it is due later, or under way.
  mutating func ask(at now: Instant) -> Bool {
    guard !isAsked else {
      dueAt = nil
      return false
    }
    if let askedAt, now < askedAt + Limits.tokenFloor {
      dueAt = askedAt + Limits.tokenFloor
      return false
    }
    (isAsked, dueAt, askedAt) = (true, nil, now)
    return true
  }

  mutating func answered() { (isAsked, dueAt) = (false, nil) }

  /// What came was none, or did not help.
  /// - Parameter isStale: it was the token that there is. A backend that keeps each token until it ends gives the next one at that moment, which must
  ///   be met within the gateway's leeway of 30 s: from the announcement to the end of the leeway the wait does not grow beyond `tokenStaleRetry`.
  mutating func failed(at now: Instant, isStale: Bool = false) {
    isAsked = false
    attempts += 1
    let wait = min(Limits.tokenFloor * Int(1 << UInt64(min(attempts - 1, 5))), Limits.tokenRetryLongest)
    dueAt = now + (isStale && attempts <= Limits.tokenStaleTries ? min(wait, Limits.tokenStaleRetry) : wait)
  }

  /// The gateway has refused one: a first time may be for its age.
  mutating func refused() -> Bool {
    attempts += 1
    return attempts == 1
  }

  mutating func helped() { attempts = 0 }
}
