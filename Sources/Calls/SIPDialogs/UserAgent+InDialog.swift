import TrunklineBytes
import TrunklineSIP

extension UserAgent {
  /// A request with the tag of one of our legs (RFC 3261 §12.2.2).
  mutating func received(inDialog request: Request, _ id: LegID) {
    guard let leg = legs[id]?.value, isSameTrunk(request, leg), isPeer(request, of: leg) else {
      return refuse(request, .noDialog, code: 481)
    }
    guard servers.count < Limits.serverTransactions + Limits.serverTransactionsOfCalls else {
      return respondStateless(request.reply, ResponseContent(code: 503, fields: [(.retryAfter, "1")]))
    }
    let sequence = request.envelope.cseq.number
    let isEarly = leg.phase == .calling
    if let last = isEarly ? leg.early[request.fromTag]?.dialog.remoteSequence : leg.dialog.remoteSequence, sequence <= last {
      return respondOnce(request, ResponseContent(code: 500, reason: "CSeq Out Of Order"))
    }
    if isEarly {
      legs[id]?.value.early[request.fromTag]?.dialog.remoteSequence = sequence
    } else {
      legs[id]?.value.dialog.remoteSequence = sequence
      follow(request, id)
    }
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

  /// The flow of a request in the dialog leads back to its sender: a load balancer that drains, a PBX that reconnects and a NAT
  /// that forgets change it during the call. Another transport does not count: a dialog over TLS does not continue unencrypted,
  /// and only a message too long for a datagram comes by TCP.
  mutating func follow(_ request: Request, _ id: LegID) {
    guard let leg = legs[id]?.value else { return }
    if request.isTranslated != (leg.dialog.isTranslated ?? false) { legs[id]?.value.dialog.isTranslated = request.isTranslated }
    guard request.flow != leg.flow, request.flow.transport == leg.flow.transport else { return }
    if leg.home == nil { legs[id]?.value.home = leg.flow }
    // An edge is found by its Record-Route.
    if request.flow.remote.ip != leg.flow.remote.ip, !request.isFromEdge { legs[id]?.value.dialog.followsConnection = true }
    legs[id]?.value.flow = request.flow
    output.changedLegs.append(id)
  }

  /// Two trunks may have one address (two accounts at a carrier): then the address decides, not the name of the trunk.
  private func isSameTrunk(_ request: Request, _ leg: Leg) -> Bool {
    accounts.mayBeOne(leg.trunk, request.trunk) || leg.flow.remote == request.flow.remote
  }

  /// The From tag is the dialog's. An outbound leg before its 2xx has early dialogs with any tag.
  private func isPeer(_ request: Request, of leg: Leg) -> Bool {
    leg.phase == .calling || leg.dialog.remoteTag == request.fromTag
  }

  /// Answers a request at once, through a transaction that absorbs its retransmissions.
  mutating func respondOnce(_ request: Request, _ content: ResponseContent) {
    respond(beginServer(request.key, request.method, request.reply), content)
  }

  private mutating func receivedBye(_ request: Request, _ leg: Leg) {
    // Only the caller may end an early dialog, by CANCEL; a callee may not send BYE in it (RFC 3261 §15).
    guard leg.phase != .calling else { return respondOnce(request, ResponseContent(code: 481)) }
    respondOnce(request, ResponseContent(code: 200))
    let reason = request.message.reasons.first
    if let offer = leg.peerOffer { respond(offer.transaction, ResponseContent(code: 487)) }
    switch leg.phase {
    case .ringing:
      if let transaction = leg.inviteTransaction { respond(transaction, ResponseContent(code: 487, tag: leg.dialog.localTag)) }
      emit(.cancelled(leg.id, reason))
      close(leg.id)
    case .answered, .confirmed:
      emit(.byeReceived(leg.id, reason))
      close(leg.id)
    case .ending, .calling: break
    }
  }
}

extension UserAgent {
  /// ACK: for a non-2xx it belongs to the INVITE's transaction, for a 2xx to the leg.
  mutating func received(ack request: Request) {
    if let id = serverIndex[request.key], serverReceivedAck(id) { return }
    guard let tag = request.envelope.to.tag,
      let id = dialogs[DialogKey(callID: request.message.callID, localTag: request.message.text(tag))], let leg = legs[id]?.value,
      isSameTrunk(request, leg), leg.dialog.remoteTag == request.fromTag,
      let answer = leg.answer, answer.sequence == request.envelope.cseq.number
    else { return counters.drop(.strayAcknowledgement) }
    follow(request, id)
    stopAnswer(id)
    var sdp: String?
    if answer.wantsAnswer, case .sdp(let text)? = try? request.message.sessionBody { sdp = text }
    if !answer.isReinvite {
      legs[id]?.value.phase = .confirmed
      emit(.acknowledged(id, sdp: sdp))
    } else if answer.wantsAnswer {
      emit(.acknowledged(id, sdp: sdp))
    }
    if let bye = leg.pendingBye { return sendBye(id, bye.reason) }
    offerIfFree(id)
  }

  /// CANCEL finds its INVITE by branch (RFC 3261 §9.2). Answered without state: the answer is the same each time.
  mutating func received(cancel request: Request) {
    guard let transaction = serverIndex[request.key], let server = servers[transaction]?.value, server.method == .invite else {
      return respondStateless(request.reply, ResponseContent(code: 481))
    }
    let leg = server.leg.flatMap { legs[$0]?.value }
    respondStateless(request.reply, ResponseContent(code: 200, tag: leg?.dialog.localTag))
    guard let leg, server.phase == .proceeding else { return }
    respond(transaction, ResponseContent(code: 487, tag: leg.dialog.localTag))
    if leg.inviteTransaction == transaction {
      emit(.cancelled(leg.id, request.message.reasons.first))
      close(leg.id)
    } else {
      legs[leg.id]?.value.peerOffer = nil
    }
  }
}
