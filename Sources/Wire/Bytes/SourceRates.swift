/// A rate limit per second for each source, and for all sources together. IPv6 counts by /64 (`IPAddress.subscriber`).
///
///     var rates = SourceRates(perSource: 10, inAll: 200)
///     rates.consume(address, at: now)     // false: this source, or all together, exceed the rate
///
/// Remembers at most `sources` sources; when the table is full it forgets them all, and at that moment only the total rate
/// holds. Costs a dictionary access per call.
public struct SourceRates: Sendable {
  private let perSource: Int
  private let most: Int
  private var known: [IPAddress: TokenBucket] = [:]
  private var all: TokenBucket

  public init(perSource: Int, inAll: Int, sources: Int = 4_096) {
    (self.perSource, most, all) = (perSource, sources, TokenBucket(perSecond: inAll))
  }

  /// Sources that are remembered now.
  public var count: Int { known.count }

  /// False if the rate is exceeded. A request that exceeds its source's rate does not count for the total.
  public mutating func consume(_ source: IPAddress, at now: Instant) -> Bool {
    let source = source.subscriber
    if known[source] == nil, known.count >= most { known.removeAll(keepingCapacity: true) }
    guard known[source, default: TokenBucket(perSecond: perSource, at: now)].consume(at: now) else { return false }
    return all.consume(at: now)
  }
}

extension IPAddress {
  /// The address by which a subscriber is counted: an IPv4 address, or the first 64 bits of an IPv6 address, because one host
  /// can use all addresses with the same 64 bits.
  public var subscriber: IPAddress {
    let address = unmapped
    return address.family == .v4 ? address : address.masked(to: 64)
  }
}
