import TrunklineBytes
import TrunklineSIP

extension UserAgent {
  /// A request with the tag of one of our legs (RFC 3261 §12.2.2).
  mutating func received(inDialog request: Request, _ id: LegID) {
    guard let leg = legs[id]?.value, isSameTrunk(request, leg), isPeer(request, of: leg) else {
      return refuse(request, .noDialog, code: 481)
    }
    guard servers.hasRoomForCalls else {
      return respondStateless(request.reply, ResponseContent(code: 503, fields: [(.retryAfter, "1")]))
    }
    let sequence = request.envelope.cseq.number
    let isEarly = leg.phase == .calling
    let isInOrder =
      isEarly
      ? legs[id]?.value.early.received(request.fromTag, sequence: sequence)
      : legs[id]?.value.received(sequence: sequence)
    guard isInOrder == true else { return respondOnce(request, ResponseContent(code: 500, reason: "CSeq Out Of Order")) }
    if !isEarly { follow(request, id) }
    let rules = rules(leg.trunk)
    switch request.method {
    case .bye: receivedBye(request, leg)
    case .invite: receivedReinvite(request, leg)
    case .update: receivedUpdate(request, leg)
    case .prack where rules.reliability != .off: receivedAcknowledgement(request, leg)
    case .info: receivedInfo(request, leg)
    case .refer where rules.allowsTransfer: receivedRefer(request, leg)
    case .notify: receivedNotify(request, leg)
    case .options:
      respondOnce(request, ResponseContent(code: 200, fields: capabilities(leg.trunk)))
    case .other: respondOnce(request, ResponseContent(code: 501, fields: [(.allow, rules.methods)]))
    default: respondOnce(request, ResponseContent(code: 405, fields: [(.allow, rules.methods)]))
    }
  }

  /// The flow of a request in the dialog leads back to its sender.
  mutating func follow(_ request: Request, _ id: LegID) {
    if legs[id]?.value.follow(request) == true { step.output.changedLegs.append(id) }
  }

  /// Two trunks may have one address (two accounts at a carrier): then the address decides, not the name of the trunk.
  private func isSameTrunk(_ request: Request, _ leg: Leg) -> Bool {
    trunks.accounts.mayBeOne(leg.trunk, request.trunk) || leg.flow.remote == request.flow.remote
  }

  /// The From tag is the dialog's. An outbound leg before its 2xx has early dialogs with any tag.
  private func isPeer(_ request: Request, of leg: Leg) -> Bool {
    leg.phase == .calling || leg.dialog.remoteTag == request.fromTag
  }

  /// Answers a request at once, through a transaction that absorbs its retransmissions.
  mutating func respondOnce(_ request: Request, _ content: ResponseContent) {
    respond(beginServer(request.key, method: request.method, reply: request.reply), content)
  }

  private mutating func receivedBye(_ request: Request, _ leg: Leg) {
    // Only the caller may end an early dialog, by CANCEL; a callee may not send BYE in it (RFC 3261 §15).
    guard leg.phase != .calling else { return respondOnce(request, ResponseContent(code: 481)) }
    respondOnce(request, ResponseContent(code: 200))
    let reason = request.message.reasons.first
    if let offer = leg.offers.peerOffer { respond(offer.transaction, ResponseContent(code: 487)) }
    switch leg.phase {
    case .ringing:
      if let transaction = leg.inviteTransaction { respond(transaction, ResponseContent(code: 487, tag: leg.dialog.localTag)) }
      step.emit(.cancelled(leg.id, reason))
      close(leg.id)
    case .answered, .confirmed:
      step.emit(.byeReceived(leg.id, reason))
      close(leg.id)
    case .ending, .calling: break
    }
  }
}

extension UserAgent {
  /// ACK: for a non-2xx it belongs to the INVITE's transaction, for a 2xx to the leg.
  mutating func received(ack request: Request) {
    if let id = servers.transaction(of: request.key), servers.receivedAck(id, &step) { return }
    guard let tag = request.envelope.to.tag,
      let leg = legs.leg(of: DialogKey(callID: request.message.callID, localTag: request.message.text(tag))),
      isSameTrunk(request, leg), leg.dialog.remoteTag == request.fromTag,
      let answer = leg.answer.answer(request.envelope.cseq.number)
    else { return step.counters.drop(.strayAcknowledgement) }
    let id = leg.id
    follow(request, id)
    legs[id]?.value.answer.stop(of: id, &step)
    var sdp: String?
    if answer.wantsAnswer, case .sdp(let text)? = try? request.message.sessionBody { sdp = text }
    if !answer.isReinvite {
      legs[id]?.value.acknowledged()
      step.emit(.acknowledged(id, sdp: sdp))
    } else if answer.wantsAnswer {
      step.emit(.acknowledged(id, sdp: sdp))
    }
    if let bye = leg.answer.deferredBye { return sendBye(id, bye.reason) }
    offerIfFree(id)
  }

  /// CANCEL finds its INVITE by branch (RFC 3261 §9.2). Answered without state: the answer is the same each time.
  mutating func received(cancel request: Request) {
    guard let transaction = servers.transaction(of: request.key), let invite = servers.invite(transaction) else {
      return respondStateless(request.reply, ResponseContent(code: 481))
    }
    let leg = invite.leg.flatMap { legs[$0]?.value }
    respondStateless(request.reply, ResponseContent(code: 200, tag: leg?.dialog.localTag))
    guard let leg, invite.isProceeding else { return }
    respond(transaction, ResponseContent(code: 487, tag: leg.dialog.localTag))
    if leg.inviteTransaction == transaction {
      step.emit(.cancelled(leg.id, request.message.reasons.first))
      close(leg.id)
    } else {
      _ = legs[leg.id]?.value.offers.closePeerOffer()
    }
  }
}
