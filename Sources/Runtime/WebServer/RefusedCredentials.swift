import TrunklineBytes

/// Bad credentials by address (an IPv4 address, an IPv6 /64). An address without bad ones is never slowed down.
///
/// | an address | event | next |
/// |---|---|---|
/// | below its bound | credentials are refused | one more counts, for a second over the rate |
/// | at its bound | sends credentials | refused unchecked, until its rate permits another check |
///
/// Memory: an entry for each address with recent bad credentials, `sources` at most; further addresses share one bound.
struct RefusedCredentials {
  static let retrySeconds = 1
  private static let sources = 4_096
  private var known: [IPAddress: TokenBucket] = [:]
  /// The bucket of addresses that have no entry.
  private var others = TokenBucket(perSecond: Limits.refusedCredentialsInAll)

  /// Whether credentials of this address may be checked.
  func admits(_ address: IPAddress, at now: Instant) -> Bool {
    known[address.subscriber]?.has(at: now) ?? (known.count < Self.sources || others.has(at: now))
  }

  /// Credentials of this address were refused.
  mutating func note(_ address: IPAddress, at now: Instant) {
    let source = address.subscriber
    if known[source] == nil, known.count >= Self.sources { known = known.filter { !$0.value.isFull(at: now) } }
    guard known[source] != nil || known.count < Self.sources else { return others.spend(at: now) }
    known[source, default: TokenBucket(perSecond: Limits.refusedCredentials, at: now)].spend(at: now)
  }
}
