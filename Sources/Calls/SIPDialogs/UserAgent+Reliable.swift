import TrunklineBytes
import TrunklineSIP

/// Reliable provisional responses (RFC 3262), both roles.
extension UserAgent {
  // MARK: our responses, on an inbound leg

  /// Whether a provisional response of this leg is sent reliably.
  func isReliable(_ leg: Leg, sdp: String?) -> Bool {
    switch leg.reliability {
    case .off: false
    case .supported: sdp != nil
    case .required: true
    }
  }

  /// Sends 101…199. One reliable response at a time waits for its PRACK, later ones are queued after it (RFC 3262 §3).
  mutating func respondProvisional(_ id: LegID, _ code: Int, _ reason: String?, _ sdp: String?) {
    guard let leg = legs[id]?.value, leg.phase == .ringing, let transaction = leg.inviteTransaction, (101..<200).contains(code),
      leg.pendingAnswer == nil
    else { return }
    if leg.reliable != nil {
      guard leg.waitingProvisionals.count < Limits.waitingProvisionals else { return }
      legs[id]?.value.waitingProvisionals.append(Provisional(code: code, reason: reason, sdp: sdp))
      return
    }
    var content = ResponseContent(code: code, reason: reason, tag: leg.dialog.localTag, isDialogForming: true)
    guard isReliable(leg, sdp: sdp) else {
      content.sdp = sdp
      respond(transaction, content)
      legs[id]?.value.lastProvisional = Provisional(code: code, reason: reason, sdp: sdp)
      timers.schedule(.leg(id, .provisional), at: now + Interval.provisional)
      return
    }
    // The first reliable response to an INVITE without offer must contain ours; once it is answered there is no other.
    content.sdp = leg.isProvisionallyAnswered ? nil : sdp
    let number = leg.lastReliable == 0 ? UInt32(truncatingIfNeeded: random.next() & 0x3fff_ffff) + 1 : leg.lastReliable &+ 1
    content.fields = [(.require, "100rel"), (.rseq, String(number))]
    guard let flow = servers[transaction]?.value.reply?.flow, let bytes = respond(transaction, content) else { return }
    timers.cancel(.leg(id, .provisional))
    legs[id]?.value.lastProvisional = nil
    legs[id]?.value.lastReliable = number
    legs[id]?.value.reliable = ReliableResponse(
      bytes: bytes, flow: flow, number: number, hasSDP: content.sdp != nil,
      wantsAnswer: leg.isLateOffer && content.sdp != nil)
    timers.schedule(.leg(id, .reliable), at: now + Interval.t1)
    timers.schedule(.leg(id, .unacknowledged), at: now + Interval.transaction)
  }

  /// Sends the response again, with the interval doubled each time; the 64·T1 of the whole are the only bound.
  mutating func reliableTimer(_ id: LegID) {
    guard let response = legs[id]?.value.reliable, !response.isOver else { return }
    counters.retransmissionsSent += 1
    send(response.bytes, response.flow)
    legs[id]?.value.reliable?.interval = response.interval * 2
    timers.schedule(.leg(id, .reliable), at: now + response.interval * 2)
  }

  /// No PRACK within 64·T1: the INVITE is refused with a 5xx (RFC 3262 §3).
  mutating func reliableTimedOut(_ id: LegID) {
    guard let leg = legs[id]?.value, leg.phase == .ringing, let transaction = leg.inviteTransaction else { return }
    respond(transaction, ResponseContent(code: 504, reason: "No PRACK", tag: leg.dialog.localTag))
    emit(.provisionalTimedOut(id))
    close(id)
  }

  /// PRACK inside a leg's dialog.
  mutating func receivedAcknowledgement(_ request: Request, _ leg: Leg) {
    guard let reliable = leg.reliable, let rack = try? request.message.responseAcknowledgement, rack.response == reliable.number,
      rack.sequence == leg.inviteSequence, rack.method == .invite
    else { return respondOnce(request, ResponseContent(code: 481)) }
    let sdp: String?
    do throws(Refused) { sdp = try description(of: request) } catch { return respondOnce(request, error.content) }
    let id = leg.id
    legs[id]?.value.reliable = nil
    if reliable.hasSDP { legs[id]?.value.isExchangeComplete = true }
    for timer in [LegTimer.reliable, .unacknowledged] { timers.cancel(.leg(id, timer)) }
    if let sdp, !reliable.wantsAnswer, leg.phase == .ringing, reliable.hasSDP {
      // A new offer, once the first exchange is complete (RFC 3262 §5): answered in the PRACK's 200.
      let transaction = beginServer(request.key, .prack, request.reply, leg: id)
      legs[id]?.value.peerOffer = PeerOffer(
        transaction: transaction, method: .prack, sequence: request.envelope.cseq.number, isLateOffer: false, target: nil)
      emit(.reinviteReceived(id, sdp: sdp))
    } else {
      respondOnce(request, ResponseContent(code: 200))
      if reliable.wantsAnswer {
        legs[id]?.value.isProvisionallyAnswered = true
        emit(.provisionallyAnswered(id, sdp: sdp))
      }
    }
    resumeAfterPrack(id)
  }

  /// Sends what waited for the PRACK: the 200, or the next provisional response.
  private mutating func resumeAfterPrack(_ id: LegID) {
    guard let leg = legs[id]?.value, leg.phase == .ringing, leg.reliable == nil else { return }
    if let pending = leg.pendingAnswer {
      legs[id]?.value.pendingAnswer = nil
      answer(id, pending.sdp)
    } else if !leg.waitingProvisionals.isEmpty, let next = legs[id]?.value.waitingProvisionals.removeFirst() {
      respondProvisional(id, next.code, next.reason, next.sdp)
    }
  }

  // MARK: the peer's responses, on an outbound leg

  /// Stores the early dialog of a provisional response. False if the response is to be ignored: a reliable one that is repeated
  /// or out of order (RFC 3262 §4).
  mutating func acceptProvisional(_ id: LegID, _ message: Message, _ envelope: Envelope, sdp: String?) -> Bool {
    guard let leg = legs[id]?.value, let tag = envelope.to.tag.map(message.text), !tag.isEmpty else { return true }
    if leg.early[tag] == nil {
      guard leg.early.count < Limits.forks else { return false }
      let early = EarlyDialog(dialog: confirmed(leg.dialog, message, envelope))
      legs[id]?.value.early[tag] = early
    }
    if rules(leg.trunk).reliability != .off, message.lists("100rel", in: .require), let number = message.responseSequence {
      if let last = leg.early[tag]?.lastResponse, number != last &+ 1 { return false }
      legs[id]?.value.early[tag]?.lastResponse = number
      let rack = "\(number) \(leg.inviteSequence) INVITE"
      sendInDialog(.prack, .prack, id, RequestContent(fields: [(.rack, rack)], fork: tag))
    }
    if let sdp { legs[id]?.value.early[tag]?.sdp = sdp }
    return true
  }
}
