import TrunklineBytes
import TrunklineSIP

extension UserAgent {
  /// Makes an outbound leg and sends its INVITE.
  mutating func startInvite(_ id: LegID, _ invite: OutboundInvite) {
    guard legs[id] == nil else { return }
    var invite = invite
    invite.trunk = byServiceRoute(invite.trunk)
    guard legs.count < Limits.legs, clients.count < Limits.clientTransactions else {
      emit(.failed(id, code: 503, cause: nil, byTransport: false))
      return emit(.legClosed(id))
    }
    let tag = newTag()
    let flow = invite.trunk.flow
    let target = party(invite.to, at: invite.trunk.domain, invite.trunk.name)
    let dialog = Dialog(
      callID: invite.callID ?? newCallID(), localTag: tag, localParty: fromParty(invite, tag: tag),
      remoteParty: "<\(invite.uri ?? target)>",
      remoteTarget: requestURI(invite, on: flow),
      localSequence: UInt32(truncatingIfNeeded: random.next() & 0xffff) + 1)
    var leg = Leg(
      id: id, trunk: invite.trunk.name, phase: .calling, flow: flow, dialog: dialog, inviteTransaction: nil,
      inviteSequence: dialog.localSequence)
    (leg.invite, leg.credentials, leg.minimumSession) = (invite, invite.trunk.credentials, leastSession(invite.trunk.name))
    leg.target = invite.trunk.target
    leg.further = invite.trunk.further.prefix(Limits.targets)
    legs[id] = Box(leg)
    dialogs[dialog.key] = id
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
    let branch = newBranch(for: invite.to)
    let cnonce = newTag()
    let authorizations =
      legs[id]?.value.digest?.authorizations(method: .invite, uri: leg.dialog.remoteTarget, cnonce: cnonce) ?? []
    var bytes = inviteBytes(leg, invite, branch: branch, authorizations)
    if bytes.count > Limits.datagramRequestBytes, leg.flow.transport == .udp, !leg.isSmallOnly, let large = leg.target?.large,
      datagramOnly[large.remote].map({ $0 <= now }) ?? true
    {
      (leg.flow, leg.isLarge) = (large, true)
      legs[id]?.value.flow = large
      legs[id]?.value.isLarge = true
      bytes = inviteBytes(leg, invite, branch: branch, authorizations)
    }
    guard let transaction = beginClient(.invite, .invite, branch: branch, leg: id, trunk: leg.trunk, leg.flow, bytes) else {
      return fail(id, code: 503, cause: nil, byTransport: false)
    }
    legs[id]?.value.inviteTransaction = transaction
    output.changedLegs.append(id)
    // The last server has until timer B, however much of its time the one before had left.
    if hasAnotherTarget(leg) {
      timers.schedule(.leg(id, .silence), at: now + Interval.silence)
    } else {
      timers.cancel(.leg(id, .silence))
    }
  }

  /// CANCEL at once, or as soon as there is a provisional response.
  mutating func cancel(_ id: LegID, _ reason: ReasonValue?) {
    guard let leg = legs[id]?.value else { return }
    if leg.phase == .confirmed { return sendBye(id, reason) }
    guard leg.phase == .calling, leg.cancel == .none else { return }
    legs[id]?.value.cancel = .waiting(reason)
    if let transaction = leg.inviteTransaction, clients[transaction]?.value.phase == .proceeding { sendCancel(id) }
  }

  private mutating func sendCancel(_ id: LegID) {
    guard let leg = legs[id]?.value, case .waiting(let reason) = leg.cancel, let transaction = leg.inviteTransaction,
      let client = clients[transaction]?.value
    else { return }
    legs[id]?.value.cancel = .sent
    let bytes = cancellation(of: client, reason)
    _ = beginClient(.cancel, .cancel, branch: client.key.branch, leg: nil, trunk: leg.trunk, client.flow, bytes)
    timers.schedule(.leg(id, .cancelled), at: now + Interval.transaction)
  }

  /// No final response to a cancelled INVITE: the peer does not know CANCEL, or has failed (RFC 3261 §9.1).
  mutating func cancelTimedOut(_ id: LegID) {
    guard let leg = legs[id]?.value, leg.phase == .calling else { return }
    if let transaction = leg.inviteTransaction { endClient(transaction) }
    fail(id, code: 408, cause: nil, byTransport: false)
  }

  mutating func fail(_ id: LegID, code: Int, cause: ReasonValue?, byTransport: Bool) {
    emit(.failed(id, code: code, cause: cause, byTransport: byTransport))
    close(id)
  }

  mutating func inviteProgressed(_ client: ClientTransaction, _ message: Message, _ envelope: Envelope, _ code: Int) {
    if client.purpose == .abandoned { return cancelAbandoned(client) }
    guard let id = client.leg, let leg = legs[id]?.value, leg.phase == .calling else { return }
    if case .waiting = leg.cancel { sendCancel(id) }
    guard leg.cancel == .none else { return }
    var sdp: String?
    if case .sdp(let text)? = try? message.sessionBody { sdp = text }
    guard code == 100 || acceptProvisional(id, message, envelope, sdp: sdp) else { return }
    emit(.progress(id, code: code, sdp: sdp))
  }

  /// The first 2xx makes the dialog (RFC 3261 §12.1.2, §13.2.2.4); it ends the other early ones.
  mutating func inviteAccepted(_ transaction: UInt64, _ message: Message, _ envelope: Envelope) {
    guard let client = clients[transaction]?.value, let id = client.leg, let leg = legs[id]?.value, leg.phase == .calling else {
      return endFork(transaction, message, envelope)
    }
    var dialog = confirmed(leg.dialog, message, envelope)
    let early = leg.early[dialog.remoteTag]
    if let early {
      (dialog.localSequence, dialog.remoteSequence) = (early.dialog.localSequence, early.dialog.remoteSequence)
    }
    timers.cancel(.leg(id, .cancelled))
    legs[id]?.value.dialog = dialog
    legs[id]?.value.phase = .confirmed
    output.changedLegs.append(id)
    legs[id]?.value.invite = nil
    legs[id]?.value.early = [:]
    if let offer = leg.peerOffer { respond(offer.transaction, ResponseContent(code: 487)) }
    legs[id]?.value.peerOffer = nil
    var sdp: String?
    if case .sdp(let text)? = try? message.sessionBody { sdp = text }
    if leg.cancel != .none {
      // The 2xx has crossed our CANCEL, or came before CANCEL could be sent.
      acknowledge(transaction, dialog, sequence: leg.inviteSequence, base: leg.flow)
      emit(.failed(id, code: 487, cause: nil, byTransport: false))
      return sendBye(id, nil)
    }
    if leg.invite?.sdp == nil, sdp != nil {
      // The 2xx holds the peer's offer: its ACK waits for our answer.
      legs[id]?.value.awaitsAcknowledgement = true
    } else {
      acknowledge(transaction, dialog, sequence: leg.inviteSequence, base: leg.flow)
    }
    acceptSession(id, response: message)
    emit(.answered(id, sdp: sdp ?? early?.sdp))
  }

  /// Our answer to the offer in a 2xx.
  mutating func acknowledge(_ id: LegID, _ sdp: String?) {
    guard let leg = legs[id]?.value, leg.awaitsAcknowledgement, let transaction = leg.inviteTransaction else { return }
    legs[id]?.value.awaitsAcknowledgement = false
    acknowledge(transaction, leg.dialog, sequence: leg.inviteSequence, base: leg.flow, sdp: sdp)
    offerIfFree(id)
  }

  /// The 2xx of a re-INVITE: acknowledged even while its leg is ending.
  mutating func reinviteAccepted(_ transaction: UInt64, _ message: Message, _ envelope: Envelope) {
    guard let client = clients[transaction]?.value, var dialog = client.leg.flatMap({ legs[$0]?.value.dialog }) ?? client.dialog
    else {
      return
    }
    if let target = message.contactTarget { dialog.remoteTarget = target }
    acknowledge(transaction, dialog, sequence: envelope.cseq.number, base: client.flow)
    if let id = client.leg { offerAccepted(id, .reinvite, message) }
  }

  /// A 2xx of another fork, or of a leg that has ended: acknowledged and ended with BYE.
  mutating func endFork(_ transaction: UInt64, _ message: Message, _ envelope: Envelope) {
    guard let client = clients[transaction]?.value, client.acknowledgements.count < Limits.forks,
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
    let (bytes, flow) = request(
      .bye, in: dialog, sequence: dialog.localSequence, branch: branch, base: client.flow, trunk: client.trunk)
    _ = beginClient(.forkEnd, .bye, branch: branch, leg: nil, trunk: client.trunk, flow, bytes)
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
    guard let client = clients[transaction]?.value else { return }
    var fields: [(HeaderName, String)] = []
    // The ACK contains the INVITE's credentials, too (RFC 3261 §22.1).
    if let invite = try? Message(client.request) {
      for field in invite.fields where field.name == .authorization || field.name == .proxyAuthorization {
        fields.append((field.name, invite.text(field.value)))
      }
    }
    let (bytes, flow) = request(
      .ack, in: dialog, sequence: sequence, branch: newBranch(for: ""), base: base, RequestContent(fields: fields, body: sdp),
      trunk: client.trunk)
    counters.requestsSent[.ack, default: 0] += 1
    send(bytes, flow)
    clients[transaction]?.value.acknowledgements[dialog.remoteTag] = (bytes, flow)
  }

  /// A final non-2xx: another try with credentials, or the end of the leg.
  mutating func inviteRefused(_ client: ClientTransaction, _ message: Message, _ code: Int) {
    guard let id = client.leg, let leg = legs[id]?.value, leg.phase == .calling else { return }
    if let offer = leg.peerOffer { respond(offer.transaction, ResponseContent(code: 487)) }
    legs[id]?.value.peerOffer = nil
    legs[id]?.value.early = [:]
    if leg.cancel == .none, (300..<400).contains(code), redirect(id, message) { return }
    if code == 422, leg.cancel == .none, leg.offerTries < Limits.sessionRaises, raiseSession(id, message) {
      legs[id]?.value.offerTries += 1
      legs[id]?.value.dialog.localSequence += 1
      legs[id]?.value.inviteSequence += 1
      return sendInvite(id)
    }
    if code == 401 || code == 407, leg.cancel == .none, acceptChallenge(id, message) {
      legs[id]?.value.dialog.localSequence += 1
      legs[id]?.value.inviteSequence += 1
      return sendInvite(id)
    }
    timers.cancel(.leg(id, .cancelled))
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
    legs[id]?.value.redirects += 1
    legs[id]?.value.dialog.remoteTarget = message.text(best.0.uri.whole)
    legs[id]?.value.dialog.localSequence += 1
    legs[id]?.value.inviteSequence += 1
    // The next INVITE goes to an address; a name of the trunk means the flow to the trunk.
    legs[id]?.value.flow = nextHop(target: message.text(best.0.uri.whole), routes: [], base: leg.flow, own: configuration.own)
    sendInvite(id)
    return true
  }

  /// Whether challenges can be answered: the trunk has credentials, and each realm has tries left.
  private mutating func acceptChallenge(_ id: LegID, _ message: Message) -> Bool {
    guard let leg = legs[id]?.value, let credentials = leg.invite?.trunk.credentials else { return false }
    let challenges = challenges(in: message, of: leg.trunk)
    var digest = leg.digest ?? DigestClient(credentials)
    let isWorthIt = digest.accept(challenges)
    legs[id]?.value.digest = digest
    return isWorthIt
  }

  /// A challenged request inside the dialog of an outbound leg is sent once more for each realm, with credentials for all.
  mutating func retryInDialog(_ client: ClientTransaction, _ message: Message) -> Bool {
    guard let content = client.content, let id = client.leg, let credentials = legs[id]?.value.credentials else { return false }
    let challenges = challenges(in: message, of: client.trunk)
    let realms = Set(challenges.map(\.key))
    let all = client.answeredRealms.union(realms)
    guard !realms.isEmpty, client.answeredRealms.isDisjoint(with: realms), all.count <= Limits.answeredRealms else {
      return false
    }
    var digest = legs[id]?.value.digest ?? DigestClient(credentials)
    digest.answer(challenges)
    legs[id]?.value.digest = digest
    sendInDialog(client.purpose, client.key.method, id, content, answering: all)
    return true
  }

  mutating func sendBye(_ id: LegID, _ reason: ReasonValue?) {
    if legs[id]?.value.awaitsAcknowledgement == true { acknowledge(id, nil) }
    legs[id]?.value.phase = .ending
    legs[id]?.value.pendingBye = nil
    if let offer = legs[id]?.value.peerOffer { respond(offer.transaction, ResponseContent(code: 487)) }
    legs[id]?.value.peerOffer = nil
    legs[id]?.value.wantsOffer = false
    stopAnswer(id)
    for timer in [LegTimer.refresh, .sessionEnd, .glare] { timers.cancel(.leg(id, timer)) }
    sendInDialog(.bye, .bye, id, RequestContent(fields: reason.map { [(.reason, $0.description)] } ?? []))
  }

  mutating func ping(_ id: LegID) {
    guard legs[id]?.value.phase == .confirmed else { return }
    sendInDialog(.ping, .options, id, RequestContent(fields: [(.accept, "application/sdp")]))
  }

  mutating func sendInDialog(
    _ purpose: ClientTransaction.Purpose, _ method: Method, _ id: LegID, _ content: RequestContent,
    answering realms: Set<DigestClient.Realm> = []
  ) {
    guard var leg = legs[id]?.value else { return }
    var dialog = leg.dialog
    if let fork = content.fork, let early = leg.early[fork] { dialog = early.dialog }
    dialog.localSequence += 1
    if let fork = content.fork, leg.early[fork] != nil {
      leg.early[fork]?.dialog.localSequence = dialog.localSequence
    } else {
      leg.dialog.localSequence = dialog.localSequence
    }
    var sent = content
    if !realms.isEmpty {
      sent.fields += leg.digest?.authorizations(method: method, uri: dialog.remoteTarget, cnonce: newTag()) ?? []
    }
    let branch = newBranch(for: "")
    let (bytes, flow) = request(
      method, in: dialog, sequence: dialog.localSequence, branch: branch, base: leg.flow, sent, trunk: leg.trunk)
    legs[id]?.value = leg
    let transaction = beginClient(
      purpose, method, branch: branch, leg: id, trunk: leg.trunk, flow, bytes, content: content,
      dialog: purpose == .reinvite ? dialog : nil)
    guard let transaction else { return unsent(purpose, id) }
    clients[transaction]?.value.answeredRealms = realms
  }

  /// The table of client transactions is full.
  private mutating func unsent(_ purpose: ClientTransaction.Purpose, _ id: LegID) {
    switch purpose {
    case .bye: close(id)
    case .ping: emit(.pingAnswered(id, alive: true))
    case .reinvite, .update: offerRefused(id, purpose, 503, nil)
    case .info: emit(.digitSent(id, code: 503))
    case .refer: referRefused(id, 503)
    case .invite, .cancel, .forkEnd, .prack, .notify, .abandoned, .standalone: break
    }
  }

  /// A request inside a dialog has its final response: any for a non-INVITE, a refusal for a re-INVITE.
  mutating func finished(_ client: ClientTransaction, _ code: Int, _ message: Message?) {
    if case .standalone(let id) = client.purpose { return message.map { standaloneFinished(id, client, code, $0) } ?? () }
    guard let id = client.leg, legs[id] != nil else { return }
    switch client.purpose {
    case .bye: close(id)
    case .ping: if legs[id]?.value.phase == .confirmed { emit(.pingAnswered(id, alive: code != 481 && code != 408)) }
    case .update, .reinvite:
      if let message, code < 300 {
        offerAccepted(id, client.purpose, message)
      } else if client.purpose == .update || code != 401 && code != 407 || message.map({ !retryInDialog(client, $0) }) ?? true {
        offerRefused(id, client.purpose, code, message)
      }
    case .info: emit(.digitSent(id, code: code))
    case .refer: if code < 300 { referAccepted(id, code) } else { referRefused(id, code) }
    case .notify: if code == 481 { legs[id]?.value.referIn = nil }
    case .invite, .cancel, .forkEnd, .prack, .abandoned, .standalone: break
    }
  }

  /// Notes a lost request, such as a BYE; otherwise it would stay unknown: the call has its record by then.
  mutating func noteUnanswered(_ client: ClientTransaction, _ leg: Leg, _ failure: LocalFailure) {
    switch client.purpose {
    case .cancel, .forkEnd, .abandoned, .standalone: return
    case .invite: break
    case .bye, .ping, .prack, .reinvite, .update, .info, .refer, .notify: counters.unanswered[client.key.method, default: 0] += 1
    }
    output.unanswered.append(
      UnansweredRequest(
        leg: leg.id, method: client.key.method, opensDialog: client.purpose == .invite, trunk: leg.trunk,
        callID: leg.dialog.callID,
        flow: client.flow, contact: address(of: leg.dialog.remoteTarget), failure: failure))
  }

  /// A request got no answer (408), or could not be sent (503).
  mutating func clientFailed(_ client: ClientTransaction, code: Int, byTransport: Bool) {
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
    case .ping: if leg.phase == .confirmed { emit(.pingAnswered(id, alive: false)) }
    // A re-INVITE that the peer is processing, or that a connection lost: the call itself may be intact.
    case .reinvite, .update: offerRefused(id, client.purpose, client.phase == .proceeding ? 504 : code, nil)
    case .info: emit(.digitSent(id, code: code))
    case .refer: referRefused(id, code)
    case .cancel, .forkEnd, .prack, .notify, .abandoned, .standalone: break
    }
  }
}
