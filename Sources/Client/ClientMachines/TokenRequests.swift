import TrunklineBytes

/// When the app's token function is called: at most once in `Limits.tokenFloor`, whatever needs a token, and less and less often
/// while its tokens do not help.
struct TokenRequests {
  private(set) var isAsked = false
  /// When it is called next without another reason.
  private(set) var dueAt: Instant?
  private(set) var attempts = 0
  private var askedAt: Instant?

  /// A request failed, and nothing but time has passed since.
  var isWaiting: Bool { dueAt != nil }

  /// - Returns: whether to ask now; if not, the request is due later, or under way.
  mutating func ask(at now: Instant) -> Bool {
    guard !isAsked else {
      dueAt = nil
      return false
    }
    if let askedAt, now < askedAt + Limits.tokenFloor {
      dueAt = askedAt + Limits.tokenFloor
      return false
    }
    isAsked = true
    dueAt = nil
    askedAt = now
    return true
  }

  mutating func answered() { (isAsked, dueAt) = (false, nil) }

  /// The app returned no token, or one that did not help.
  /// - Parameter isStale: the app returned the current token. A backend that keeps each token until it expires issues the next
  ///   one at that moment, and the request must fall within the gateway's leeway of 30 s: from the announcement to the end of the
  ///   leeway the wait does not grow beyond `tokenStaleRetry`.
  mutating func failed(at now: Instant, isStale: Bool = false) {
    isAsked = false
    attempts += 1
    let wait = min(Limits.tokenFloor * Int(1 << UInt64(min(attempts - 1, 5))), Limits.tokenRetryLongest)
    dueAt = now + (isStale && attempts <= Limits.tokenStaleTries ? min(wait, Limits.tokenStaleRetry) : wait)
  }

  /// The gateway has refused a token. True for the first refusal, which may be due to the token's age.
  mutating func refused() -> Bool {
    attempts += 1
    return attempts == 1
  }

  mutating func helped() { attempts = 0 }
}
