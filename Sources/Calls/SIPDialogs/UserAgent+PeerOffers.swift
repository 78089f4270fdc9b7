import TrunklineBytes
import TrunklineSIP

/// Why a request is answered with an error.
struct Refused: Error {
  var content: ResponseContent
  init(_ code: Int, _ fields: [(HeaderName, String)] = []) { content = ResponseContent(code: code, fields: fields) }
}

/// Offers and refreshes of the peer inside a dialog: re-INVITE (RFC 3261 §14.2) and UPDATE (RFC 3311 §5.2).
extension UserAgent {
  /// The session description of a request; throws the response to a body that we cannot read.
  func description(of request: Request) throws(Refused) -> String? {
    let body: SessionBody
    do { body = try request.message.sessionBody } catch { throw Refused(error.status) }
    switch body {
    case .none: return nil
    case .sdp(let text): return text
    case .other: throw Refused(415, [(.accept, "application/sdp")])
    }
  }

  /// 500 with a Retry-After of up to 10 s: the peer's own earlier offer is still open (RFC 3261 §14.2, RFC 3311 §5.2).
  private func busy() -> ResponseContent {
    ResponseContent(code: 500, fields: [(.retryAfter, String(identifiers.offerRetrySeconds()))])
  }

  mutating func receivedReinvite(_ request: Request, _ leg: Leg) {
    switch leg.phase {
    case .ringing: return respondOnce(request, busy())
    // Our 2xx has no ACK yet, or our own INVITE no final response: RFC 3261 §14.2, RFC 5407 §3.1.
    case .answered, .calling: return respondOnce(request, ResponseContent(code: 491))
    case .ending: return respondOnce(request, ResponseContent(code: 481))
    case .confirmed: break
    }
    if leg.offers.peerOffer != nil || leg.answer.isWaiting { return respondOnce(request, busy()) }
    if leg.offers.hasOpenOffer { return respondOnce(request, ResponseContent(code: 491)) }
    handleOffer(request, leg)
  }

  /// UPDATE with an offer is answered like a re-INVITE, but without ACK; one without only refreshes.
  mutating func receivedUpdate(_ request: Request, _ leg: Leg) {
    guard leg.phase != .ending, let hasOffer = (try? request.message.sessionBody).map({ $0 != .none }) else {
      return respondOnce(request, ResponseContent(code: leg.phase == .ending ? 481 : 400))
    }
    if leg.phase == .calling {
      // Without a provisional response from this tag there is no dialog; an offer in it must follow the answer to ours.
      guard leg.early.has(request.fromTag) else { return respondOnce(request, ResponseContent(code: 481)) }
      if hasOffer, leg.early.sdp(request.fromTag) == nil { return respondOnce(request, ResponseContent(code: 491)) }
    } else if hasOffer {
      if leg.phase == .ringing, !leg.provisionals.isExchangeComplete { return respondOnce(request, busy()) }
      if leg.phase == .answered || leg.offers.hasOpenOffer || leg.answer.isWaiting {
        return respondOnce(request, ResponseContent(code: 491))
      }
    }
    if leg.offers.peerOffer != nil { return respondOnce(request, busy()) }
    handleOffer(request, leg)
  }

  /// The common part of both, once an offer is allowed.
  private mutating func handleOffer(_ request: Request, _ leg: Leg) {
    let (sdp, session): (String?, SessionAgreement)
    do throws(Refused) {
      if let unsupported = unsupportedOptions(request.message, request.trunk) {
        throw Refused(420, [(.unsupported, unsupported)])
      }
      sdp = try description(of: request)
      session = try agreement(request.message, replacing: leg.session.timer, on: request.trunk)
    } catch {
      return respondOnce(request, error.content)
    }
    legs[leg.id]?.value.session.received(request.message)
    let isUpdate = request.method == .update
    let offer = PeerOffer(
      transaction: beginServer(
        request.key, method: request.method, merge: isUpdate ? nil : mergeKey(request), reply: request.reply, leg: leg.id),
      method: request.method, sequence: request.envelope.cseq.number, isLateOffer: sdp == nil,
      target: request.message.contactTarget, session: leg.phase == .confirmed ? session : nil)
    if !isUpdate { respond(offer.transaction, ResponseContent(code: 100)) }
    legs[leg.id]?.value.offers.received(offer)
    if isUpdate, sdp == nil { return answerOffer(leg.id, nil) }
    step.emit(.reinviteReceived(leg.id, sdp: sdp))
  }

  /// The call machine's answer, or offer if the re-INVITE had none.
  mutating func answerOffer(_ id: LegID, _ sdp: String?) {
    guard let leg = legs[id]?.value, leg.phase != .ending, let offer = leg.offers.peerOffer,
      let flow = servers.reply(offer.transaction)?.flow
    else { return }
    let content = ResponseContent(code: 200, sdp: sdp, fields: offer.session?.fields ?? [], isDialogForming: true)
    guard let bytes = respond(offer.transaction, content) else { return }
    _ = legs[id]?.value.offers.closePeerOffer()
    // The target is refreshed by a request that succeeds (RFC 3261 §12.2.2); the route set stays.
    if let target = offer.target { refresh(id, target: target) }
    if let session = offer.session { startSession(id, session.timer) }
    if offer.method == .invite {
      let answer = UnacknowledgedAnswer.Answer(
        bytes: bytes, flow: flow, sequence: offer.sequence, wantsAnswer: offer.isLateOffer, isReinvite: true)
      legs[id]?.value.answer.start(answer, of: id, &step)
    } else {
      offerIfFree(id)
    }
  }

  mutating func refuseOffer(_ id: LegID, _ code: Int) {
    guard (300..<700).contains(code), closePeerOffer(id, code: code) else { return }
    offerIfFree(id)
  }

  /// Refuses the peer's open offer, if there is one.
  @discardableResult
  mutating func closePeerOffer(_ id: LegID, code: Int) -> Bool {
    guard let offer = legs[id]?.value.offers.closePeerOffer() else { return false }
    respond(offer.transaction, ResponseContent(code: code))
    return true
  }
}
