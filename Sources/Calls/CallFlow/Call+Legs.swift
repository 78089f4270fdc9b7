import AppProtocol
import Bytes
import MediaSession
import SDP
import SIP
import SIPDialogs

/// The trunk legs of a call, and what each of their events means for it. The first has the caller, or whom the app called; a second is there
/// while a transfer is made, or for the number that the call is diverted to.
extension Call {
  var trunkLeg: TrunkLeg {
    get { legs[0] }
    _modify { yield &legs[0] }
  }
  /// The place of the second leg; nil: there is none.
  var second: Int? { legs.count > 1 ? 1 : nil }
  var isDivertedToNumber: Bool { legs.count > 1 && legs[1].diversion != nil }
  var isBeingTransferred: Bool { legs.count > 1 && legs[1].transfer != nil }
  var trunk: Routing.Trunk { legs[0].trunk }
  var sipCallID: String? { legs[0].sipCallID }

  /// An event of one of its legs, or of one that another has taken the place of.
  mutating func handle(_ event: UserAgent.Event, of id: LegID, _ turn: inout Turn) {
    guard isLive, let place = legs.firstIndex(where: { $0.id == id }) else {
      // an offer on a leg that is on its way out
      if case .reinviteReceived = event { turn.sip(.refuseReinvite(id, code: 481)) }
      return
    }
    switch event {
    case .cancelled(_, let cause): cancelled(cause, &turn)
    case .acknowledged(_, let sdp): acknowledged(place, sdp, &turn)
    case .ackTimedOut: ackTimedOut(&turn)
    case .provisionallyAnswered(_, let sdp): provisionallyAnswered(sdp, &turn)
    case .provisionalTimedOut: provisionalTimedOut(&turn)
    case .progress(_, let code, let sdp): progressed(place, code, sdp, &turn)
    case .answered(_, let sdp): answered(place, sdp, &turn)
    case .failed(_, let code, let cause, let byTransport): refused(place, code, cause, byTransport: byTransport, &turn)
    case .reinviteReceived(_, let sdp):
      if legs[place].offered(sdp, isHeld: appMedia.isHeld, &turn), place == 0 { noteTrunkHold(&turn) }
    case .addressMoved: legs[place].offerNewAddress(&turn)
    case .addressLost: legs[place].hasLostAddress = true
    case .offerWanted: legs[place].sendOffer(isHeld: appMedia.isHeld, &turn)
    case .offerAnswered(_, let sdp):
      legs[place].offerAnswered(sdp, isHeld: appMedia.isHeld, &turn)
      if place == 0, state == .connected { noteTrunkHold(&turn) }
    case .offerRefused(_, let code):
      // docs/reference/protocol.md: a failed re-INVITE for hold does not end the call; the hold stays local
      legs[place].offerRefused(code)
      mark(.offerRefused, detail: String(code), &turn)
    case .digit(_, let digit, let milliseconds): digitInfo(place, digit, milliseconds, &turn)
    case .digitSent(_, let code):
      if !legs[place].digitSent(code, &turn) { mark(.digitRefused, detail: String(code), &turn) }
    case .referAnswered(_, let code): referAnswered(code, &turn)
    case .referProgress(_, let code, let isFinal): referProgress(code, isFinal: isFinal, &turn)
    case .byeReceived(_, let reason): byeReceived(place, reason, &turn)
    case .sessionLost(_, let loss): sessionLost(place, loss, &turn)
    case .pingAnswered(_, let alive): pingAnswered(place, alive: alive, &turn)
    case .legClosed: legClosed(place, &turn)
    default: break  // the machine's
    }
  }

  /// The same leg by another trunk of its route.
  mutating func retry(_ place: Int, over next: Routing.Trunk, as id: LegID, alternatives: [Routing.Trunk], _ turn: inout Turn) {
    turn.outcomes.append(.legLeft(legs[place]))
    legs[place] = legs[place].retried(over: next, as: id, alternatives: alternatives, turn.random)
    switch legs[place].purpose {
    case .call: inviteAgain(&turn)
    case .diversion:
      if let last = diversions.made.indices.last {
        (diversions.made[last].trunk, diversions.made[last].sipCallId) = (next.name, legs[place].sipCallID)
      }
      inviteDiversion(&turn)
    case .transfer: inviteTransfer(&turn)
    }
  }

  private mutating func progressed(_ place: Int, _ code: Int, _ sdp: String?, _ turn: inout Turn) {
    guard legs[place].phase == .invited else { return }
    switch legs[place].purpose {
    case .call where callsNumberFirst: numberProgressed(code, sdp, &turn)
    case .call: calleeProgressed(code, sdp, &turn)
    case .diversion: diversionProgressed(code, sdp, &turn)
    case .transfer: transferProgressed(code, sdp, &turn)
    }
  }

  private mutating func answered(_ place: Int, _ sdp: String?, _ turn: inout Turn) {
    guard legs[place].phase == .invited else { return }
    let problem = legs[place].answered(sdp, &turn)
    switch legs[place].purpose {
    case .call where callsNumberFirst: numberAnswered(problem, &turn)
    case .call: calleeAnswered(problem, &turn)
    case .diversion: diversionAnswered(problem, &turn)
    case .transfer: transferAnswered(problem, &turn)
    }
  }

  private mutating func refused(_ place: Int, _ code: Int, _ cause: ReasonValue?, byTransport: Bool, _ turn: inout Turn) {
    let failure = legs[place].localFailure
    // a code of ours is none of the trunk's
    (legs[place].phase, legs[place].finalStatus) = (.over, failure == nil ? code : nil)
    switch legs[place].purpose {
    case .call:
      let reason: EndReason = byTransport ? .trunkLost : code == 487 ? .unanswered : EndReason(sipStatus: code)
      let detail =
        legs[place].hasLostAddress
        ? "our address changed before an answer" : failure?.rawValue ?? (byTransport ? "transport" : cause?.description)
      end(reason, by: .trunk, sip: failure == nil ? code : nil, detail: detail, &turn)
    case .diversion: diversionRefused(code, &turn)
    case .transfer: transferFailed(code, &turn)
    }
  }

  // MARK: the end of a leg

  private mutating func byeReceived(_ place: Int, _ reason: ReasonValue?, _ turn: inout Turn) {
    mark(.bye, detail: place == 0 ? "received" : "received from the diversion", &turn)
    let isGivenUp = ringsBack
    legs[place].phase = .over
    if isGivenUp { return end(.callerCancelled, by: .trunk, detail: reason?.description, &turn) }
    // who asked for a transfer need not wait for it
    if place == 0, isBeingTransferred { return }
    end(.remoteHangup, by: .trunk, detail: reason?.description, &turn)
  }

  /// The session timer ran out, or the dialog was gone when we refreshed it; the user agent has sent the BYE.
  private mutating func sessionLost(_ place: Int, _ loss: SessionLoss, _ turn: inout Turn) {
    let detail =
      switch loss {
      case .expired: "session expired"
      case .refreshFailed(let code): "session refresh failed with \(code)"
      }
    mark(.bye, detail: detail, &turn)
    lost(place, detail, &turn)
  }

  /// The leg is gone without a word that ended it.
  private mutating func legClosed(_ place: Int, _ turn: inout Turn) {
    if place == 0, isBeingTransferred, trunkLeg.phase == .over { return }
    if legs[place].transfer != nil { return transferFailed(500, &turn) }
    lost(place, "leg closed", &turn)
  }

  private mutating func lost(_ place: Int, _ detail: String, _ turn: inout Turn) {
    legs[place].phase = .over
    end(.trunkLost, by: .trunk, detail: place == 0 ? detail : "diversion: " + detail, &turn)
  }

  // MARK: silence

  /// RTP came and then not for 20 s: is anybody there? Never asked while held.
  mutating func trunkSilent(_ session: MediaSessionID, _ turn: inout Turn) {
    guard let place = legs.firstIndex(where: { $0.session == session }), state == .connected,
      legs[place].phase == .confirmed, !appMedia.isHeld, !legs[place].isHeldByPeer
    else { return }
    mark(.trunkSilent, &turn)
    ping(place, &turn)
  }

  private mutating func ping(_ place: Int, _ turn: inout Turn) {
    legs[place].ping(&turn)
    timers[.trunkPing] = turn.now + turn.configuration.timers.trunkPing
  }

  mutating func trunkBack(_ session: MediaSessionID, _ turn: inout Turn) {
    guard let place = legs.firstIndex(where: { $0.session == session }), legs[place].isSilent else { return }
    mark(.trunkBack, &turn)
    stopTrunkWatch(place)
  }

  mutating func stopTrunkWatch(_ place: Int = 0) {
    legs[place].stopPinging()
    if !legs.contains(where: \.isSilent) { timers[.trunkPing] = nil }
  }

  private mutating func pingAnswered(_ place: Int, alive: Bool, _ turn: inout Turn) {
    guard legs[place].isPinging else { return }
    // alive: asked again while it stays silent
    legs[place].isPinging = false
    if !alive { peerVanished(place, "OPTIONS not answered", &turn) }
  }

  mutating func trunkPingDue(_ turn: inout Turn) {
    for place in legs.indices where legs[place].isSilent {
      if legs[place].isPinging { return peerVanished(place, "no answer to OPTIONS", &turn) }
      // alive, and it sends to where we were
      if let code = legs[place].moveRefusal {
        return peerVanished(place, "our address changed, and the re-INVITE with the new one was refused by \(code)", &turn)
      }
      ping(place, &turn)
    }
  }

  private mutating func peerVanished(_ place: Int, _ detail: String, _ turn: inout Turn) {
    end(.trunkLost, by: .trunk, detail: place == 0 ? detail : "diversion: " + detail, &turn)
  }

  // MARK: digits

  /// A digit of a trunk by INFO. Where RFC 4733 events are agreed on, they tell it already.
  private mutating func digitInfo(_ place: Int, _ digit: Character, _ milliseconds: Int, _ turn: inout Turn) {
    let leg = legs[place]
    guard leg.trunk.sendsDigitsByInfo || leg.media?.telephoneEventPayloadType == nil else { return }
    if isDivertedToNumber { return relayDigit(digit, milliseconds, from: place, byInfo: true, &turn) }
    if let session = leg.session { digitHeard(digit, milliseconds, in: session, &turn) }
  }

  /// A digit of one trunk for the other; what comes as tones is in the audio already.
  mutating func relayDigit(_ digit: Character, _ milliseconds: Int, from place: Int, byInfo: Bool = false, _ turn: inout Turn) {
    guard state == .connected, isDivertedToNumber else { return }
    let leg = legs[place]
    guard byInfo || (leg.trunk.digits != .inband && leg.media?.telephoneEventPayloadType != nil) else { return }
    let length = min(max(milliseconds, 40), 6_000)
    let request = DigitRequest(digits: String(digit), durationMilliseconds: length, gapMilliseconds: 80)
    legs[1 - place].send(request, infoMilliseconds: milliseconds, &turn)
  }
}
