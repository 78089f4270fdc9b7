import TrunklineBytes
import TrunklineSIP

/// Offers and refreshes of ours inside a dialog: re-INVITE (RFC 3261 §14) and UPDATE (RFC 3311).
extension UserAgent {
  /// Requests an offer as soon as one may be sent: not during another exchange, nor during the wait after a glare.
  mutating func wantOffer(_ id: LegID) {
    guard legs[id] != nil else { return }
    legs[id]?.value.wantsOffer = true
    offerIfFree(id)
  }

  mutating func offerIfFree(_ id: LegID) {
    guard let leg = legs[id]?.value, leg.wantsOffer, leg.isFreeForOffer, !leg.isWaitingOutGlare else { return }
    legs[id]?.value.wantsOffer = false
    emit(.offerWanted(id))
  }

  /// The re-INVITE with the call machine's offer.
  mutating func offer(_ id: LegID, _ sdp: String) {
    guard let leg = legs[id]?.value else { return }
    guard leg.isFreeForOffer, !leg.isWaitingOutGlare else {
      // another exchange began between the request and the offer
      legs[id]?.value.wantsOffer = true
      return
    }
    legs[id]?.value.ourOffer = OurOffer(kind: .reinvite)
    sendInDialog(
      .reinvite, .invite, id, RequestContent(fields: sessionFields(leg), body: sdp, refreshesTarget: true))
  }

  /// The 2xx of our re-INVITE or UPDATE.
  mutating func offerAccepted(_ id: LegID, _ purpose: ClientTransaction.Purpose, _ message: Message) {
    guard let leg = legs[id]?.value, leg.phase == .confirmed else { return }
    legs[id]?.value.ourOffer = nil
    legs[id]?.value.offerTries = 0
    if let target = message.contactTarget { refresh(id, target: target) }
    acceptSession(id, response: message)
    if purpose == .reinvite {
      var sdp: String?
      if case .sdp(let text)? = try? message.sessionBody { sdp = text }
      emit(.offerAnswered(id, sdp: sdp))
    }
    offerIfFree(id)
  }

  /// A final non-2xx to our re-INVITE or UPDATE, or no final response.
  mutating func offerRefused(_ id: LegID, _ purpose: ClientTransaction.Purpose, _ code: Int, _ message: Message?) {
    guard let leg = legs[id]?.value, leg.phase == .confirmed else { return }
    legs[id]?.value.ourOffer = nil
    switch code {
    case 408, 481:
      // RFC 3261 §12.2.1.2, §14.1: the dialog has ended.
      emit(.sessionLost(id, .refreshFailed(code)))
      return sendBye(id, .sip(code))
    case 491: return retryOffer(id, purpose, after: glareDelay(id))
    case 422: if raiseSession(id, message) { return retryOffer(id, purpose, after: .zero) }
    case 500:
      if let seconds = message?.retryAfterSeconds, seconds <= Limits.offerRetrySeconds {
        return retryOffer(id, purpose, after: .seconds(seconds))
      }
    case 405, 501:
      if purpose == .update {
        legs[id]?.value.peerAllowsUpdate = false
        return wantOffer(id)
      }
    default: break
    }
    if purpose == .reinvite { emit(.offerRefused(id, code: code)) }
    if leg.session?.isRefresher == true { timers.schedule(.leg(id, .refresh), at: now + Interval.refreshRetry) }
    offerIfFree(id)
  }

  /// Moves dialogs to another local address. The peer learns it by the Contact of our next offer (RFC 3261 §12.2.1.1). An INVITE
  /// of ours without a final response has failed: its answer would go to the address that its Via names.
  mutating func moveLegs(_ flows: [LegID: Flow]) {
    let unanswered = clients.filter { $0.value.value.phase == .calling && $0.value.value.leg.map { flows[$0] != nil } ?? false }
    for (id, flow) in flows.sorted(by: { $0.key.raw < $1.key.raw }) {
      if legs[id]?.value.phase == .calling {
        inviteLostAddress(id, flow)
        continue
      }
      guard let leg = legs[id]?.value, [.ringing, .answered, .confirmed].contains(leg.phase) else { continue }
      legs[id]?.value.flow = flow
      legs[id]?.value.hasMoved = true
      for (client, box) in unanswered where box.value.leg == id { moveRequest(client, box.value.purpose, of: id, to: flow) }
      emit(.addressMoved(id))
    }
  }

  /// Sends CANCEL from our present address, so that no phone rings for a call that cannot be answered. CANCEL does not wait for a
  /// provisional response: the INVITE is old enough not to be overtaken (RFC 3261 §9.1).
  private mutating func inviteLostAddress(_ id: LegID, _ flow: Flow) {
    guard let leg = legs[id]?.value else { return }
    if let transaction = leg.inviteTransaction, clients[transaction] != nil {
      clients[transaction]?.value.purpose = .abandoned
      clients[transaction]?.value.leg = nil
      clients[transaction]?.value.flow = flow
      timers.cancel(.client(transaction, .retransmission))
      if leg.cancel != .sent, let client = clients[transaction]?.value { cancelAbandoned(client, transaction) }
    }
    // an INVITE that we had cancelled ends as the peer would have ended it
    if leg.cancel != .none { return fail(id, code: 487, cause: nil, byTransport: false) }
    emit(.addressLost(id))
    fail(id, code: 408, cause: nil, byTransport: true)
  }

  /// The flow of a dialog, and whether it has moved from its first one; nil: there is no such leg.
  public func flow(of id: LegID) -> (flow: Flow, hasMoved: Bool)? { legs[id].map { ($0.value.flow, $0.value.hasMoved) } }

  /// A request without an answer may never have arrived. An offer is replaced by the next one, which names the new address; any
  /// other request is sent again from there, and answered there by `rport`.
  private mutating func moveRequest(_ client: UInt64, _ purpose: ClientTransaction.Purpose, of id: LegID, to flow: Flow) {
    guard purpose == .reinvite || purpose == .update else {
      clients[client]?.value.flow = flow
      return
    }
    endClient(client)
    legs[id]?.value.ourOffer = nil
  }

  private mutating func retryOffer(_ id: LegID, _ purpose: ClientTransaction.Purpose, after delay: Duration) {
    guard let leg = legs[id]?.value, leg.offerTries < Limits.offerTries else {
      legs[id]?.value.offerTries = 0
      if purpose == .reinvite { emit(.offerRefused(id, code: 491)) }
      return
    }
    legs[id]?.value.offerTries += 1
    if purpose == .reinvite { legs[id]?.value.wantsOffer = true } else { legs[id]?.value.wantsRefresh = true }
    legs[id]?.value.isWaitingOutGlare = true
    timers.schedule(.leg(id, .glare), at: now + delay)
  }

  /// RFC 3261 §14.1: the owner of the Call-ID waits 2.1 to 4 s, the other party up to 2 s, in steps of 10 ms.
  private func glareDelay(_ id: LegID) -> Duration {
    id.isOutbound ? .milliseconds(2_100 + Int(random.next() % 191) * 10) : .milliseconds(Int(random.next() % 201) * 10)
  }

  mutating func glareOver(_ id: LegID) {
    guard let leg = legs[id]?.value, leg.isWaitingOutGlare else { return }
    legs[id]?.value.isWaitingOutGlare = false
    if leg.wantsRefresh {
      legs[id]?.value.wantsRefresh = false
      refresh(id)
    }
    offerIfFree(id)
  }
}

extension Leg {
  /// An offer of ours has no answer. An UPDATE that only refreshes is none.
  var hasOpenOffer: Bool { ourOffer?.kind == .reinvite || awaitsAcknowledgement }

  /// No offer of either side is open (RFC 3261 §14.1).
  var isFreeForOffer: Bool {
    phase == .confirmed && answer == nil && peerOffer == nil && ourOffer == nil && !awaitsAcknowledgement
  }
}
