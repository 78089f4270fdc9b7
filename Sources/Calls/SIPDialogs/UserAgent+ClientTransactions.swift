import TrunklineBytes
import TrunklineSIP

extension UserAgent {
  /// Sends a request and starts its machine; false if the table is full.
  mutating func beginClient(
    _ purpose: ClientTransaction.Purpose, _ method: Method, branch: String, leg: LegID?, trunk: String, _ flow: Flow,
    _ bytes: [UInt8], content: RequestContent? = nil, dialog: Dialog? = nil
  ) -> UInt64? {
    guard clients.count < Limits.clientTransactions else { return nil }
    let id = nextNumber()
    let key = ClientKey(branch: branch, method: method)
    var client = ClientTransaction(
      key: key, purpose: purpose, leg: leg, trunk: trunk, flow: flow, isReliable: flow.transport.isReliable, request: bytes)
    (client.content, client.dialog) = (content, dialog)
    clients[id] = Box(client)
    clientIndex[key] = id
    counters.requestsSent[method, default: 0] += 1
    send(bytes, flow)
    if flow.transport == .udp { timers.schedule(.client(id, .retransmission), at: now + Interval.t1) }
    timers.schedule(.client(id, .end), at: now + Interval.transaction)
    return id
  }

  mutating func clientTimer(_ id: UInt64, _ timer: ClientTimer) {
    guard let client = clients[id]?.value else { return }
    switch timer {
    case .retransmission:
      guard client.phase == .calling || (client.phase == .proceeding && !client.isInvite) else { return }
      counters.retransmissionsSent += 1
      send(client.request, client.flow)
      // A doubles without bound (RFC 3261 §17.1.1.2), E up to T2 and is T2 once there was a provisional (§17.1.2.2).
      var interval = client.interval * 2
      if !client.isInvite { interval = client.phase == .proceeding ? Interval.t2 : min(interval, Interval.t2) }
      clients[id]?.value.interval = interval
      timers.schedule(.client(id, .retransmission), at: now + interval)
    case .end:
      let isUnanswered = client.phase == .calling || client.phase == .proceeding
      endClient(id)
      guard isUnanswered else { return }
      // The connection accepted the request and no answer came: no further request may end like that.
      if client.isReliable, client.phase == .calling { output.silent.append((client.flow, since: now - Interval.transaction)) }
      clientFailed(client, code: 408, byTransport: false)
    case .unreachable:
      guard client.phase == .calling else { return }
      endClient(id)
      clientFailed(client, code: 503, byTransport: true)
    }
  }

  /// ICMP or a lost connection. A transaction that has had an answer waits for the rest: it may come on a new connection.
  mutating func transportFailed(_ flow: Flow, _ peer: PeerFailure?, wasOpen: Bool) {
    if flow.transport.isReliable { connectionLost(flow.remote) }
    let failed = clients.mapValues(\.value).filter { _, client in
      client.flow.transport == flow.transport && client.flow.remote == flow.remote
        && (client.phase == .calling || (client.phase == .proceeding && !client.isInvite))
    }
    for id in failed.keys.sorted() {
      guard let client = clients[id]?.value else { continue }
      clients[id]?.value.peerFailure = peer
      if staysOpen(id, client, wasOpen: wasOpen), clients[id] != nil { continue }
      guard let client = clients[id]?.value else { continue }
      endClient(id)
      clientFailed(client, code: 503, byTransport: true)
    }
  }

  /// Whether a request stays open after one of its packets, or its connection, was lost.
  private mutating func staysOpen(_ id: UInt64, _ client: ClientTransaction, wasOpen: Bool) -> Bool {
    guard client.flow.transport == .udp else {
      guard wasOpen, client.phase == .calling, !client.isResent else { return false }
      clients[id]?.value.isResent = true
      if let leg = client.leg.flatMap({ legs[$0]?.value }), client.purpose != .invite { clients[id]?.value.flow = leg.flow }
      if let flow = clients[id]?.value.flow {
        counters.retransmissionsSent += 1
        send(client.request, flow)
      }
      return true
    }
    if client.phase == .proceeding || client.purpose == .bye || client.wasRefused { return true }
    // Another server, or another trunk, is tried at once.
    let leg = client.leg.flatMap { legs[$0]?.value }
    if client.purpose == .invite, let leg, leg.cancel == .none, hasAnotherTarget(leg) { return false }
    clients[id]?.value.wasRefused = true
    timers.schedule(.client(id, .unreachable), at: now + Interval.silence)
    return true
  }

  /// A connection that a peer opened to us was lost; its port cannot be connected to. Responses go to the port in Via, requests
  /// to the one in Contact, on new connections.
  private mutating func connectionLost(_ remote: SocketAddress) {
    for id in servers.keys {
      guard let reply = servers[id]?.value.reply, reply.flow.transport.isReliable, reply.flow.remote == remote else { continue }
      servers[id]?.value.reply?.flow.remote = reply.fallback
    }
    for (id, box) in legs where box.value.flow.transport.isReliable {
      if let home = box.value.home, home.remote == remote {
        let next = listening(home, of: id, box.value.dialog)
        legs[id]?.value.home = next
      }
      guard box.value.flow.remote == remote else { continue }
      let flow = legs[id]?.value.home ?? listening(box.value.flow, of: id, box.value.dialog)
      legs[id]?.value.flow = flow
      legs[id]?.value.home = nil
      legs[id]?.value.answer?.flow = flow
      legs[id]?.value.dialog.followsConnection = nil
    }
  }

  /// The peer's listening address after a lost connection: its Contact, if that is the same host. For a connection that we opened
  /// it is the flow itself.
  private func listening(_ flow: Flow, of id: LegID, _ dialog: Dialog) -> Flow {
    guard !id.isOutbound, let target = address(of: dialog.remoteTarget), target.ip == flow.remote.ip else { return flow }
    var flow = flow
    flow.remote = target
    return flow
  }

  mutating func endClient(_ id: UInt64) {
    guard let client = clients.removeValue(forKey: id)?.value else { return }
    if clientIndex[client.key] == id { clientIndex[client.key] = nil }
    timers.cancel(.client(id, .retransmission))
    timers.cancel(.client(id, .end))
    timers.cancel(.client(id, .unreachable))
  }

  /// The final response arrived: no more retransmissions, and the state stays to absorb those of the peer.
  private mutating func completeClient(_ id: UInt64, _ phase: ClientTransaction.Phase) {
    guard let client = clients[id]?.value else { return }
    clients[id]?.value.phase = phase
    timers.cancel(.client(id, .retransmission))
    if phase == .accepted {
      timers.schedule(.client(id, .end), at: now + Interval.transaction)
    } else if client.isReliable {
      endClient(id)
    } else {
      timers.schedule(.client(id, .end), at: now + (client.isInvite ? Interval.d : Interval.t4))
    }
  }

  /// A response from the network, matched by RFC 3261 §17.1.3.
  mutating func received(response message: Message, _ flow: Flow, _ trunk: String) {
    let envelope: Envelope
    do throws(ParseError) { envelope = try message.checked() } catch { return counters.drop(.malformedResponse) }
    guard let code = message.statusCode, let branch = envelope.via.branch,
      let id = clientIndex[ClientKey(branch: message.text(branch), method: envelope.cseq.method)],
      let client = clients[id]?.value,
      accounts.mayBeOne(client.trunk, trunk) || flow.remote == client.flow.remote, (try? message.vias.count) == 1
    else { return counters.drop(.strayResponse) }
    // Only the address that we sent the request to may ask for a password; another member of the trunk cannot end the request
    // with a challenge, either.
    guard (code != 401 && code != 407) || flow.remote.ip == client.flow.remote.ip else { return counters.drop(.strayResponse) }
    counters.received(envelope.cseq.method, code, trunk: client.trunk)
    if client.isInvite { return received(inviteResponse: message, envelope, code, id, client) }
    guard client.phase == .calling || client.phase == .proceeding else { return }
    if code < 200 {
      clients[id]?.value.phase = .proceeding
      return
    }
    completeClient(id, .completed)
    if code == 401 || code == 407, retryInDialog(client, message) { return }
    finished(client, code, message)
  }

  private mutating func received(
    inviteResponse message: Message, _ envelope: Envelope, _ code: Int, _ id: UInt64, _ client: ClientTransaction
  ) {
    switch (client.phase, code) {
    case (.calling, 100..<200), (.proceeding, 100..<200):
      clients[id]?.value.phase = .proceeding
      timers.cancel(.client(id, .retransmission))
      if client.purpose == .reinvite { return timers.schedule(.client(id, .end), at: now + Interval.reinvite) }
      timers.cancel(.client(id, .end))
      inviteProgressed(client, message, envelope, code)
    case (.calling, 200..<300), (.proceeding, 200..<300):
      completeClient(id, .accepted)
      if client.purpose == .reinvite { reinviteAccepted(id, message, envelope) } else { inviteAccepted(id, message, envelope) }
    case (.accepted, 200..<300):
      let tag = envelope.to.tag.map(message.text) ?? ""
      if let known = client.acknowledgements[tag] {
        counters.retransmissionsSent += 1
        send(known.bytes, known.flow)
      } else {
        // the first 2xx again, while its ACK waits for our answer to the offer in it
        if let leg = client.leg.flatMap({ legs[$0]?.value }), leg.awaitsAcknowledgement, leg.dialog.remoteTag == tag { return }
        if client.purpose == .invite || client.purpose == .abandoned { endFork(id, message, envelope) }
      }
    case (.calling, 300...), (.proceeding, 300...):
      let bytes = acknowledgement(of: client, message)
      clients[id]?.value.acknowledgement = bytes
      counters.requestsSent[.ack, default: 0] += 1
      send(bytes, client.flow)
      completeClient(id, .completed)
      if client.purpose == .reinvite { finished(client, code, message) } else { inviteRefused(client, message, code) }
    case (.completed, 300...):
      if let bytes = client.acknowledgement {
        counters.retransmissionsSent += 1
        send(bytes, client.flow)
      }
    default: break
    }
  }
}
