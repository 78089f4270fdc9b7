import TrunklineAppProtocol
public import TrunklineBytes
import TrunklineICE
import TrunklineTURN

/// TURN (docs/operate/nat.md#turn): our relayed candidate is added when no other candidate has reached the gateway soon. After a
/// path with all kinds of candidates has failed, the next path uses relays alone.
extension ClientMedia {
  /// The connection with this number is open: its TLS handshake is done, or its UDP socket has the server's address.
  public mutating func relayOpened(_ number: Int, at now: Instant, into output: inout Output) {
    relays.opened(number, at: now, into: &output)
    drainRelays(now, &output)
  }

  /// The connection has failed or ended, or could not be opened.
  public mutating func relayClosed(_ number: Int, _ why: String, at now: Instant, into output: inout Output) {
    relays.closed(number, why, at: now, into: &output)
    drainRelays(now, &output)
  }

  /// A datagram from a server, or a piece of its stream.
  public mutating func relayReceived(_ number: Int, _ bytes: [UInt8], at now: Instant, into output: inout Output) {
    var payloads: [(SocketAddress, ArraySlice<UInt8>)] = []
    let local = relays.received(number, bytes, at: now, into: &output) { payloads.append(($0, $1)) }
    drainRelays(now, &output)
    guard let local else { return }
    for (peer, payload) in payloads {
      var datagram = Array(payload)
      datagram.withUnsafeMutableBytes { receive($0, from: peer, to: local, at: now, into: &output) }
    }
  }

  // MARK: for this module

  /// The gateway's candidates are known: starts the relays now, or after `Limits.relayHeadStart`.
  mutating func prepareRelays(_ peers: [SocketAddress], _ now: Instant) {
    guard !configuration.relays.isEmpty else { return agent.endOfCandidates() }
    guard agent.state == .checking else { return }
    relays.prepare(
      configuration.relays, peers: peers, generation: path.number,
      startsAt: path.isRelayOnly ? now : now + Limits.relayHeadStart, random: random)
  }

  mutating func relayTimers(_ now: Instant, _ output: inout Output) {
    relays.handleTimeout(at: now, into: &output)
    drainRelays(now, &output)
  }

  /// Handles the events of the relays.
  private mutating func drainRelays(_ now: Instant, _ output: inout Output) {
    for event in relays.drainEvents() {
      switch event {
      case .ready(let address):
        // with an address of our own, packets for the socket would be sent to the server
        guard !configuration.localAddresses.contains(address) else {
          relays.closeCurrent(at: now, into: &output)
          exhausted(&output)
          continue
        }
        agent.addLocal(Candidate(address, .relayed))
      case .lost(let address, let why): lost(address, why, &output)
      case .exhausted: exhausted(&output)
      }
      checkPairs(now, &output)
    }
    for case .lost(let address, let why) in relays.drainFormerEvents() { lost(address, why, &output) }
  }

  private mutating func exhausted(_ output: inout Output) {
    if agent.hasPairs { agent.endOfCandidates() } else { failed(.ice, "no TURN server allocated a relay", &output) }
  }

  private mutating func lost(_ address: SocketAddress, _ why: String, _ output: inout Output) {
    // while the next path is being made, that path reports its own failure
    if agent.nominatedPair?.local == address, agent.state != .checking { output.reports.append(.failed(.ice, "TURN: \(why)")) }
  }
}
