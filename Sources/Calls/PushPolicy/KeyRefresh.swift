public import TrunklineBytes

/// When the keys that check tokens are fetched from their URL, and how long fetched keys are valid.
///
/// | after | the next fetch is |
/// |---|---|
/// | a good answer | when it is stale by its Cache-Control, but in a minute at the earliest and an hour at the latest; in ten minutes without Cache-Control |
/// | a failure | in 1 s, 2 s, 4 s … up to a minute |
/// | a token with an unknown key | at once, but ten seconds after the last fetch began at the earliest |
///
/// Keys are valid for a day after the fetch that brought them began, even if later fetches fail: an issuer that is down for a
/// night locks no app out, and an issuer whose key was stolen knows when a gateway that cannot be reached stops accepting it.
public struct KeyRefresh: Sendable {
  /// When to fetch; `.distantFuture` during a fetch.
  public private(set) var next: Instant
  /// When the keys expire; nil: there are none.
  public private(set) var expiry: Instant?
  private var beganAt: Instant?
  private var failures = 0

  public init(at now: Instant) { next = now }

  /// A fetch has begun; `fetched` or `failed` ends it.
  public mutating func began(at now: Instant) { (beganAt, next) = (now, .distantFuture) }

  /// - Parameter freshSeconds: from the answer's Cache-Control; nil without one.
  public mutating func fetched(freshSeconds: Int?, at now: Instant) {
    failures = 0
    let fresh = Duration.seconds(min(freshSeconds ?? Int(Limits.keysFresh.milliseconds / 1_000), 1 << 31))
    next = now + min(max(fresh, Limits.keysFreshLeast), Limits.keysFreshMost)
    expiry = (beganAt ?? now) + Limits.keysKept
  }

  public mutating func failed(at now: Instant) {
    next = now + min(.seconds(1 << min(failures, 10)), Limits.keysRetryMost)
    failures += 1
  }

  /// A token names an unknown key.
  public mutating func wanted(at now: Instant) {
    // a fetch is under way, and its end sets `next`
    guard next != .distantFuture else { return }
    next = min(next, max(now, (beganAt ?? .zero) + Limits.keysWantedAgain))
  }

  /// The keys have expired.
  public mutating func expired() { expiry = nil }
}
