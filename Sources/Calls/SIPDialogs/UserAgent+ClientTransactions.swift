import TrunklineBytes
import TrunklineSIP

/// Passes what happens to a client transaction on to its dialog, and requests of dialogs to transactions.
extension UserAgent {
  /// Sends a request and starts its transaction; nil if the table is full.
  mutating func beginClient(
    _ purpose: ClientTransaction.Purpose, method: Method, branch: String, leg: LegID?, trunk: String, over flow: Flow,
    bytes: [UInt8], content: RequestContent? = nil, answering realms: Set<DigestClient.Realm> = [], dialog: Dialog? = nil
  ) -> UInt64? {
    guard clients.hasRoom else { return nil }
    let id = identifiers.nextNumber()
    var client = ClientTransaction(
      purpose, ClientKey(branch: branch, method: method), leg: leg, trunk: trunk, over: flow, request: bytes)
    (client.content, client.answeredRealms, client.dialog) = (content, realms, dialog)
    clients.begin(id, client, &step)
    return id
  }

  /// ICMP or a lost connection.
  mutating func transportFailed(_ flow: Flow, _ peer: PeerFailure?, wasOpen: Bool) {
    // A connection that a peer opened to us cannot be opened by us: responses go to the port in Via, requests to the one in Contact.
    if flow.transport.isReliable {
      servers.connectionLost(to: flow.remote)
      legs.connectionLost(to: flow.remote)
    }
    for id in clients.open(on: flow) {
      guard let client = clients[id] else { continue }
      let (isInvite, leg) = (client.purpose == .invite, client.leg.flatMap { legs[$0]?.value })
      let failure = clients.transportFailed(
        id, peer, wasOpen: wasOpen, failsOver: isInvite && leg.map { $0.cancel == .none && $0.hasAnotherTarget } ?? false,
        next: isInvite ? nil : leg?.flow, &step)
      if let failure { clientFailed(failure) }
    }
  }

  /// A response from the network, matched by RFC 3261 §17.1.3.
  mutating func received(response message: Message, _ flow: Flow, _ trunk: String) {
    let envelope: Envelope
    do throws(ParseError) { envelope = try message.checked() } catch { return step.counters.drop(.malformedResponse) }
    guard let code = message.statusCode, let branch = envelope.via.branch,
      let id = clients.transaction(of: ClientKey(branch: message.text(branch), method: envelope.cseq.method)),
      let client = clients[id],
      trunks.accounts.mayBeOne(client.trunk, trunk) || flow.remote == client.flow.remote, (try? message.vias.count) == 1
    else { return step.counters.drop(.strayResponse) }
    // Only the address that we sent the request to may ask for a password; another member of the trunk cannot end the request
    // with a challenge, either.
    guard (code != 401 && code != 407) || flow.remote.ip == client.flow.remote.ip else {
      return step.counters.drop(.strayResponse)
    }
    step.counters.received(envelope.cseq.method, code, trunk: client.trunk)
    let tag = envelope.to.tag.map(message.text) ?? ""
    switch clients.received(id, code, toTag: tag, &step) {
    case .absorbed: break
    case .provisional: inviteProgressed(id, client: client, message, envelope, code: code)
    case .accepted:
      if client.purpose == .reinvite { reinviteAccepted(id, message, envelope) } else { inviteAccepted(id, message, envelope) }
    case .acceptedOtherwise:
      // the first 2xx again, while its ACK waits for our answer to the offer in it
      if let leg = client.leg.flatMap({ legs[$0]?.value }), leg.offers.awaitsAcknowledgement, leg.dialog.remoteTag == tag {
        return
      }
      if client.purpose == .invite || client.purpose == .abandoned { endFork(id, message, envelope) }
    case .refused:
      clients.acknowledge(refused: id, acknowledgement(of: client, message), &step)
      if client.purpose == .reinvite { finished(client, code: code, message) } else { inviteRefused(client, message, code: code) }
    case .final:
      if code == 401 || code == 407, retryInDialog(client, message) { return }
      finished(client, code: code, message)
    }
  }
}
