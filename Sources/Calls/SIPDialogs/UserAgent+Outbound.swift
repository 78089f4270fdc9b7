import TrunklineBytes
import TrunklineSIP

extension UserAgent {
  /// Makes an outbound leg and sends its INVITE.
  mutating func startInvite(_ id: LegID, _ invite: OutboundInvite) {
    guard legs[id] == nil else { return }
    var invite = invite
    invite.trunk = byServiceRoute(invite.trunk)
    guard legs.hasRoom, clients.hasRoom else {
      step.emit(.failed(id, code: 503, cause: nil, byTransport: false))
      return step.emit(.legClosed(id))
    }
    let tag = identifiers.newTag()
    let target = party(invite.to, at: invite.trunk.domain, invite.trunk.name)
    let dialog = Dialog(
      callID: invite.callID ?? identifiers.newCallID(), localTag: tag, localParty: fromParty(invite, tag: tag),
      remoteParty: "<\(invite.uri ?? target)>",
      remoteTarget: requestURI(invite, on: invite.trunk.flow),
      localSequence: identifiers.initialSequence())
    legs.open(Leg(calling: id, by: invite, dialog: dialog, session: SessionExpiry(minimum: leastSession(invite.trunk.name))))
    sendInvite(id)
  }

  /// The first route is where a request is sent (RFC 3261 §8.1.2); a Service-Route is first if no proxy of ours precedes it. A
  /// host name there was resolved when the targets were drawn (`TrunkMachine.callTargets`).
  func byServiceRoute(_ trunk: TrunkPeer) -> TrunkPeer {
    guard trunk.proxies.isEmpty, let route = trunk.serviceRoutes.first.map(uriText) else { return trunk }
    let reach = PeerReach(rule: rules(trunk.name).contactRewriting, localNetworks: configuration.advertised.localNetworks)
    func routed(_ flow: Flow) -> Flow { hop(to: route, from: flow, own: configuration.own, reach: reach) ?? flow }
    var out = trunk
    out.further = []
    for (index, target) in ([trunk.target] + trunk.further).enumerated() {
      let large = target.large.map(routed).flatMap { $0.transport.isReliable ? $0 : nil }
      let next = TrunkTarget(routed(target.flow), large: large)
      if index == 0 { out.target = next } else if next != out.target, !out.further.contains(next) { out.further.append(next) }
    }
    return out
  }

  /// The Request-URI of an INVITE: as another party wrote it, or ours.
  func requestURI(_ invite: OutboundInvite, on flow: Flow) -> String {
    if let uri = invite.uri { return uri }
    let trunk = invite.trunk
    return party(invite.to, at: trunk.domain, trunk.name, transport: trunk.uriParameter(on: flow))
  }

  /// A SIP URI with a user: `user=phone` if the trunk requires it and the user is a telephone number.
  func party(_ user: String, at domain: String, _ trunk: String, transport: String = "") -> String {
    let isPhone = rules(trunk).marksPhones && isTelephoneNumber(user)
    return "sip:\(percentEncodedUser(user))@\(domain)\(transport)\(isPhone ? ";user=phone" : "")"
  }

  /// The INVITE with its next branch; with credentials once there is a challenge.
  mutating func sendInvite(_ id: LegID) {
    guard var leg = legs[id]?.value, let invite = leg.invite else { return }
    let branch = identifiers.newBranch(for: invite.to)
    let cnonce = identifiers.newTag()
    let authorizations =
      legs[id]?.value.authentication.authorizations(method: .invite, uri: leg.dialog.remoteTarget, cnonce: cnonce) ?? []
    var bytes = inviteBytes(leg, invite, branch: branch, authorizations: authorizations)
    if legs[id]?.value.useConnection(bytes: bytes.count, refusing: datagramOnly, at: step.now) == true {
      leg = legs[id]?.value ?? leg
      bytes = inviteBytes(leg, invite, branch: branch, authorizations: authorizations)
    }
    guard
      let transaction = beginClient(
        .invite, method: .invite, branch: branch, leg: id, trunk: leg.trunk, over: leg.flow, bytes: bytes)
    else {
      return fail(id, code: 503, cause: nil, byTransport: false)
    }
    legs[id]?.value.inviteSent(transaction)
    step.output.changedLegs.append(id)
    // The last server has until timer B, however much of its time the one before had left.
    if leg.hasAnotherTarget {
      step.timers.schedule(.leg(id, .silence), at: step.now + Interval.silence)
    } else {
      step.timers.cancel(.leg(id, .silence))
    }
  }

  /// CANCEL at once, or as soon as there is a provisional response.
  mutating func cancel(_ id: LegID, _ reason: ReasonValue?) {
    guard let leg = legs[id]?.value else { return }
    if leg.phase == .confirmed { return sendBye(id, reason) }
    guard legs[id]?.value.requestCancel(reason) == true else { return }
    if let transaction = leg.inviteTransaction, clients[transaction]?.phase == .proceeding { sendCancel(id) }
  }

  private mutating func sendCancel(_ id: LegID) {
    guard let leg = legs[id]?.value, case .waiting(let reason) = leg.cancel, let transaction = leg.inviteTransaction,
      let client = clients[transaction]
    else { return }
    legs[id]?.value.cancelSent()
    let bytes = cancellation(of: client, reason)
    _ = beginClient(
      .cancel, method: .cancel, branch: client.key.branch, leg: nil, trunk: leg.trunk, over: client.flow, bytes: bytes)
    step.timers.schedule(.leg(id, .cancelled), at: step.now + Interval.transaction)
  }

  /// No final response to a cancelled INVITE: the peer does not know CANCEL, or has failed (RFC 3261 §9.1).
  mutating func cancelTimedOut(_ id: LegID) {
    guard let leg = legs[id]?.value, leg.phase == .calling else { return }
    if let transaction = leg.inviteTransaction { clients.end(transaction, &step) }
    fail(id, code: 408, cause: nil, byTransport: false)
  }

  mutating func fail(_ id: LegID, code: Int, cause: ReasonValue?, byTransport: Bool) {
    step.emit(.failed(id, code: code, cause: cause, byTransport: byTransport))
    close(id)
  }

  /// - Parameter client: as it was before this response.
  mutating func inviteProgressed(
    _ transaction: UInt64, client: ClientTransaction, _ message: Message, _ envelope: Envelope, code: Int
  ) {
    if client.purpose == .abandoned {
      return client.phase == .calling ? cancelAbandoned(transaction) : clients.limit(abandoned: transaction, &step)
    }
    guard let id = client.leg, let leg = legs[id]?.value, leg.phase == .calling else { return }
    if case .waiting = leg.cancel { sendCancel(id) }
    guard leg.cancel == .none else { return }
    var sdp: String?
    if case .sdp(let text)? = try? message.sessionBody { sdp = text }
    guard code == 100 || acceptProvisional(id, message, envelope, sdp: sdp) else { return }
    step.emit(.progress(id, code: code, sdp: sdp))
  }

  /// The first 2xx makes the dialog (RFC 3261 §12.1.2, §13.2.2.4); it ends the other early ones.
  mutating func inviteAccepted(_ transaction: UInt64, _ message: Message, _ envelope: Envelope) {
    guard let client = clients[transaction], let id = client.leg, let leg = legs[id]?.value, leg.phase == .calling else {
      return endFork(transaction, message, envelope)
    }
    var dialog = confirmed(leg.dialog, message, envelope)
    if let early = leg.early.sequences(dialog.remoteTag) {
      dialog.localSequence = early.local
      dialog.remoteSequence = early.remote
    }
    step.timers.cancel(.leg(id, .cancelled))
    legs[id]?.value.accepted(dialog)
    step.output.changedLegs.append(id)
    closePeerOffer(id, code: 487)
    var sdp: String?
    if case .sdp(let text)? = try? message.sessionBody { sdp = text }
    if leg.cancel != .none {
      // The 2xx has crossed our CANCEL, or came before CANCEL could be sent.
      acknowledge(transaction, dialog, sequence: leg.inviteSequence, base: leg.flow)
      step.emit(.failed(id, code: 487, cause: nil, byTransport: false))
      return sendBye(id, nil)
    }
    if leg.invite?.sdp == nil, sdp != nil {
      // The 2xx holds the peer's offer: its ACK waits for our answer.
      legs[id]?.value.offers.awaitAcknowledgement()
    } else {
      acknowledge(transaction, dialog, sequence: leg.inviteSequence, base: leg.flow)
    }
    acceptSession(id, response: message)
    step.emit(.answered(id, sdp: sdp ?? leg.early.sdp(dialog.remoteTag)))
  }

  /// Our answer to the offer in a 2xx.
  mutating func acknowledge(_ id: LegID, _ sdp: String?) {
    guard let leg = legs[id]?.value, leg.offers.awaitsAcknowledgement, let transaction = leg.inviteTransaction else { return }
    legs[id]?.value.offers.acknowledged()
    acknowledge(transaction, leg.dialog, sequence: leg.inviteSequence, base: leg.flow, sdp: sdp)
    offerIfFree(id)
  }

  /// The 2xx of a re-INVITE: acknowledged even while its leg is ending.
  mutating func reinviteAccepted(_ transaction: UInt64, _ message: Message, _ envelope: Envelope) {
    guard let client = clients[transaction], var dialog = client.leg.flatMap({ legs[$0]?.value.dialog }) ?? client.dialog
    else {
      return
    }
    if let target = message.contactTarget { dialog.remoteTarget = target }
    acknowledge(transaction, dialog, sequence: envelope.cseq.number, base: client.flow)
    if let id = client.leg { offerAccepted(id, of: .reinvite, message) }
  }

  /// A 2xx of another fork, or of a leg that has ended: acknowledged and ended with BYE.
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
    let branch = identifiers.newBranch()
    let (bytes, flow) = request(
      .bye, in: dialog, sequence: dialog.localSequence, branch: branch, base: client.flow, trunk: client.trunk)
    _ = beginClient(.forkEnd, method: .bye, branch: branch, leg: nil, trunk: client.trunk, over: flow, bytes: bytes)
  }

  func confirmed(_ early: Dialog, _ message: Message, _ envelope: Envelope) -> Dialog {
    var dialog = early
    dialog.remoteTag = envelope.to.tag.map(message.text) ?? ""
    dialog.remoteParty = message.field(.to).map { message.text($0.value) } ?? ""
    if let target = message.contactTarget { dialog.remoteTarget = target }
    dialog.routeSet = ((try? message.recordRouteSet) ?? []).reversed()
    return dialog
  }

  /// The ACK of a 2xx, kept and sent again for each retransmission of the 2xx.
  private mutating func acknowledge(
    _ transaction: UInt64, _ dialog: Dialog, sequence: UInt32, base: Flow, sdp: String? = nil
  ) {
    guard let client = clients[transaction] else { return }
    var fields: [(HeaderName, String)] = []
    // The ACK contains the INVITE's credentials, too (RFC 3261 §22.1).
    if let invite = try? Message(client.request) {
      for field in invite.fields where field.name == .authorization || field.name == .proxyAuthorization {
        fields.append((field.name, invite.text(field.value)))
      }
    }
    let (bytes, flow) = request(
      .ack, in: dialog, sequence: sequence, branch: identifiers.newBranch(), base: base,
      RequestContent(fields: fields, body: sdp),
      trunk: client.trunk)
    clients.acknowledge(accepted: transaction, tag: dialog.remoteTag, bytes, flow, &step)
  }

  /// A final non-2xx: another try with credentials, or the end of the leg.
  mutating func inviteRefused(_ client: ClientTransaction, _ message: Message, code: Int) {
    guard let id = client.leg, let leg = legs[id]?.value, leg.phase == .calling else { return }
    closePeerOffer(id, code: 487)
    legs[id]?.value.early.removeAll()
    if leg.cancel == .none, (300..<400).contains(code), redirect(id, message) { return }
    if code == 422, leg.cancel == .none, leg.offers.mayRaise, raiseSession(id, message) {
      legs[id]?.value.offers.raised()
      legs[id]?.value.repeatInvite()
      return sendInvite(id)
    }
    if code == 401 || code == 407, leg.cancel == .none, acceptChallenge(id, message) {
      legs[id]?.value.repeatInvite()
      return sendInvite(id)
    }
    step.timers.cancel(.leg(id, .cancelled))
    if code == 503, tryNext(id, code: code, answered: true, retryAfter: message.retryAfterSeconds) { return }
    fail(id, code: code, cause: message.reasons.first, byTransport: false)
  }

  /// A 3xx: the next contact that the trunk's rules allow (RFC 3261 §8.1.3.4). False if there is none.
  private mutating func redirect(_ id: LegID, _ message: Message) -> Bool {
    guard let leg = legs[id]?.value, let invite = leg.invite, leg.redirects < Limits.redirects,
      case .follow(let hosts) = rules(leg.trunk).redirects, let contacts = try? message.contacts
    else { return false }
    var own = hosts
    own.insert(invite.trunk.domain.split(separator: ":").first.map(String.init)?.lowercased() ?? "")
    own.insert(invite.trunk.flow.remote.ip.description)
    let weighed = contacts.prefix(Limits.redirectContacts).map { contact in
      (contact, message.parameter("q", of: contact).flatMap { Double(message.text($0)) } ?? 1)
    }
    let best = weighed.filter { contact, _ in
      contact.uri.scheme == .sip && own.contains(message.text(contact.uri.host).lowercased())
        && !contact.uri.user.isEmpty && contact.uri.whole.count <= Limits.targetBytes
        && message.text(contact.uri.whole) != leg.dialog.remoteTarget
    }.max { $0.1 < $1.1 }
    guard let best else { return false }
    // The next INVITE goes to an address; a name of the trunk means the flow to the trunk.
    let target = message.text(best.0.uri.whole)
    legs[id]?.value.redirect(to: target, nextHop(target: target, routes: [], base: leg.flow, own: configuration.own))
    sendInvite(id)
    return true
  }

  /// Whether challenges can be answered: the trunk has credentials, and each realm has tries left.
  private mutating func acceptChallenge(_ id: LegID, _ message: Message) -> Bool {
    guard let leg = legs[id]?.value, leg.authentication.hasCredentials else { return false }
    let challenges = challenges(in: message, of: leg.trunk)
    return legs[id]?.value.authentication.accept(challenges) ?? false
  }

  /// A challenged request inside the dialog of an outbound leg is sent once more for each realm, with credentials for all.
  mutating func retryInDialog(_ client: ClientTransaction, _ message: Message) -> Bool {
    guard let content = client.content, let id = client.leg, legs[id]?.value.authentication.hasCredentials == true else {
      return false
    }
    let challenges = challenges(in: message, of: client.trunk)
    let realms = Set(challenges.map(\.key))
    let all = client.answeredRealms.union(realms)
    guard !realms.isEmpty, client.answeredRealms.isDisjoint(with: realms), all.count <= Limits.answeredRealms else {
      return false
    }
    guard legs[id]?.value.authentication.answer(challenges) == true else { return false }
    sendInDialog(client.purpose, client.key.method, on: id, content, answering: all)
    return true
  }

  mutating func sendBye(_ id: LegID, _ reason: ReasonValue?) {
    if legs[id]?.value.offers.awaitsAcknowledgement == true { acknowledge(id, nil) }
    legs[id]?.value.end()
    closePeerOffer(id, code: 487)
    legs[id]?.value.offers.wantNothing()
    legs[id]?.value.answer.end(of: id, &step)
    legs[id]?.value.session.stop(of: id, &step)
    step.timers.cancel(.leg(id, .glare))
    sendInDialog(.bye, .bye, on: id, RequestContent(fields: reason.map { [(.reason, $0.description)] } ?? []))
  }

  mutating func ping(_ id: LegID) {
    guard legs[id]?.value.phase == .confirmed else { return }
    sendInDialog(.ping, .options, on: id, RequestContent(fields: [(.accept, "application/sdp")]))
  }

  mutating func sendInDialog(
    _ purpose: ClientTransaction.Purpose, _ method: Method, on id: LegID, _ content: RequestContent,
    answering realms: Set<DigestClient.Realm> = []
  ) {
    guard let leg = legs[id]?.value, let dialog = legs[id]?.value.nextRequest(fork: content.fork) else { return }
    var sent = content
    if !realms.isEmpty {
      let (uri, cnonce) = (dialog.remoteTarget, identifiers.newTag())
      sent.fields += legs[id]?.value.authentication.authorizations(method: method, uri: uri, cnonce: cnonce) ?? []
    }
    let branch = identifiers.newBranch()
    let (bytes, flow) = request(
      method, in: dialog, sequence: dialog.localSequence, branch: branch, base: leg.flow, sent, trunk: leg.trunk)
    let transaction = beginClient(
      purpose, method: method, branch: branch, leg: id, trunk: leg.trunk, over: flow, bytes: bytes, content: content,
      answering: realms, dialog: purpose == .reinvite ? dialog : nil)
    if transaction == nil { unsent(purpose, id) }
  }

  /// The table of client transactions is full.
  private mutating func unsent(_ purpose: ClientTransaction.Purpose, _ id: LegID) {
    switch purpose {
    case .bye: close(id)
    case .ping: step.emit(.pingAnswered(id, alive: true))
    case .reinvite, .update: offerRefused(id, of: purpose, code: 503, nil)
    case .info: step.emit(.digitSent(id, code: 503))
    case .refer: referRefused(id, 503)
    case .invite, .cancel, .forkEnd, .prack, .notify, .abandoned, .standalone: break
    }
  }

  /// A request inside a dialog has its final response: any for a non-INVITE, a refusal for a re-INVITE.
  mutating func finished(_ client: ClientTransaction, code: Int, _ message: Message?) {
    if case .standalone(let id) = client.purpose { return message.map { standaloneFinished(id, code: code, $0) } ?? () }
    guard let id = client.leg, legs[id] != nil else { return }
    switch client.purpose {
    case .bye: close(id)
    case .ping: if legs[id]?.value.phase == .confirmed { step.emit(.pingAnswered(id, alive: code != 481 && code != 408)) }
    case .update, .reinvite:
      if let message, code < 300 {
        offerAccepted(id, of: client.purpose, message)
      } else if client.purpose == .update || code != 401 && code != 407 || message.map({ !retryInDialog(client, $0) }) ?? true {
        offerRefused(id, of: client.purpose, code: code, message)
      }
    case .info: step.emit(.digitSent(id, code: code))
    case .refer: if code < 300 { referAccepted(id, code) } else { referRefused(id, code) }
    case .notify: if code == 481 { legs[id]?.value.refers.unsubscribed() }
    case .invite, .cancel, .forkEnd, .prack, .abandoned, .standalone: break
    }
  }

  /// Notes a lost request, such as a BYE; otherwise it would stay unknown: the call has its record by then.
  mutating func noteUnanswered(_ client: ClientTransaction, _ leg: Leg, _ failure: LocalFailure) {
    switch client.purpose {
    case .cancel, .forkEnd, .abandoned, .standalone: return
    case .invite: break
    case .bye, .ping, .prack, .reinvite, .update, .info, .refer, .notify:
      step.counters.unanswered[client.key.method, default: 0] += 1
    }
    step.output.unanswered.append(
      UnansweredRequest(
        leg: leg.id, method: client.key.method, opensDialog: client.purpose == .invite, trunk: leg.trunk,
        callID: leg.dialog.callID,
        flow: client.flow, contact: address(of: leg.dialog.remoteTarget), failure: failure))
  }

  /// A request got no answer (408), or could not be sent (503).
  mutating func clientFailed(_ end: ClientTransactions.Failure) {
    let (client, code, byTransport) = (end.client, end.code, end.byTransport)
    if case .standalone(let id) = client.purpose {
      return standaloneFailed(id, code: code, byTransport: byTransport, peer: byTransport ? client.peerFailure : nil)
    }
    guard let id = client.leg, let leg = legs[id]?.value else { return }
    let failure = LocalFailure(byTransport: byTransport, client.peerFailure)
    if client.phase == .calling, client.purpose != .invite { noteUnanswered(client, leg, failure) }
    switch client.purpose {
    case .invite:
      guard leg.phase == .calling, !tryNext(id, code: code) else { return }
      noteUnanswered(client, leg, failure)
      fail(id, code: code, cause: nil, byTransport: byTransport)
    case .bye: close(id)
    case .ping: if leg.phase == .confirmed { step.emit(.pingAnswered(id, alive: false)) }
    // A re-INVITE that the peer is processing, or that a connection lost: the call itself may be intact.
    case .reinvite, .update: offerRefused(id, of: client.purpose, code: client.phase == .proceeding ? 504 : code, nil)
    case .info: step.emit(.digitSent(id, code: code))
    case .refer: referRefused(id, code)
    case .cancel, .forkEnd, .prack, .notify, .abandoned, .standalone: break
    }
  }
}
