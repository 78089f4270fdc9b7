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
  mutating func failed(at now: Instant) {
    isAsked = false
    attempts += 1
    dueAt = now + min(Limits.tokenFloor * Int(1 << UInt64(min(attempts - 1, 5))), Limits.tokenRetryLongest)
  }

  /// The gateway has refused one: a first time may be for its age.
  mutating func refused() -> Bool {
    attempts += 1
    return attempts == 1
  }

  mutating func helped() { attempts = 0 }
}
