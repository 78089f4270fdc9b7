import TrunklineBytes
import TrunklineSIP

/// Offers and refreshes of ours inside a dialog: re-INVITE (RFC 3261 §14) and UPDATE (RFC 3311).
extension UserAgent {
  /// Requests an offer as soon as one may be sent: not during another exchange, nor during the wait after a glare.
  mutating func wantOffer(_ id: LegID) {
    guard legs[id] != nil else { return }
    legs[id]?.value.offers.want()
    offerIfFree(id)
  }

  mutating func offerIfFree(_ id: LegID) {
    guard legs[id]?.value.isFreeForOffer == true, legs[id]?.value.offers.claim() == true else { return }
    step.emit(.offerWanted(id))
  }

  /// The re-INVITE with the call machine's offer.
  mutating func offer(_ id: LegID, _ sdp: String) {
    guard let leg = legs[id]?.value else { return }
    guard leg.isFreeForOffer, legs[id]?.value.offers.begin(.reinvite) == true else {
      // another exchange began between the request and the offer
      legs[id]?.value.offers.want()
      return
    }
    sendInDialog(
      .reinvite, .invite, on: id, RequestContent(fields: sessionFields(leg), body: sdp, refreshesTarget: true))
  }

  /// The 2xx of our re-INVITE or UPDATE.
  mutating func offerAccepted(_ id: LegID, of purpose: ClientTransaction.Purpose, _ message: Message) {
    guard let leg = legs[id]?.value, leg.phase == .confirmed else { return }
    legs[id]?.value.offers.accepted()
    if let target = message.contactTarget { refresh(id, target: target) }
    acceptSession(id, response: message)
    if purpose == .reinvite {
      var sdp: String?
      if case .sdp(let text)? = try? message.sessionBody { sdp = text }
      step.emit(.offerAnswered(id, sdp: sdp))
    }
    offerIfFree(id)
  }

  /// A final non-2xx to our re-INVITE or UPDATE, or no final response.
  mutating func offerRefused(_ id: LegID, of purpose: ClientTransaction.Purpose, code: Int, _ message: Message?) {
    guard let leg = legs[id]?.value, leg.phase == .confirmed else { return }
    legs[id]?.value.offers.failed()
    switch code {
    case 408, 481:
      // RFC 3261 §12.2.1.2, §14.1: the dialog has ended.
      step.emit(.sessionLost(id, .refreshFailed(code)))
      return sendBye(id, .sip(code))
    case 491: return retryOffer(id, purpose, after: identifiers.glareDelay(ownsCallID: id.isOutbound))
    case 422: if raiseSession(id, message) { return retryOffer(id, purpose, after: .zero) }
    case 500:
      if let seconds = message?.retryAfterSeconds, seconds <= Limits.offerRetrySeconds {
        return retryOffer(id, purpose, after: .seconds(seconds))
      }
    case 405, 501:
      if purpose == .update {
        legs[id]?.value.session.updateRefused()
        return wantOffer(id)
      }
    default: break
    }
    if purpose == .reinvite { step.emit(.offerRefused(id, code: code)) }
    leg.session.refreshLater(of: id, &step)
    offerIfFree(id)
  }

  /// Moves dialogs to another local address. The peer learns it by the Contact of our next offer (RFC 3261 §12.2.1.1). An INVITE
  /// of ours without a final response has failed: its answer would go to the address that its Via names.
  mutating func moveLegs(_ flows: [LegID: Flow]) {
    let unanswered = clients.unanswered(of: flows)
    for (id, flow) in flows.sorted(by: { $0.key.raw < $1.key.raw }) {
      if legs[id]?.value.phase == .calling {
        inviteLostAddress(id, flow)
        continue
      }
      guard let leg = legs[id]?.value, [.ringing, .answered, .confirmed].contains(leg.phase) else { continue }
      legs[id]?.value.move(to: flow)
      for client in unanswered[id] ?? [] { moveRequest(client, of: id, to: flow) }
      step.emit(.addressMoved(id))
    }
  }

  /// Sends CANCEL from our present address, so that no phone rings for a call that cannot be answered. CANCEL does not wait for a
  /// provisional response: the INVITE is old enough not to be overtaken (RFC 3261 §9.1).
  private mutating func inviteLostAddress(_ id: LegID, _ flow: Flow) {
    guard let leg = legs[id]?.value else { return }
    if let transaction = leg.inviteTransaction {
      clients.abandon(transaction, movedTo: flow, &step)
      if leg.cancel != .sent { cancelAbandoned(transaction) }
    }
    // an INVITE that we had cancelled ends as the peer would have ended it
    if leg.cancel != .none { return fail(id, code: 487, cause: nil, byTransport: false) }
    step.emit(.addressLost(id))
    fail(id, code: 408, cause: nil, byTransport: true)
  }

  /// The flow of a dialog, and whether it has moved from its first one; nil: there is no such leg.
  public func flow(of id: LegID) -> (flow: Flow, hasMoved: Bool)? { legs[id].map { ($0.value.flow, $0.value.path.hasMoved) } }

  /// A request without an answer may never have arrived. An offer is replaced by the next one, which names the new address; any
  /// other request is sent again from there, and answered there by `rport`.
  private mutating func moveRequest(_ client: UInt64, of id: LegID, to flow: Flow) {
    guard let purpose = clients[client]?.purpose, purpose == .reinvite || purpose == .update else {
      return clients.move(client, to: flow)
    }
    clients.end(client, &step)
    legs[id]?.value.offers.failed()
  }

  private mutating func retryOffer(_ id: LegID, _ purpose: ClientTransaction.Purpose, after delay: Duration) {
    let kind = purpose == .reinvite ? OfferExchange.Kind.reinvite : .update
    if legs[id]?.value.offers.retry(kind, after: delay, of: id, &step) == false, kind == .reinvite {
      step.emit(.offerRefused(id, code: 491))
    }
  }

  mutating func glareOver(_ id: LegID) {
    if legs[id]?.value.offers.glareOver() == true { refresh(id) }
    offerIfFree(id)
  }
}
