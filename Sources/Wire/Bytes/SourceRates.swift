/// How often each source may have its way in a second, and all of them together. IPv6 counts by /64 (`IPAddress.subscriber`).
///
///     var rates = SourceRates(perSource: 10, inAll: 200)
///     rates.take(address, at: now)        // false: this source, or all of them, have had their share of the second
///
/// Remembers `sources` of them; when that many are known it forgets them all, and what holds then is the rate in all.
/// A dictionary access per call.
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

  /// What a source is refused is not taken from the others.
  public mutating func consume(_ source: IPAddress, at now: Instant) -> Bool {
    let source = source.subscriber
    if known[source] == nil, known.count >= most { known.removeAll(keepingCapacity: true) }
    guard known[source, default: TokenBucket(perSecond: perSource, at: now)].consume(at: now) else { return false }
    return all.consume(at: now)
  }
}

extension IPAddress {
  /// What stands for one subscriber when sources are counted: an IPv4 address, or the first 64 bits of an IPv6 address, of which one
  /// host can use every other one.
  public var subscriber: IPAddress {
    let address = unmapped
    return address.family == .v4 ? address : address.masked(to: 64)
  }
}
