public import Bytes

/// When the keys that tokens are checked with are fetched from their URL, and for how long those that are here count.
///
/// | after | the next fetch is |
/// |---|---|
/// | a good answer | when it is no longer fresh by its Cache-Control, but in a minute at the earliest and an hour at the latest; ten minutes where it does not say |
/// | a failure | in 1 s, 2 s, 4 s … up to a minute |
/// | a token with a key that is not here | at once, but ten seconds after the last fetch began at the earliest |
///
/// Keys count for a day after the fetch that brought them, whatever has failed since: an issuer that is down for a night locks no app out, and one
/// whose key was stolen knows when it is good for nothing at a gateway that cannot be reached.
public struct KeyRefresh: Sendable {
  /// When to fetch; `.distantFuture` while a fetch is under way.
  public private(set) var next: Instant
  /// When the keys that are here count no more; nil: there are none.
  public private(set) var expiry: Instant?
  private var beganAt: Instant?
  private var failures = 0

  public init(at now: Instant) { next = now }

  /// A fetch has begun; it ends with `fetched` or `failed`.
  public mutating func began(at now: Instant) { (beganAt, next) = (now, .distantFuture) }

  /// - Parameter freshSeconds: as the answer says.
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

  /// A token names a key that is not here.
  public mutating func wanted(at now: Instant) {
    // one is under way, and `next` stands for its end
    guard next != .distantFuture else { return }
    next = min(next, max(now, (beganAt ?? .zero) + Limits.keysWantedAgain))
  }

  /// The keys that were here count no more.
  public mutating func expired() { expiry = nil }
}
