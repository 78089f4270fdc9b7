import Bytes
import SIP

extension UserAgent {
  /// Makes the leg of a new INVITE and says 100.
  mutating func openLeg(_ request: Request, _ routes: [String], isLateOffer: Bool) -> LegID {
    let message = request.message
    let id = LegID.inbound(nextNumber())
    let tag = newTag()
    let to = message.field(.to).map { message.text($0.value) } ?? ""
    let dialog = Dialog(
      callID: message.callID, localTag: tag, remoteTag: request.envelope.from.tag.map(message.text) ?? "",
      localParty: to + ";tag=" + tag,
      remoteParty: message.field(.from).map { message.text($0.value) } ?? "",
      remoteTarget: message.contactTarget ?? "sip:\(request.flow.remote)", routeSet: routes,
      localSequence: UInt32(truncatingIfNeeded: random.next() & 0xffff) + 1, remoteSequence: request.envelope.cseq.number)
    let transaction = beginServer(request.key, .invite, merge: mergeKey(request), request.reply, leg: id)
    var leg = Leg(
      id: id, trunk: request.trunk, phase: .ringing, flow: request.flow, dialog: dialog, inviteTransaction: transaction,
      inviteSequence: request.envelope.cseq.number)
    leg.isLateOffer = isLateOffer
    legs[id] = leg
    dialogs[dialog.key] = id
    respond(transaction, ResponseContent(code: 100))
    return id
  }

  /// Takes a leg out of the tables. Its transactions live on by themselves and absorb what still comes.
  mutating func close(_ id: LegID) {
    guard let leg = legs.removeValue(forKey: id) else { return }
    if dialogs[leg.dialog.key] == id { dialogs[leg.dialog.key] = nil }
    for timer in [LegTimer.answer, .acknowledgement, .provisional, .cancelled, .silence] { timers.cancel(.leg(id, timer)) }
    emit(.legClosed(id))
  }

  mutating func perform(_ command: Command) {
    switch command {
    case .respondProvisional(let id, let code, let reason, let sdp): respondProvisional(id, code, reason, sdp)
    case .answer(let id, let sdp): answer(id, sdp)
    case .refuse(let id, let code, let reason, let cause, let retryAfter): refuse(id, code, reason, cause, retryAfter)
    case .invite(let id, let invite): startInvite(id, invite)
    case .cancel(let id, let reason): cancel(id, reason)
    case .bye(let id, let reason): bye(id, reason)
    case .answerReinvite(let id, let sdp): answerReinvite(id, sdp)
    case .refuseReinvite(let id, let code): refuseReinvite(id, code)
    case .ping(let id): ping(id)
    case .request(let id, let request): startRequest(id, request)
    }
  }

  private mutating func respondProvisional(_ id: LegID, _ code: Int, _ reason: String?, _ sdp: String?) {
    guard let leg = legs[id], leg.phase == .ringing, let transaction = leg.inviteTransaction, (101..<200).contains(code) else {
      return
    }
    let content = ResponseContent(code: code, reason: reason, tag: leg.dialog.localTag, sdp: sdp, isDialogForming: true)
    respond(transaction, content)
    legs[id]?.lastProvisional = (code, reason, sdp)
    timers.set(.leg(id, .provisional), at: now + Interval.provisional)
  }

  private mutating func answer(_ id: LegID, _ sdp: String) {
    guard let leg = legs[id], leg.phase == .ringing, let transaction = leg.inviteTransaction,
      let flow = servers[transaction]?.reply?.flow,
      let bytes = respond(transaction, ResponseContent(code: 200, tag: leg.dialog.localTag, sdp: sdp, isDialogForming: true))
    else { return }
    timers.cancel(.leg(id, .provisional))
    legs[id]?.phase = .answered
    legs[id]?.lastProvisional = nil
    startAnswer(
      id, Leg.Answer(bytes: bytes, flow: flow, sequence: leg.inviteSequence, wantsAnswer: leg.isLateOffer, isReinvite: false))
  }

  /// A 2xx is sent again by the leg, not by the transaction, until its ACK (RFC 3261 §13.3.1.4), also on TCP.
  private mutating func startAnswer(_ id: LegID, _ answer: Leg.Answer) {
    legs[id]?.answer = answer
    timers.set(.leg(id, .answer), at: now + answer.interval)
    timers.set(.leg(id, .acknowledgement), at: now + Interval.transaction)
  }

  mutating func settleAnswer(_ id: LegID) {
    legs[id]?.answer = nil
    timers.cancel(.leg(id, .answer))
    timers.cancel(.leg(id, .acknowledgement))
  }

  private mutating func refuse(_ id: LegID, _ code: Int, _ reason: String?, _ cause: ReasonValue?, _ retryAfter: Int?) {
    guard let leg = legs[id], leg.phase == .ringing, let transaction = leg.inviteTransaction, (300..<700).contains(code) else {
      return
    }
    var content = ResponseContent(code: code, reason: reason, tag: leg.dialog.localTag)
    if let cause { content.fields.append((.reason, cause.description)) }
    if let retryAfter { content.fields.append((.retryAfter, String(max(0, retryAfter)))) }
    respond(transaction, content)
    close(id)
  }

  private mutating func answerReinvite(_ id: LegID, _ sdp: String) {
    guard let leg = legs[id], leg.phase == .confirmed, let reinvite = leg.reinvite,
      let flow = servers[reinvite.transaction]?.reply?.flow,
      let bytes = respond(reinvite.transaction, ResponseContent(code: 200, sdp: sdp, isDialogForming: true))
    else { return }
    legs[id]?.reinvite = nil
    // The target is refreshed by a request that succeeds (RFC 3261 §12.2.2); the route set stays.
    if let target = reinvite.target { legs[id]?.dialog.remoteTarget = target }
    startAnswer(
      id, Leg.Answer(bytes: bytes, flow: flow, sequence: reinvite.sequence, wantsAnswer: reinvite.isLateOffer, isReinvite: true))
  }

  private mutating func refuseReinvite(_ id: LegID, _ code: Int) {
    guard let reinvite = legs[id]?.reinvite, (300..<700).contains(code) else { return }
    respond(reinvite.transaction, ResponseContent(code: code))
    legs[id]?.reinvite = nil
  }

  private mutating func bye(_ id: LegID, _ reason: ReasonValue?) {
    guard let leg = legs[id] else { return }
    switch leg.phase {
    case .confirmed: sendBye(id, reason)
    case .answered: legs[id]?.pendingBye = Leg.PendingBye(reason: reason)
    case .ringing, .calling, .ending: break
    }
  }

  mutating func legTimer(_ id: LegID, _ timer: LegTimer) {
    guard let leg = legs[id] else { return }
    switch timer {
    case .answer:
      guard let answer = leg.answer else { return }
      counters.retransmissionsSent += 1
      send(answer.bytes, answer.flow)
      let interval = min(answer.interval * 2, Interval.t2)
      legs[id]?.answer?.interval = interval
      timers.set(.leg(id, .answer), at: now + interval)
    case .acknowledgement:
      settleAnswer(id)
      emit(.ackTimedOut(id))
      sendBye(id, leg.pendingBye?.reason ?? .sip(408, "ACK timed out"))
    case .provisional:
      guard let last = leg.lastProvisional else { return }
      respondProvisional(id, last.code, last.reason, last.sdp)
    case .cancelled: cancelTimedOut(id)
    case .silence: targetSilent(id)
    }
  }
}
