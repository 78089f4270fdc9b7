import Bytes
import SIP

extension UserAgent {
  /// Makes an outbound leg and sends its INVITE.
  mutating func startInvite(_ id: LegID, _ invite: OutboundInvite) {
    guard legs[id] == nil else { return }
    guard legs.count < Limits.legs, clients.count < Limits.clientTransactions else {
      emit(.failed(id, code: 503, cause: nil, byTransport: false))
      return emit(.legClosed(id))
    }
    let tag = newTag()
    let flow = invite.trunk.flow
    let target = "sip:\(percentEncodedUser(invite.to))@\(invite.trunk.domain)"
    let dialog = Dialog(
      callID: invite.callID ?? newCallID(), localTag: tag, localParty: fromParty(invite, tag: tag), remoteParty: "<\(target)>",
      remoteTarget: target + flow.transport.uriParameter,
      localSequence: UInt32(truncatingIfNeeded: random.next() & 0xffff) + 1)
    var leg = Leg(
      id: id, trunk: invite.trunk.name, phase: .calling, flow: flow, dialog: dialog, inviteTransaction: nil,
      inviteSequence: dialog.localSequence)
    leg.invite = invite
    leg.target = invite.trunk.target
    leg.further = invite.trunk.further.prefix(Limits.targets)
    legs[id] = leg
    dialogs[dialog.key] = id
    sendInvite(id)
  }

  /// The INVITE with its next branch; with credentials once there is a challenge.
  mutating func sendInvite(_ id: LegID) {
    guard var leg = legs[id], let invite = leg.invite else { return }
    let branch = newBranch(for: invite.to)
    let cnonce = newTag()
    let authorization = legs[id]?.digest?.authorization(method: .invite, uri: leg.dialog.remoteTarget, cnonce: cnonce)
    var bytes = inviteBytes(leg, invite, branch: branch, authorization: authorization.map { ($0.name, $0.value) })
    if bytes.count > Limits.datagramRequestBytes, leg.flow.transport == .udp, !leg.isSmallOnly, let large = leg.target?.large {
      (leg.flow, leg.isLarge) = (large, true)
      legs[id]?.flow = large
      legs[id]?.isLarge = true
      bytes = inviteBytes(leg, invite, branch: branch, authorization: authorization.map { ($0.name, $0.value) })
    }
    guard let transaction = beginClient(.invite, .invite, branch: branch, leg: id, trunk: leg.trunk, leg.flow, bytes) else {
      return fail(id, code: 503, cause: nil, byTransport: false)
    }
    legs[id]?.inviteTransaction = transaction
    if hasAnotherTarget(leg) { timers.set(.leg(id, .silence), at: now + Interval.silence) }
  }

  /// CANCEL at once, or as soon as there is a provisional response.
  mutating func cancel(_ id: LegID, _ reason: ReasonValue?) {
    guard let leg = legs[id] else { return }
    if leg.phase == .confirmed { return sendBye(id, reason) }
    guard leg.phase == .calling, leg.cancel == .none else { return }
    legs[id]?.cancel = .waiting(reason)
    if let transaction = leg.inviteTransaction, clients[transaction]?.phase == .proceeding { sendCancel(id) }
  }

  private mutating func sendCancel(_ id: LegID) {
    guard let leg = legs[id], case .waiting(let reason) = leg.cancel, let transaction = leg.inviteTransaction,
      let client = clients[transaction]
    else { return }
    legs[id]?.cancel = .sent
    let bytes = cancellation(of: client, reason)
    _ = beginClient(.cancel, .cancel, branch: client.key.branch, leg: nil, trunk: leg.trunk, client.flow, bytes)
    timers.set(.leg(id, .cancelled), at: now + Interval.transaction)
  }

  /// No final response to a cancelled INVITE: the peer does not know CANCEL, or is gone (RFC 3261 §9.1).
  mutating func cancelTimedOut(_ id: LegID) {
    guard let leg = legs[id], leg.phase == .calling else { return }
    if let transaction = leg.inviteTransaction { endClient(transaction) }
    fail(id, code: 408, cause: nil, byTransport: false)
  }

  mutating func fail(_ id: LegID, code: Int, cause: ReasonValue?, byTransport: Bool) {
    emit(.failed(id, code: code, cause: cause, byTransport: byTransport))
    close(id)
  }

  mutating func inviteProgressed(_ client: ClientTransaction, _ message: Message, _ code: Int) {
    if client.purpose == .abandoned { return cancelAbandoned(client) }
    guard let id = client.leg, let leg = legs[id], leg.phase == .calling else { return }
    if case .waiting = leg.cancel { sendCancel(id) }
    guard leg.cancel == .none else { return }
    var sdp: String?
    if case .sdp(let text)? = try? message.sessionBody { sdp = text }
    emit(.progress(id, code: code, sdp: sdp))
  }

  /// The first 2xx makes the dialog (RFC 3261 §12.1.2, §13.2.2.4).
  mutating func inviteAccepted(_ transaction: UInt64, _ message: Message, _ envelope: Envelope) {
    guard let client = clients[transaction], let id = client.leg, let leg = legs[id], leg.phase == .calling else {
      return endFork(transaction, message, envelope)
    }
    let dialog = confirmed(leg.dialog, message, envelope)
    acknowledge(transaction, dialog, sequence: leg.inviteSequence, base: leg.flow)
    timers.cancel(.leg(id, .cancelled))
    legs[id]?.dialog = dialog
    legs[id]?.phase = .confirmed
    legs[id]?.invite = nil
    if leg.cancel != .none {
      // The 2xx has crossed our CANCEL, or came before anything it could have been sent after.
      emit(.failed(id, code: 487, cause: nil, byTransport: false))
      return sendBye(id, nil)
    }
    var sdp: String?
    if case .sdp(let text)? = try? message.sessionBody { sdp = text }
    emit(.answered(id, sdp: sdp))
  }

  /// A 2xx of another fork, or of a leg that is gone: acknowledged and ended.
  mutating func endFork(_ transaction: UInt64, _ message: Message, _ envelope: Envelope) {
    guard let client = clients[transaction], client.acknowledgements.count < Limits.forks,
      let invite = try? Message(client.request), case .request(_, _, let uri) = invite.startLine
    else { return }
    let early = Dialog(
      callID: message.callID, localTag: envelope.from.tag.map(message.text) ?? "",
      localParty: invite.field(.from).map { invite.text($0.value) } ?? "", remoteParty: "", remoteTarget: invite.text(uri),
      localSequence: envelope.cseq.number)
    var dialog = confirmed(early, message, envelope)
    acknowledge(transaction, dialog, sequence: envelope.cseq.number, base: client.flow)
    dialog.localSequence += 1
    let branch = newBranch(for: "")
    let (bytes, flow) = request(.bye, in: dialog, sequence: dialog.localSequence, branch: branch, base: client.flow)
    _ = beginClient(.forkEnd, .bye, branch: branch, leg: nil, trunk: client.trunk, flow, bytes)
  }

  private func confirmed(_ early: Dialog, _ message: Message, _ envelope: Envelope) -> Dialog {
    var dialog = early
    dialog.remoteTag = envelope.to.tag.map(message.text) ?? ""
    dialog.remoteParty = message.field(.to).map { message.text($0.value) } ?? ""
    if let target = message.contactTarget { dialog.remoteTarget = target }
    dialog.routeSet = ((try? message.recordRouteSet) ?? []).reversed()
    return dialog
  }

  /// The ACK of a 2xx, kept to be sent again for each retransmission of it.
  private mutating func acknowledge(_ transaction: UInt64, _ dialog: Dialog, sequence: UInt32, base: Flow) {
    var fields: [(HeaderName, String)] = []
    // The credentials of the INVITE stand in its ACK too (RFC 3261 §22.1).
    if let client = clients[transaction], let invite = try? Message(client.request) {
      for name in [HeaderName.authorization, .proxyAuthorization] {
        if let field = invite.field(name) { fields.append((name, invite.text(field.value))) }
      }
    }
    let (bytes, flow) = request(.ack, in: dialog, sequence: sequence, branch: newBranch(for: ""), base: base, fields: fields)
    counters.requestsSent[.ack, default: 0] += 1
    send(bytes, flow)
    clients[transaction]?.acknowledgements[dialog.remoteTag] = (bytes, flow)
  }

  /// A final non-2xx: another try with credentials, or the end of the leg.
  mutating func inviteRefused(_ client: ClientTransaction, _ message: Message, _ code: Int) {
    guard let id = client.leg, let leg = legs[id], leg.phase == .calling else { return }
    if code == 401 || code == 407, leg.cancel == .none, takeChallenge(id, message) {
      legs[id]?.dialog.localSequence += 1
      legs[id]?.inviteSequence += 1
      return sendInvite(id)
    }
    timers.cancel(.leg(id, .cancelled))
    if code == 503, tryNext(id, code: code, answered: true, retryAfter: message.retryAfterSeconds) { return }
    fail(id, code: code, cause: message.reasons.first, byTransport: false)
  }

  /// Whether a challenge can be answered: the trunk has credentials, one try, and one more if only stale.
  private mutating func takeChallenge(_ id: LegID, _ message: Message) -> Bool {
    guard let leg = legs[id], let challenge = DigestClient.challenge(in: message) else {
      return false
    }
    if legs[id]?.digest != nil { return legs[id]?.digest?.renew(challenge) ?? false }
    guard let credentials = leg.invite?.trunk.credentials else { return false }
    legs[id]?.digest = DigestClient(credentials, challenge)
    return true
  }

  /// A challenged BYE or OPTIONS of an outbound leg.
  mutating func retryInDialog(_ client: ClientTransaction, _ message: Message) -> Bool {
    guard client.purpose == .bye || client.purpose == .ping, let id = client.leg, legs[id]?.digest != nil,
      let sent = try? Message(client.request), sent.field(.authorization) == nil, sent.field(.proxyAuthorization) == nil,
      let challenge = DigestClient.challenge(in: message)
    else { return false }
    legs[id]?.digest?.answer(challenge)
    sendInDialog(
      client.purpose, client.key.method, id, fields: sent.reasons.first.map { [(.reason, $0.description)] } ?? [], isRetry: true)
    return true
  }

  mutating func sendBye(_ id: LegID, _ reason: ReasonValue?) {
    legs[id]?.phase = .ending
    legs[id]?.pendingBye = nil
    if let reinvite = legs[id]?.reinvite { respond(reinvite.transaction, ResponseContent(code: 487)) }
    legs[id]?.reinvite = nil
    settleAnswer(id)
    sendInDialog(.bye, .bye, id, fields: reason.map { [(.reason, $0.description)] } ?? [])
  }

  mutating func ping(_ id: LegID) {
    guard legs[id]?.phase == .confirmed else { return }
    sendInDialog(.ping, .options, id, fields: [(.accept, "application/sdp")])
  }

  private mutating func sendInDialog(
    _ purpose: ClientTransaction.Purpose, _ method: Method, _ id: LegID, fields: [(HeaderName, String)], isRetry: Bool = false
  ) {
    guard var leg = legs[id] else { return }
    leg.dialog.localSequence += 1
    var fields = fields
    if isRetry, let uri = leg.digest.map({ _ in leg.dialog.remoteTarget }) {
      if let authorization = leg.digest?.authorization(method: method, uri: uri, cnonce: newTag()) {
        fields.append((authorization.name, authorization.value))
      }
    }
    let branch = newBranch(for: "")
    let (bytes, flow) = request(
      method, in: leg.dialog, sequence: leg.dialog.localSequence, branch: branch, base: leg.flow, fields: fields)
    legs[id] = leg
    if beginClient(purpose, method, branch: branch, leg: id, trunk: leg.trunk, flow, bytes) == nil {
      if purpose == .bye { close(id) } else { emit(.pingAnswered(id, alive: true)) }
    }
  }

  /// A non-INVITE request has its final response.
  mutating func finished(_ client: ClientTransaction, _ code: Int, _ message: Message) {
    if case .standalone(let id) = client.purpose { return standaloneFinished(id, client, code, message) }
    guard let id = client.leg, legs[id] != nil else { return }
    switch client.purpose {
    case .bye: close(id)
    case .ping: if legs[id]?.phase == .confirmed { emit(.pingAnswered(id, alive: code != 481 && code != 408)) }
    case .invite, .cancel, .forkEnd, .abandoned, .standalone: break
    }
  }

  /// A request had no answer (408), or could not be sent (503).
  mutating func clientFailed(_ client: ClientTransaction, code: Int, byTransport: Bool) {
    if case .standalone(let id) = client.purpose { return standaloneFailed(id, code: code, byTransport: byTransport) }
    guard let id = client.leg, let leg = legs[id] else { return }
    switch client.purpose {
    case .invite:
      guard leg.phase == .calling, !tryNext(id, code: code) else { return }
      fail(id, code: code, cause: nil, byTransport: byTransport)
    case .bye: close(id)
    case .ping: if leg.phase == .confirmed { emit(.pingAnswered(id, alive: false)) }
    case .cancel, .forkEnd, .abandoned, .standalone: break
    }
  }
}
