import TrunklineAppProtocol
public import TrunklineBytes
import TrunklineICE
public import TrunklineTURN

/// TURN (docs/operate/nat.md#turn): our relayed candidate is added when no other candidate has reached the gateway soon. After a
/// path with all kinds of candidates has failed, the next path uses relays alone.
extension ClientMedia {
  /// TURN servers for the next generation; the current ones stay in use until then.
  public mutating func use(relays servers: [TURNServer]) { configuration.relays = servers }

  /// The connection with this number is open: its TLS handshake is done, or its UDP socket has the server's address.
  public mutating func relayOpened(_ number: Int, at now: Instant, into output: inout Output) {
    if relays?.has(number) == true { relays?.opened(number, at: now, into: &output) }
    drainRelays(now, &output)
  }

  /// The connection has failed or ended, or could not be opened.
  public mutating func relayClosed(_ number: Int, _ why: String, at now: Instant, into output: inout Output) {
    if relays?.has(number) == true {
      relays?.closed(number, why, at: now, into: &output)
    } else if lastRelays?.has(number) == true {
      lastRelays?.closed(number, why, at: now, into: &output)
    }
    drainRelays(now, &output)
  }

  /// A datagram from a server, or a piece of its stream.
  public mutating func relayReceived(_ number: Int, _ bytes: [UInt8], at now: Instant, into output: inout Output) {
    var payloads: [(SocketAddress, ArraySlice<UInt8>)] = []
    let local: SocketAddress?
    if relays?.has(number) == true {
      relays?.received(number, bytes, at: now, into: &output) { payloads.append(($0, $1)) }
      local = relays?.relayed
    } else {
      lastRelays?.received(number, bytes, at: now, into: &output) { payloads.append(($0, $1)) }
      local = lastRelays?.relayed
    }
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
    guard relays == nil, !configuration.relays.isEmpty, agent.state == .checking else {
      if configuration.relays.isEmpty { agent.endOfCandidates() }
      return
    }
    let first = generation &* Limits.relayConnections
    relays = ClientRelays(configuration.relays, peers: peers, firstNumber: first, random: random)
    relaysDue = isRelayOnly ? now : now + Limits.relayHeadStart
  }

  /// Keeps the allocation that media uses until the next pair is nominated.
  mutating func renewRelays(_ now: Instant, _ output: inout Output) {
    relaysDue = nil
    guard let relayed = relays?.relayed, agent.nominatedPair?.local == relayed else {
      relays?.close(at: now, into: &output)
      return relays = nil
    }
    lastRelays?.close(at: now, into: &output)
    (lastRelays, relays, lastRelaysDue) = (relays, nil, nil)
  }

  mutating func relayTimers(_ now: Instant, _ output: inout Output) {
    if let due = relaysDue, due <= now {
      relaysDue = nil
      relays?.start(at: now, into: &output)
    }
    relays?.handleTimeout(at: now, into: &output)
    lastRelays?.handleTimeout(at: now, into: &output)
    if let due = lastRelaysDue, due <= now {
      lastRelays?.close(at: now, into: &output)
      (lastRelays, lastRelaysDue) = (nil, nil)
    }
    drainRelays(now, &output)
  }

  mutating func closeRelays(_ now: Instant, _ output: inout Output) {
    relays?.close(at: now, into: &output)
    lastRelays?.close(at: now, into: &output)
    (relays, lastRelays, relaysDue, lastRelaysDue) = (nil, nil, nil, nil)
  }

  var relayDeadline: Instant? {
    mutating get {
      var due = relaysDue
      func consider(_ other: Instant?) { if let other { due = min(due ?? other, other) } }
      consider(relays?.nextDeadline)
      consider(lastRelays?.nextDeadline)
      consider(lastRelaysDue)
      return due
    }
  }

  /// Handles the events of the relays.
  private mutating func drainRelays(_ now: Instant, _ output: inout Output) {
    for event in relays?.drainEvents() ?? [] {
      switch event {
      case .ready(let address):
        // with an address of our own, packets for the socket would be sent to the server
        guard !configuration.localAddresses.contains(address) else {
          relays?.close(at: now, into: &output)
          relays = nil
          exhausted(&output)
          continue
        }
        agent.addLocal(Candidate(address, .relayed))
      case .lost(let address, let why): lost(address, why, &output)
      case .exhausted: exhausted(&output)
      }
      if remote != nil { agent.handleTimeout(at: now, into: &iceOutput) }
      handleICE(now, &output)
    }
    for case .lost(let address, let why) in lastRelays?.drainEvents() ?? [] { lost(address, why, &output) }
  }

  private mutating func exhausted(_ output: inout Output) {
    if agent.hasPairs { agent.endOfCandidates() } else { failed(.ice, "no TURN server allocated a relay", &output) }
  }

  private mutating func lost(_ address: SocketAddress, _ why: String, _ output: inout Output) {
    // while the next path is being made, that path reports its own failure
    if agent.nominatedPair?.local == address, agent.state != .checking { output.reports.append(.failed(.ice, "TURN: \(why)")) }
  }

  /// Media has a path: releases the relay if media does not use it, and the previous one after `Limits.relayFarewell`.
  mutating func releaseUnusedRelays(_ pair: CandidatePair, _ now: Instant, _ output: inout Output) {
    if pair.local == relays?.relayed {
      relays?.bind(pair.remote, at: now, into: &output)
    } else if agent.state == .connected {
      relays?.close(at: now, into: &output)
      relays = nil
    }
    relaysDue = nil
    if lastRelays != nil { lastRelaysDue = now + Limits.relayFarewell }
  }

  /// If a path with all kinds of candidates has never connected, the next one uses relays alone: a firewall may pass checks and
  /// drop everything after them.
  mutating func failed(_ stage: MediaFail.Stage, _ why: String, _ output: inout Output) {
    if connectedReportedGeneration < generation { isNextRelayOnly = !isRelayOnly }
    output.reports.append(.failed(stage, why))
  }

  /// Sends through the socket that has `local`, or through the relay.
  mutating func emit(
    _ bytes: UnsafeRawBufferPointer, from local: SocketAddress, to remote: SocketAddress, _ output: inout Output
  ) {
    if let relayed = relays?.relayed, relayed == local {
      relays?.send(bytes, to: remote, into: &output)
    } else if let relayed = lastRelays?.relayed, relayed == local {
      lastRelays?.send(bytes, to: remote, into: &output)
    } else {
      output.send(bytes, from: local, to: remote)
    }
  }
}
