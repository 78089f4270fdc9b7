import TrunklineBytes
import TrunklineSIP

extension UserAgent {
  /// Makes the leg of a new INVITE and sends 100.
  mutating func openLeg(
    _ request: Request, _ routes: [String], isLateOffer: Bool, _ reliability: TrunkRules.Reliability, _ session: SessionAgreement
  ) -> LegID {
    let message = request.message
    let id = LegID.inbound(nextNumber())
    let tag = newTag()
    let to = message.field(.to).map { message.text($0.value) } ?? ""
    var dialog = Dialog(
      callID: message.callID, localTag: tag, remoteTag: request.fromTag,
      localParty: to + ";tag=" + tag,
      remoteParty: message.field(.from).map { message.text($0.value) } ?? "",
      remoteTarget: message.contactTarget ?? "sip:\(request.flow.remote)", routeSet: routes,
      localSequence: UInt32(truncatingIfNeeded: random.next() & 0xffff) + 1, remoteSequence: request.envelope.cseq.number)
    if request.isTranslated { dialog.isTranslated = true }
    let transaction = beginServer(request.key, .invite, merge: mergeKey(request), request.reply, leg: id)
    var leg = Leg(
      id: id, trunk: request.trunk, phase: .ringing, flow: request.flow, dialog: dialog, inviteTransaction: transaction,
      inviteSequence: request.envelope.cseq.number)
    (leg.isLateOffer, leg.reliability, leg.agreement) = (isLateOffer, reliability, session)
    leg.peerAllowsUpdate = message.lists("UPDATE", in: .allow)
    leg.minimumSession = max(leastSession(request.trunk), ((try? message.minimumSessionSeconds) ?? nil) ?? 0)
    legs[id] = Box(leg)
    dialogs[dialog.key] = id
    respond(transaction, ResponseContent(code: 100))
    return id
  }

  /// Stores the peer's Contact of a request or response that refreshes the target (RFC 3261 §12.2).
  mutating func refresh(_ id: LegID, target: String) {
    guard let known = legs[id]?.value.dialog.remoteTarget, known != target else { return }
    legs[id]?.value.dialog.remoteTarget = target
    output.changedLegs.append(id)
  }

  /// Removes a leg from the tables. Its transactions continue by themselves and absorb late messages.
  mutating func close(_ id: LegID) {
    guard let leg = legs.removeValue(forKey: id)?.value else { return }
    if dialogs[leg.dialog.key] == id { dialogs[leg.dialog.key] = nil }
    for timer in LegTimer.allCases { timers.cancel(.leg(id, timer)) }
    emit(.legClosed(id))
  }

  mutating func perform(_ command: Command) {
    switch command {
    case .respondProvisional(let id, let code, let reason, let sdp): respondProvisional(id, code, reason, sdp)
    case .answer(let id, let sdp): answer(id, sdp)
    case .refuse(let id, let code, let reason, let cause, let retryAfter): refuse(id, code, reason, cause, retryAfter)
    case .redirect(let id, let node): redirect(id, node)
    case .invite(let id, let invite): startInvite(id, invite)
    case .cancel(let id, let reason): cancel(id, reason)
    case .bye(let id, let reason): bye(id, reason)
    case .answerReinvite(let id, let sdp): answerOffer(id, sdp)
    case .refuseReinvite(let id, let code): refuseOffer(id, code)
    case .modify(let id): wantOffer(id)
    case .offer(let id, let sdp): offer(id, sdp)
    case .acknowledge(let id, let sdp): acknowledge(id, sdp)
    case .sendDigit(let id, let digit, let milliseconds): sendDigit(id, digit, milliseconds)
    case .refer(let id, let to, let replaces): refer(id, to, replaces)
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
      let flow = servers[transaction]?.value.reply?.flow
    else { return }
    if let reliable = leg.reliable, reliable.hasSDP {
      legs[id]?.value.pendingAnswer = Leg.PendingAnswer(sdp: sdp)
      return
    }
    let content = ResponseContent(
      code: 200, tag: leg.dialog.localTag, sdp: leg.isProvisionallyAnswered ? nil : sdp, fields: leg.agreement.fields,
      isDialogForming: true)
    guard let bytes = respond(transaction, content) else { return }
    for timer in [LegTimer.provisional, .reliable, .unacknowledged] { timers.cancel(.leg(id, timer)) }
    legs[id]?.value.phase = .answered
    output.changedLegs.append(id)
    legs[id]?.value.lastProvisional = nil
    legs[id]?.value.waitingProvisionals = []
    legs[id]?.value.reliable?.isOver = true
    startSession(id, leg.agreement.timer)
    startAnswer(
      id,
      Leg.Answer(
        bytes: bytes, flow: flow, sequence: leg.inviteSequence, wantsAnswer: leg.isLateOffer && !leg.isProvisionallyAnswered,
        isReinvite: false))
  }

  /// A 2xx is retransmitted by the leg, not by the transaction, until its ACK (RFC 3261 §13.3.1.4), also on TCP.
  mutating func startAnswer(_ id: LegID, _ answer: Leg.Answer) {
    legs[id]?.value.answer = answer
    timers.schedule(.leg(id, .answer), at: now + answer.interval)
    timers.schedule(.leg(id, .acknowledgement), at: now + Interval.transaction)
  }

  mutating func stopAnswer(_ id: LegID) {
    legs[id]?.value.answer = nil
    timers.cancel(.leg(id, .answer))
    timers.cancel(.leg(id, .acknowledgement))
  }

  private mutating func refuse(_ id: LegID, _ code: Int, _ reason: String?, _ cause: ReasonValue?, _ retryAfter: Int?) {
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
      let request = servers[transaction]?.value.reply?.message, case .request(_, _, let range) = request.startLine
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
    case .answered: legs[id]?.value.pendingBye = Leg.PendingBye(reason: reason)
    case .ringing where leg.pendingAnswer != nil: refuse(id, 480, nil, reason, nil)
    case .ringing, .calling, .ending: break
    }
  }

  mutating func legTimer(_ id: LegID, _ timer: LegTimer) {
    guard let leg = legs[id]?.value else { return }
    switch timer {
    case .answer:
      guard let answer = leg.answer else { return }
      counters.retransmissionsSent += 1
      send(answer.bytes, answer.flow)
      let interval = min(answer.interval * 2, Interval.t2)
      legs[id]?.value.answer?.interval = interval
      timers.schedule(.leg(id, .answer), at: now + interval)
    case .acknowledgement:
      stopAnswer(id)
      emit(.ackTimedOut(id))
      sendBye(id, leg.pendingBye?.reason ?? .sip(408, "ACK timed out"))
    case .provisional:
      guard let last = leg.lastProvisional else { return }
      respondProvisional(id, last.code, last.reason, last.sdp)
    case .cancelled: cancelTimedOut(id)
    case .silence: targetSilent(id)
    case .reliable: reliableTimer(id)
    case .unacknowledged: reliableTimedOut(id)
    case .refresh: refresh(id)
    case .sessionEnd: sessionEnded(id)
    case .glare: glareOver(id)
    case .refer: referTimedOut(id)
    }
  }
}
