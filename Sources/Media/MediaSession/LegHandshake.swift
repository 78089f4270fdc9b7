import TrunklineBytes

/// A leg's DTLS associations: the number of the present one, and the address of its datagrams.
///
/// | state | input | effect |
/// |---|---|---|
/// | not started | `start` | our first flight goes there; returns true |
/// | started | `start` again | retransmissions go there; false |
/// | any | `received` within the budget | answers go to its source; true |
/// | any | `received` beyond `Limits.handshakeDatagramsPerSecond` | false |
/// | any | `fail` | failed; true the first time |
/// | any | `replace` | a new number; neither started nor failed. Results with another number are not `isCurrent` |
struct LegHandshake {
  private(set) var association: UInt32 = 0
  /// Our ClientHello of this association was requested.
  private var isStarted = false
  private var hasFailed = false
  private var budget = RateLimit(perSecond: Limits.handshakeDatagramsPerSecond, burst: Limits.handshakeDatagramBurst)
  private(set) var route = PacketRoute(raw: -1)
  /// The source of the last datagram, or the address of our first flight.
  private(set) var address: SocketAddress?

  func isCurrent(_ association: UInt32) -> Bool { association == self.association }

  mutating func start(toward address: SocketAddress, _ route: PacketRoute) -> Bool {
    self.address = address
    self.route = route
    guard !isStarted else { return false }
    isStarted = true
    return true
  }

  mutating func received(from source: SocketAddress, _ route: PacketRoute, at now: Instant) -> Bool {
    guard budget.consume(at: now) else { return false }
    address = source
    self.route = route
    return true
  }

  mutating func fail() -> Bool {
    guard !hasFailed else { return false }
    hasFailed = true
    return true
  }

  mutating func replace() {
    association &+= 1
    isStarted = false
    hasFailed = false
  }
}
