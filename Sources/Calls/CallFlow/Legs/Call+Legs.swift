import CallModel
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSDP
import TrunklineSIP
import TrunklineSIPDialogs

/// The trunk legs of a call, and what each of their events means for it. The first leads to the caller, or to the callee of an
/// app's call. A second exists during a transfer, or leads to the number that the call is diverted to.
extension Call {
  var trunkLeg: TrunkLeg {
    get { legs[0] }
    _modify { yield &legs[0] }
  }
  var second: Int? { legs.second }
  var isDivertedToNumber: Bool { legs.count > 1 && legs[1].diversion != nil }
  var isBeingTransferred: Bool { legs.count > 1 && legs[1].transfer != nil }
  var trunk: Routing.Trunk { legs[0].trunk }
  var sipCallID: String? { legs[0].sipCallID }

  /// Handles an event of one of the call's legs, or of a leg that was replaced.
  mutating func handle(_ event: UserAgent.Event, of id: LegID, _ step: inout Step) {
    guard isLive, let index = legs.index(of: id) else {
      // an offer on a leg that has ended or was replaced
      if case .reinviteReceived = event { step.sip(.refuseReinvite(id, code: 481)) }
      return
    }
    switch event {
    case .cancelled(_, let cause): cancelled(cause, &step)
    case .acknowledged(_, let sdp): acknowledged(index, sdp, &step)
    case .ackTimedOut: ackTimedOut(&step)
    case .provisionallyAnswered(_, let sdp): provisionallyAnswered(sdp, &step)
    case .provisionalTimedOut: provisionalTimedOut(&step)
    case .progress(_, let code, let sdp): progressed(index, code: code, sdp: sdp, &step)
    case .answered(_, let sdp): answered(index, sdp, &step)
    case .failed(_, let code, let cause, let byTransport):
      refused(index, code: code, cause: cause, byTransport: byTransport, &step)
    case .reinviteReceived(_, let sdp):
      if legs[index].offered(sdp, isHeld: audio.isHeld, &step), index == 0 { noteTrunkHold(&step) }
    case .addressMoved: legs[index].offerNewAddress(&step)
    case .addressLost: legs[index].addressLost()
    case .offerWanted: legs[index].sendOffer(isHeld: audio.isHeld, &step)
    case .offerAnswered(_, let sdp):
      legs[index].offerAnswered(sdp, isHeld: audio.isHeld, &step)
      if index == 0, state == .connected { noteTrunkHold(&step) }
    case .offerRefused(_, let code):
      // docs/reference/protocol.md: a failed re-INVITE for hold does not end the call; the hold stays local
      legs[index].offerRefused(code)
      mark(.offerRefused, detail: String(code), &step)
    case .digit(_, let digit, let milliseconds): digitInfo(index, digit: digit, milliseconds: milliseconds, &step)
    case .digitSent(_, let code):
      if !legs[index].digitSent(code, &step) { mark(.digitRefused, detail: String(code), &step) }
    case .referAnswered(_, let code): referAnswered(code, &step)
    case .referProgress(_, let code, let isFinal): referProgress(code, isFinal: isFinal, &step)
    case .byeReceived(_, let reason): byeReceived(index, reason, &step)
    case .sessionLost(_, let loss): sessionLost(index, loss, &step)
    case .pingAnswered(_, let alive): pingAnswered(index, alive: alive, &step)
    case .legClosed: legClosed(index, &step)
    default: break  // handled by the machine
    }
  }

  /// Repeats the leg over another trunk of its route.
  mutating func retry(_ index: Int, over next: Routing.Trunk, as id: LegID, alternatives: [Routing.Trunk], _ step: inout Step) {
    step.outcomes.append(.legLeft(legs[index]))
    legs[index] = legs[index].retried(over: next, as: id, alternatives: alternatives, step.random)
    switch legs[index].purpose {
    case .call: inviteAgain(&step)
    case .diversion:
      diversions.continues(over: next.name, sipCallID: legs[index].sipCallID)
      inviteDiversion(&step)
    case .transfer: inviteTransfer(&step)
    }
  }

  private mutating func progressed(_ index: Int, code: Int, sdp: String?, _ step: inout Step) {
    guard legs[index].phase == .invited else { return }
    switch legs[index].purpose {
    case .call where callsNumberFirst: numberProgressed(code, sdp, &step)
    case .call: calleeProgressed(code, sdp, &step)
    case .diversion: diversionProgressed(code, sdp, &step)
    case .transfer: transferProgressed(code, sdp, &step)
    }
  }

  private mutating func answered(_ index: Int, _ sdp: String?, _ step: inout Step) {
    guard legs[index].phase == .invited else { return }
    let problem = legs[index].answered(sdp, &step)
    switch legs[index].purpose {
    case .call where callsNumberFirst: numberAnswered(problem, &step)
    case .call: calleeAnswered(problem, &step)
    case .diversion: diversionAnswered(problem, &step)
    case .transfer: transferAnswered(problem, &step)
    }
  }

  private mutating func refused(_ index: Int, code: Int, cause: ReasonValue?, byTransport: Bool, _ step: inout Step) {
    let failure = legs[index].localFailure
    // a code of our own is not the trunk's
    legs[index].close(failure == nil ? code : nil)
    switch legs[index].purpose {
    case .call:
      let reason: EndReason = byTransport ? .trunkLost : code == 487 ? .unanswered : EndReason(sipStatus: code)
      let detail =
        legs[index].hasLostAddress
        ? "our address changed before an answer" : failure?.rawValue ?? (byTransport ? "transport" : cause?.description)
      end(reason, by: .trunk, sip: failure == nil ? code : nil, detail: detail, &step)
    case .diversion: diversionRefused(code, &step)
    case .transfer: transferFailed(code, &step)
    }
  }

  // MARK: the end of a leg

  private mutating func byeReceived(_ index: Int, _ reason: ReasonValue?, _ step: inout Step) {
    mark(.bye, detail: index == 0 ? "received" : "received from the diversion", &step)
    let isGivenUp = ringsBack
    legs[index].close()
    if isGivenUp { return end(.callerCancelled, by: .trunk, detail: reason?.description, &step) }
    // the party that requested a transfer need not wait for its end
    if index == 0, isBeingTransferred { return }
    end(.remoteHangup, by: .trunk, detail: reason?.description, &step)
  }

  /// The session timer ran out, or the dialog no longer existed when we refreshed it; the user agent has sent the BYE.
  private mutating func sessionLost(_ index: Int, _ loss: SessionLoss, _ step: inout Step) {
    let detail =
      switch loss {
      case .expired: "session expired"
      case .refreshFailed(let code): "session refresh failed with \(code)"
      }
    mark(.bye, detail: detail, &step)
    lost(index, detail, &step)
  }

  /// The leg was closed without a message that ended it.
  private mutating func legClosed(_ index: Int, _ step: inout Step) {
    if index == 0, isBeingTransferred, trunkLeg.phase == .over { return }
    if legs[index].transfer != nil { return transferFailed(500, &step) }
    lost(index, "leg closed", &step)
  }

  private mutating func lost(_ index: Int, _ detail: String, _ step: inout Step) {
    legs[index].close()
    end(.trunkLost, by: .trunk, detail: index == 0 ? detail : "diversion: " + detail, &step)
  }

  // MARK: silence

  /// RTP stopped for 20 s: checks by OPTIONS whether the peer still exists. Never while the call is held.
  mutating func trunkSilent(_ session: MediaSessionID, _ step: inout Step) {
    guard let index = legs.index(of: session), state == .connected,
      legs[index].phase == .confirmed, !audio.isHeld, !legs[index].isHeldByPeer
    else { return }
    mark(.trunkSilent, &step)
    ping(index, &step)
  }

  private mutating func ping(_ index: Int, _ step: inout Step) {
    legs[index].ping(&step)
    legs.pinged(until: step.now + step.configuration.timers.trunkPing)
  }

  mutating func trunkBack(_ session: MediaSessionID, _ step: inout Step) {
    guard let index = legs.index(of: session), legs[index].isSilent else { return }
    mark(.trunkBack, &step)
    stopTrunkWatch(index)
  }

  mutating func stopTrunkWatch(_ index: Int = 0) {
    legs[index].stopPinging()
    legs.pingStopped()
  }

  private mutating func pingAnswered(_ index: Int, alive: Bool, _ step: inout Step) {
    // alive: pinged again while it stays silent
    if legs[index].pingAnswered(), !alive { peerVanished(index, "OPTIONS not answered", &step) }
  }

  mutating func trunkPingDue(_ step: inout Step) {
    for index in legs.indices where legs[index].isSilent {
      if legs[index].isPinging { return peerVanished(index, "no answer to OPTIONS", &step) }
      // alive, but it sends to our previous address
      if let code = legs[index].moveRefusal {
        return peerVanished(index, "our address changed, and the re-INVITE with the new one was refused by \(code)", &step)
      }
      ping(index, &step)
    }
  }

  private mutating func peerVanished(_ index: Int, _ detail: String, _ step: inout Step) {
    end(.trunkLost, by: .trunk, detail: index == 0 ? detail : "diversion: " + detail, &step)
  }

  // MARK: digits

  /// Handles a trunk's digit by INFO. Negotiated RFC 4733 events report it already.
  private mutating func digitInfo(_ index: Int, digit: Character, milliseconds: Int, _ step: inout Step) {
    let leg = legs[index]
    guard leg.trunk.sendsDigitsByInfo || leg.media?.telephoneEventPayloadType == nil else { return }
    if isDivertedToNumber { return relayDigit(digit, milliseconds, from: index, byInfo: true, &step) }
    if let session = leg.session { digitReceived(digit, milliseconds, in: session, &step) }
  }

  /// Relays a digit from one trunk to the other; tones are in the audio already.
  mutating func relayDigit(_ digit: Character, _ milliseconds: Int, from index: Int, byInfo: Bool = false, _ step: inout Step) {
    guard state == .connected, isDivertedToNumber else { return }
    let leg = legs[index]
    guard byInfo || (leg.trunk.digits != .inband && leg.media?.telephoneEventPayloadType != nil) else { return }
    let length = min(max(milliseconds, 40), 6_000)
    let request = DigitRequest(digits: String(digit), durationMilliseconds: length, gapMilliseconds: 80)
    legs[1 - index].send(request, infoMilliseconds: milliseconds, &step)
  }
}
