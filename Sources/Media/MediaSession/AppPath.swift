import TrunklineBytes
import TrunklineICE

/// The address and the socket of an app's packets: its ICE pair.
///
/// | input | effect |
/// |---|---|
/// | `validated` before a nomination | sent to from now on |
/// | `validated` after it | – |
/// | `nominated` | sent to from now on |
/// | `received` from the pair | it is not silent; true |
/// | `move` to an address that was checked since the pair fell silent, a second ago | sent to from now on |
/// | `move`, the fifth valid packet in a row from an unchecked address, the pair silent for 2.5 s | sent to from now on |
/// | `move` else, or without a nomination | nil |
/// | `startOver` | no address, no nomination |
struct AppPath {
  /// The nominated pair's, before a nomination the last validated address's.
  private(set) var route = PacketRoute(raw: -1)
  private(set) var isNominated = false
  private(set) var address: SocketAddress?
  /// When the last valid packet from `address` arrived.
  private var lastReceived = Instant.zero
  /// The address of the last valid packets that were not from `address`, and how many came in a row.
  private var elsewhere: (address: SocketAddress, count: Int)?

  mutating func validated(_ source: SocketAddress, _ route: PacketRoute) {
    if !isNominated { (address, self.route) = (source, route) }
  }

  mutating func nominated(_ source: SocketAddress, _ route: PacketRoute) {
    address = source
    self.route = route
    isNominated = true
  }

  /// Records authenticated STUN, or SRTP with a valid tag or a copy of it; false if it is from another address. HOT
  @inline(__always) @discardableResult mutating func received(from source: SocketAddress, at now: Instant) -> Bool {
    guard source == address else { return false }
    lastReceived = now
    return true
  }

  /// After a NAT gave the app another port, its checks come from there and need not nominate (Chromium's do after 2.5 s, others'
  /// never). Its packets cannot be forged, and a copy counts as replayed; a check could be a copy. So both must arrive, and
  /// nothing may have come from the old address for a second. Some apps send no checks in a call (libnice before 0.1.22): for
  /// them five packets in a row count, after a longer silence.
  /// - Returns: the new pair, if `source` is used from now on.
  mutating func move(to source: SocketAddress, _ route: PacketRoute, agent: inout LiteAgent, at now: Instant)
    -> LiteAgent.Nomination?
  {
    guard isNominated, now - lastReceived >= Limits.sourceSilence else { return nil }
    let hasSettled = settled(at: source)
    guard
      let nomination = agent.follow(source, silentSince: lastReceived)
        ?? (hasSettled && now - lastReceived >= Limits.uncheckedSilence ? agent.followUnchecked(source) : nil)
    else { return nil }
    address = source
    self.route = route
    lastReceived = now
    elsewhere = nil
    return nomination
  }

  /// Whether at least the last five packets from another address came from this one.
  private mutating func settled(at source: SocketAddress) -> Bool {
    guard let before = elsewhere, before.address == source else {
      elsewhere = (source, 1)
      return false
    }
    elsewhere = (source, min(before.count + 1, Limits.agreeingPackets))
    return before.count + 1 >= Limits.agreeingPackets
  }

  mutating func startOver() { (address, isNominated) = (nil, false) }
}
