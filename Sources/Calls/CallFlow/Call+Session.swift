import AppProtocol
import Bytes
import MediaSession
import SDP
import SIPDialogs

/// Offers inside the trunk leg's dialog, either way: hold, move, refresh.
extension Call {
  /// Ours while nobody holds: what an app's hold leaves of it.
  var ownDirection: MediaDirection { isHeldByApp && trunk.signalsHold ? .sendOnly : .sendReceive }

  // MARK: the peer's

  /// Keeps or moves media, or holds; what cannot be used is refused and changes nothing (RFC 3261 §14.2).
  mutating func reinvited(_ sdp: String?, _ turn: inout Turn) {
    guard trunkLeg.negotiation != nil, let isEarly = offerStage else {
      return turn.sip(.refuseReinvite(trunkLeg.leg, code: 491))
    }
    guard let sdp else {
      let direction = ownDirection
      guard let offer = trunkLeg.negotiation?.makeOffer(direction: direction) else { return }
      trunkLeg.awaitsReinviteAnswer = true
      return turn.sip(.answerReinvite(trunkLeg.leg, sdp: offer))
    }
    do {
      if isEarly, direction == .outgoing, !trunkLeg.wasUpdatedEarly, let early = trunkLeg.earlyAnswer {
        // an UPDATE follows a complete exchange: the early answer is the answer
        _ = try trunkLeg.negotiation?.apply(answer: early)
        trunkLeg.wasUpdatedEarly = true
      }
      let own = ownDirection
      guard let (answer, media) = try trunkLeg.negotiation?.answer(to: sdp, direction: own) else { return }
      if isEarly { setTrunk(media, &turn) } else { moveTrunk(media, &turn) }
      turn.sip(.answerReinvite(trunkLeg.leg, sdp: answer))
    } catch {
      turn.sip(.refuseReinvite(trunkLeg.leg, code: error.sipStatus))
    }
  }

  /// Whether an offer of the peer comes before the call is connected; nil: it can not be answered now.
  private var offerStage: Bool? {
    switch (direction, state, trunkLeg.phase) {
    case (_, .connected, .confirmed): false
    case (.outgoing, .progress, .invited) where trunkLeg.earlyAnswer != nil: true
    case (.incoming, _, .invited) where isLive && trunkLeg.isProvisionallyAnswered: true
    default: nil
    }
  }

  mutating func moveTrunk(_ media: TrunkMedia, _ turn: inout Turn) {
    if media != trunkLeg.media { setTrunk(media, &turn) }
    noteTrunkHold(&turn)
  }

  /// Held: the peer takes nothing from us (RFC 3264 §8.4), and that is not our own doing. The app hears of each change, and of
  /// a call that begins so.
  mutating func noteTrunkHold(_ turn: inout Turn) {
    let isHeld = trunkLeg.media.map { !$0.direction.sends } ?? false
    guard isHeld != isHeldByTrunk, let winner else { return }
    isHeldByTrunk = isHeld
    reach(isHeld ? .heldByTrunk : .resumedByTrunk, &turn)
    if isHeld { stopTrunkWatch() }
    turn.send(.callHeld(CallHeld(by: .remote, on: isHeld)), to: winner, call: id)
  }

  // MARK: ours

  /// An app's hold or resume on a trunk with `hold: signal`.
  mutating func signalHold(_ turn: inout Turn) {
    guard trunk.signalsHold, state == .connected else { return }
    turn.sip(.modify(trunkLeg.leg))
  }

  /// An offer may go out now: our hold as it stands, or the same session again as its refresh.
  mutating func offerWanted(_ turn: inout Turn) {
    guard state == .connected, trunkLeg.phase == .confirmed, trunkLeg.negotiation != nil else { return }
    let direction = ownDirection
    guard let offer = trunkLeg.negotiation?.makeOffer(direction: direction) else { return }
    trunkLeg.offeredDirection = direction
    turn.sip(.offer(trunkLeg.leg, sdp: offer))
  }

  /// The answer counts like any other; one that cannot be used leaves the session as it was.
  mutating func offerAnswered(_ sdp: String?, _ turn: inout Turn) {
    let offered = trunkLeg.offeredDirection
    trunkLeg.offeredDirection = nil
    guard state == .connected else { return }
    if let sdp, let media = try? trunkLeg.negotiation?.apply(answer: sdp) { moveTrunk(media, &turn) }
    // the app has changed its mind while the offer was on its way
    if let offered, offered != ownDirection { signalHold(&turn) }
  }

  /// docs/protocol.md: a failed re-INVITE for hold does not end the call; the hold stays local.
  mutating func offerRefused(_ code: Int, _ turn: inout Turn) {
    trunkLeg.offeredDirection = nil
    reach(.offerRefused, detail: String(code), &turn)
  }

  // MARK: digits by INFO

  /// A digit of the trunk by INFO. Where RFC 4733 events are agreed on, they tell it already.
  mutating func digitInfo(_ digit: Character, _ milliseconds: Int, _ turn: inout Turn) {
    guard trunk.sendsDigitsByInfo || trunkLeg.media?.telephoneEventPayloadType == nil else { return }
    if second != nil { return passOn(digit, milliseconds, heardIn: session, byInfo: true, &turn) }
    digitHeard(digit, milliseconds, in: session, &turn)
  }

  /// One INFO after the other, so that they cannot overtake.
  mutating func sendByInfo(_ digits: String, _ turn: inout Turn) {
    for digit in digits where trunkLeg.waitingDigits.count < Limits.pendingDigits { trunkLeg.waitingDigits.append(digit) }
    nextDigit(&turn)
  }

  mutating func digitSent(_ code: Int, _ turn: inout Turn) {
    trunkLeg.isSendingDigit = false
    if !(200..<300).contains(code) {
      reach(.digitRefused, detail: String(code), &turn)
      trunkLeg.waitingDigits = []
    }
    nextDigit(&turn)
  }

  private mutating func nextDigit(_ turn: inout Turn) {
    guard !trunkLeg.isSendingDigit, !trunkLeg.waitingDigits.isEmpty, trunkLeg.phase == .confirmed else { return }
    trunkLeg.isSendingDigit = true
    turn.sip(.sendDigit(trunkLeg.leg, trunkLeg.waitingDigits.removeFirst(), milliseconds: Self.infoDigitMilliseconds))
  }

  private static let infoDigitMilliseconds = 160
}
