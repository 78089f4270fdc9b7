import TrunklineBytes
import TrunklineSIP

extension UserAgent {
  /// Makes the leg of a new INVITE and sends 100.
  mutating func openLeg(
    _ request: Request, routes: [String], isLateOffer: Bool, reliability: TrunkRules.Reliability, session: SessionAgreement
  ) -> LegID {
    let message = request.message
    let id = LegID.inbound(identifiers.nextNumber())
    let tag = identifiers.newTag()
    let to = message.field(.to).map { message.text($0.value) } ?? ""
    var dialog = Dialog(
      callID: message.callID, localTag: tag, remoteTag: request.fromTag,
      localParty: to + ";tag=" + tag,
      remoteParty: message.field(.from).map { message.text($0.value) } ?? "",
      remoteTarget: message.contactTarget ?? "sip:\(request.flow.remote)", routeSet: routes,
      localSequence: identifiers.initialSequence(), remoteSequence: request.envelope.cseq.number)
    if request.isTranslated { dialog.isTranslated = true }
    let transaction = beginServer(request.key, method: .invite, merge: mergeKey(request), reply: request.reply, leg: id)
    let expiry = SessionExpiry(
      minimum: max(leastSession(request.trunk), ((try? message.minimumSessionSeconds) ?? nil) ?? 0), agreement: session)
    var leg = Leg(
      ringing: id, trunk: request.trunk, flow: request.flow, dialog: dialog, transaction: transaction,
      sequence: request.envelope.cseq.number,
      isLateOffer: isLateOffer, reliability: reliability, session: expiry)
    leg.session.received(message)
    legs.open(leg)
    respond(transaction, ResponseContent(code: 100))
    return id
  }

  /// Stores the peer's Contact of a request or response that refreshes the target (RFC 3261 §12.2).
  mutating func refresh(_ id: LegID, target: String) {
    if legs[id]?.value.refresh(target: target) == true { step.output.changedLegs.append(id) }
  }

  /// Removes a leg from the tables. Its transactions continue by themselves and absorb late messages.
  mutating func close(_ id: LegID) {
    guard legs.close(id) != nil else { return }
    for timer in LegTimer.allCases { step.timers.cancel(.leg(id, timer)) }
    step.emit(.legClosed(id))
  }

  mutating func perform(_ command: Command) {
    switch command {
    case .respondProvisional(let id, let code, let reason, let sdp): respondProvisional(id, code: code, reason: reason, sdp: sdp)
    case .answer(let id, let sdp): answer(id, sdp)
    case .refuse(let id, let code, let reason, let cause, let retryAfter):
      refuse(id, code: code, reason: reason, cause: cause, retryAfter: retryAfter)
    case .redirect(let id, let node): redirect(id, node)
    case .invite(let id, let invite): startInvite(id, invite)
    case .cancel(let id, let reason): cancel(id, reason)
    case .bye(let id, let reason): bye(id, reason)
    case .answerReinvite(let id, let sdp): answerOffer(id, sdp)
    case .refuseReinvite(let id, let code): refuseOffer(id, code)
    case .modify(let id): wantOffer(id)
    case .offer(let id, let sdp): offer(id, sdp)
    case .acknowledge(let id, let sdp): acknowledge(id, sdp)
    case .sendDigit(let id, let digit, let milliseconds): sendDigit(id, digit, milliseconds: milliseconds)
    case .refer(let id, let to, let replaces): refer(id, to: to, replacing: replaces)
    case .referToLeg(let id, let other): refer(id, toLeg: other)
    case .acceptRefer(let id): acceptRefer(id)
    case .refuseRefer(let id, let code): refuseRefer(id, code)
    case .notifyRefer(let id, let code): notifyRefer(id, code)
    case .ping(let id): ping(id)
    case .request(let id, let request): startRequest(id, request)
    }
  }

  /// Sends 200; if a reliable provisional response with SDP waits for its PRACK, only after that (RFC 3262 §3).
  mutating func answer(_ id: LegID, _ sdp: String?) {
    guard let leg = legs[id]?.value, leg.phase == .ringing, let transaction = leg.inviteTransaction,
      let flow = servers.reply(transaction)?.flow
    else { return }
    if legs[id]?.value.provisionals.deferAnswer(sdp) == true { return }
    let content = ResponseContent(
      code: 200, tag: leg.dialog.localTag, sdp: leg.provisionals.isAnswered ? nil : sdp, fields: leg.session.agreement.fields,
      isDialogForming: true)
    guard let bytes = respond(transaction, content) else { return }
    legs[id]?.value.answered()
    step.output.changedLegs.append(id)
    legs[id]?.value.provisionals.finish(of: id, &step)
    startSession(id, leg.session.agreement.timer)
    let answer = UnacknowledgedAnswer.Answer(
      bytes: bytes, flow: flow, sequence: leg.inviteSequence, wantsAnswer: leg.isLateOffer && !leg.provisionals.isAnswered,
      isReinvite: false)
    legs[id]?.value.answer.start(answer, of: id, &step)
  }

  private mutating func refuse(_ id: LegID, code: Int, reason: String?, cause: ReasonValue?, retryAfter: Int?) {
    guard let leg = legs[id]?.value, leg.phase == .ringing, let transaction = leg.inviteTransaction, (300..<700).contains(code)
    else {
      return
    }
    var content = ResponseContent(code: code, reason: reason, tag: leg.dialog.localTag)
    if let cause { content.fields.append((.reason, cause.description)) }
    if let retryAfter { content.fields.append((.retryAfter, String(max(0, retryAfter)))) }
    respond(transaction, content)
    close(id)
  }

  private mutating func redirect(_ id: LegID, _ node: String) {
    guard let leg = legs[id]?.value, leg.phase == .ringing, let transaction = leg.inviteTransaction,
      let request = servers.reply(transaction)?.message, case .request(_, _, let range) = request.startLine
    else { return }
    let asked = try? URI(Array(request.text(range).utf8))
    let user = asked.map {
      String(decoding: Array(request.text(range).utf8)[Int($0.user.lower)..<Int($0.user.upper)], as: UTF8.self)
    }
    var content = ResponseContent(code: 302, tag: leg.dialog.localTag)
    content.fields.append((.contact, SteeredContact.contact(user ?? "", at: node)))
    respond(transaction, content)
    close(id)
  }

  private mutating func bye(_ id: LegID, _ reason: ReasonValue?) {
    guard let leg = legs[id]?.value else { return }
    switch leg.phase {
    case .confirmed: sendBye(id, reason)
    case .answered: legs[id]?.value.answer.deferBye(reason)
    case .ringing where leg.provisionals.hasDeferredAnswer: refuse(id, code: 480, reason: nil, cause: reason, retryAfter: nil)
    case .ringing, .calling, .ending: break
    }
  }

  mutating func legTimer(_ id: LegID, _ timer: LegTimer) {
    guard let leg = legs[id]?.value else { return }
    switch timer {
    case .answer: legs[id]?.value.answer.fired(of: id, &step)
    case .acknowledgement:
      legs[id]?.value.answer.stop(of: id, &step)
      step.emit(.ackTimedOut(id))
      sendBye(id, leg.answer.deferredBye?.reason ?? .sip(408, "ACK timed out"))
    case .provisional:
      guard let last = leg.provisionals.repeated else { return }
      respondProvisional(id, code: last.code, reason: last.reason, sdp: last.sdp)
    case .cancelled: cancelTimedOut(id)
    case .silence: targetSilent(id)
    case .reliable: legs[id]?.value.provisionals.fired(of: id, &step)
    case .unacknowledged: reliableTimedOut(id)
    case .refresh: refresh(id)
    case .sessionEnd: sessionEnded(id)
    case .glare: glareOver(id)
    case .refer: referTimedOut(id)
    }
  }
}
