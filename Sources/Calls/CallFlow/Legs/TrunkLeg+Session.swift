import CallModel
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSDP
import TrunklineSIPDialogs

/// Requests inside a leg's dialog, in both directions: offers (hold, move, refresh), digits by INFO, and liveness checks.
extension TrunkLeg {
  /// Our direction: `sendOnly` while an app holds on a trunk with `hold: signal`, else `sendReceive`.
  func direction(isHeld: Bool) -> MediaDirection { isHeld && trunk.signalsHold ? .sendOnly : .sendReceive }

  // MARK: the peer's offers

  /// Answers an offer of the peer, which keeps or moves media, or holds. An offer that cannot be used is refused and changes
  /// nothing (RFC 3261 §14.2). True if the media of an answered leg now is as the peer requested.
  mutating func offered(_ sdp: String?, isHeld: Bool, _ step: inout Step) -> Bool {
    guard negotiation != nil, let isEarly = offerStage else {
      step.sip(.refuseReinvite(id, code: 491))
      return false
    }
    let own = direction(isHeld: isHeld)
    guard let sdp else {
      guard let offer = negotiation?.makeOffer(direction: own) else { return false }
      awaitsReinviteAnswer = true
      step.sip(.answerReinvite(id, sdp: offer))
      return false
    }
    do {
      if isEarly, id.isOutbound, !wasUpdatedEarly, let earlyAnswer {
        // an UPDATE follows a complete exchange: the early answer is the answer
        _ = try negotiation?.apply(answer: earlyAnswer)
        wasUpdatedEarly = true
      }
      guard let (answer, media) = try negotiation?.answer(to: sdp, direction: own) else { return false }
      if isEarly || media != self.media { set(media, &step) }
      step.sip(.answerReinvite(id, sdp: answer))
      return !isEarly
    } catch {
      step.sip(.refuseReinvite(id, code: error.sipStatus))
      return false
    }
  }

  /// Whether an offer of the peer comes before the leg is answered; nil: it cannot be answered now.
  private var offerStage: Bool? {
    switch phase {
    case .confirmed: false
    case .invited where id.isOutbound ? earlyAnswer != nil : isProvisionallyAnswered: true
    default: nil
    }
  }

  /// The ACK of a re-INVITE whose 200 carried our offer. False if its description cannot be used.
  mutating func reinviteAnswered(_ sdp: String?, _ step: inout Step) -> Bool {
    awaitsReinviteAnswer = false
    guard let sdp, let media = try? negotiation?.apply(answer: sdp) else { return false }
    if media != self.media { set(media, &step) }
    return true
  }

  // MARK: ours

  /// An app's hold or resume on a trunk with `hold: signal`.
  func signalHold(_ step: inout Step) {
    if trunk.signalsHold, phase == .answered || phase == .confirmed { step.sip(.modify(id)) }
  }

  /// An offer may be sent now: our present hold, or the same session again as its refresh.
  mutating func sendOffer(isHeld: Bool, _ step: inout Step) {
    let direction = direction(isHeld: isHeld)
    guard phase == .confirmed, let offer = negotiation?.makeOffer(direction: direction) else { return }
    (offeredDirection, offersMove, hasMoved) = (direction, hasMoved, false)
    step.sip(.offer(id, sdp: offer))
  }

  // MARK: another address of ours

  /// Our media is at another address, which our descriptions state from now on.
  mutating func move(to local: SocketAddress, _ step: inout Step) {
    self.local = local
    negotiation?.local = local
    offerNewAddress(&step)
  }

  /// Our media, signalling or both have another address: one re-INVITE with our Contact and description (RFC 3261 §14.1, RFC 3264
  /// §8.3.1) states it, as soon as one may be sent.
  mutating func offerNewAddress(_ step: inout Step) {
    guard phase != .idle, phase != .over, !hasMoved else { return }
    // between our users no offer is queued until it may be sent
    if id.isDirect, phase == .invited { return }
    hasMoved = true
    step.sip(.modify(id))
  }

  /// The answer counts like any other; one that cannot be used leaves the session as it was.
  mutating func offerAnswered(_ sdp: String?, isHeld: Bool, _ step: inout Step) {
    let offered = offeredDirection
    (offeredDirection, offersMove) = (nil, false)
    moveRefusal = nil
    if let sdp, let media = try? negotiation?.apply(answer: sdp), media != self.media { set(media, &step) }
    // the app changed its hold while the offer was pending
    if let offered, offered != direction(isHeld: isHeld) { signalHold(&step) }
  }

  /// The session stays as it was. If the offer stated our new address, the peer still uses the old one.
  mutating func offerRefused(_ code: Int) {
    if offersMove { moveRefusal = code }
    (offeredDirection, offersMove) = (nil, false)
  }

  // MARK: digits

  /// Sends digits to the peer as its trunk requires: by INFO one after the other, so that they stay in order, else by the media
  /// thread.
  mutating func send(_ request: DigitRequest, infoMilliseconds: Int = 160, _ step: inout Step) {
    guard trunk.sendsDigitsByInfo else {
      if let session { step.media(.sendDigits(session, request)) }
      return
    }
    for digit in request.digits where waitingDigits.count < Limits.pendingDigits {
      waitingDigits.append((digit, infoMilliseconds))
    }
    sendNextDigit(&step)
  }

  /// False if the peer refused it: waiting digits are dropped.
  mutating func digitSent(_ code: Int, _ step: inout Step) -> Bool {
    isSendingDigit = false
    let isAccepted = (200..<300).contains(code)
    if !isAccepted { waitingDigits = [] }
    sendNextDigit(&step)
    return isAccepted
  }

  private mutating func sendNextDigit(_ step: inout Step) {
    guard !isSendingDigit, !waitingDigits.isEmpty, phase == .confirmed else { return }
    isSendingDigit = true
    let (digit, milliseconds) = waitingDigits.removeFirst()
    step.sip(.sendDigit(id, digit, milliseconds: milliseconds))
  }

  // MARK: silence

  /// RTP stopped for 20 s: checks whether the peer still exists.
  mutating func ping(_ step: inout Step) {
    (isSilent, isPinging) = (true, true)
    step.sip(.ping(id))
  }

  mutating func stopPinging() { (isSilent, isPinging) = (false, false) }
}
