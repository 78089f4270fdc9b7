import TrunklineBytes
import TrunklineSIP

/// Reliable provisional responses (RFC 3262), both roles.
extension UserAgent {
  // MARK: our responses, on an inbound leg

  /// Sends 101…199, or queues it.
  mutating func respondProvisional(_ id: LegID, code: Int, reason: String?, sdp: String?) {
    let response = Provisional(code: code, reason: reason, sdp: sdp)
    guard let leg = legs[id]?.value, leg.phase == .ringing, let transaction = leg.inviteTransaction, (101..<200).contains(code),
      let plan = legs[id]?.value.provisionals.begin(response)
    else { return }
    var content = ResponseContent(code: code, reason: reason, tag: leg.dialog.localTag, sdp: plan.sdp, isDialogForming: true)
    guard plan.isReliable else {
      respond(transaction, content)
      legs[id]?.value.provisionals.sent(response, of: id, &step)
      return
    }
    let number = leg.provisionals.nextNumber ?? identifiers.initialResponseNumber()
    content.fields = [(.require, "100rel"), (.rseq, String(number))]
    guard let flow = servers.reply(transaction)?.flow, let bytes = respond(transaction, content) else { return }
    let reliable = ReliableResponse(
      bytes: bytes, flow: flow, number: number, hasSDP: plan.sdp != nil, wantsAnswer: leg.isLateOffer && plan.sdp != nil)
    legs[id]?.value.provisionals.sent(reliably: reliable, of: id, &step)
  }

  /// No PRACK within 64·T1: the INVITE is refused with a 5xx (RFC 3262 §3).
  mutating func reliableTimedOut(_ id: LegID) {
    guard let leg = legs[id]?.value, leg.phase == .ringing, let transaction = leg.inviteTransaction else { return }
    respond(transaction, ResponseContent(code: 504, reason: "No PRACK", tag: leg.dialog.localTag))
    step.emit(.provisionalTimedOut(id))
    close(id)
  }

  /// PRACK inside a leg's dialog.
  mutating func receivedAcknowledgement(_ request: Request, _ leg: Leg) {
    guard let rack = try? request.message.responseAcknowledgement, rack.sequence == leg.inviteSequence, rack.method == .invite,
      let reliable = leg.provisionals.response(rack.response)
    else { return respondOnce(request, ResponseContent(code: 481)) }
    let sdp: String?
    do throws(Refused) { sdp = try description(of: request) } catch { return respondOnce(request, error.content) }
    let id = leg.id
    legs[id]?.value.provisionals.acknowledged(of: id, &step)
    if let sdp, !reliable.wantsAnswer, leg.phase == .ringing, reliable.hasSDP {
      // A new offer, once the first exchange is complete (RFC 3262 §5): answered in the PRACK's 200.
      let transaction = beginServer(request.key, method: .prack, reply: request.reply, leg: id)
      let offer = PeerOffer(
        transaction: transaction, method: .prack, sequence: request.envelope.cseq.number, isLateOffer: false, target: nil)
      legs[id]?.value.offers.received(offer)
      step.emit(.reinviteReceived(id, sdp: sdp))
    } else {
      respondOnce(request, ResponseContent(code: 200))
      if reliable.wantsAnswer { step.emit(.provisionallyAnswered(id, sdp: sdp)) }
    }
    resumeAfterPrack(id)
  }

  /// Sends what waited for the PRACK: the 200, or the next provisional response.
  private mutating func resumeAfterPrack(_ id: LegID) {
    guard legs[id]?.value.phase == .ringing else { return }
    switch legs[id]?.value.provisionals.resume() {
    case .answer(let sdp): answer(id, sdp)
    case .provisional(let next): respondProvisional(id, code: next.code, reason: next.reason, sdp: next.sdp)
    case nil: break
    }
  }

  // MARK: the peer's responses, on an outbound leg

  /// Stores the early dialog of a provisional response. False if the response is to be ignored: a reliable one that is repeated
  /// or out of order (RFC 3262 §4).
  mutating func acceptProvisional(_ id: LegID, _ message: Message, _ envelope: Envelope, sdp: String?) -> Bool {
    guard let leg = legs[id]?.value, let tag = envelope.to.tag.map(message.text), !tag.isEmpty else { return true }
    if !leg.early.has(tag) {
      let dialog = confirmed(leg.dialog, message, envelope)
      guard legs[id]?.value.early.open(tag, dialog) == true else { return false }
    }
    if rules(leg.trunk).reliability != .off, message.lists("100rel", in: .require), let number = message.responseSequence {
      guard legs[id]?.value.early.acknowledge(tag, response: number) == true else { return false }
      let rack = "\(number) \(leg.inviteSequence) INVITE"
      sendInDialog(.prack, .prack, on: id, RequestContent(fields: [(.rack, rack)], fork: tag))
    }
    if let sdp { legs[id]?.value.early.described(tag, as: sdp) }
    return true
  }
}
