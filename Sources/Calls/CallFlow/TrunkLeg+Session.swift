import Bytes
import MediaSession
import SDP
import SIPDialogs

/// What happens inside a leg's dialog, either way: offers (hold, move, refresh), digits by INFO, and whether anybody is there.
extension TrunkLeg {
  /// Our direction without a hold, and with an app's hold.
  func direction(isHeld: Bool) -> MediaDirection { isHeld && trunk.signalsHold ? .sendOnly : .sendReceive }

  // MARK: the peer's offers

  /// Keeps or moves media, or holds; what cannot be used is refused and changes nothing (RFC 3261 §14.2). True if media is as the peer wants
  /// it now.
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

  /// Whether an offer of the peer comes before the leg is answered; nil: it can not be answered now.
  private var offerStage: Bool? {
    switch phase {
    case .confirmed: false
    case .invited where id.isOutbound ? earlyAnswer != nil : isProvisionallyAnswered: true
    default: nil
    }
  }

  /// The ACK of a re-INVITE that our answer was the offer of. False if what it brings cannot be used.
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

  /// An offer may go out now: our hold as it stands, or the same session again as its refresh.
  mutating func sendOffer(isHeld: Bool, _ step: inout Step) {
    let direction = direction(isHeld: isHeld)
    guard phase == .confirmed, let offer = negotiation?.makeOffer(direction: direction) else { return }
    (offeredDirection, offersMove, hasMoved) = (direction, hasMoved, false)
    step.sip(.offer(id, sdp: offer))
  }

  // MARK: another address of ours

  /// Its media is at another address of ours: what we say from now on names it.
  mutating func move(to local: SocketAddress, _ step: inout Step) {
    self.local = local
    negotiation?.local = local
    offerNewAddress(&step)
  }

  /// Its media, its signalling or both go from another address: one re-INVITE with our Contact and description (RFC 3261 §14.1, RFC 3264 §8.3.1) says
  /// so, as soon as one may go out.
  mutating func offerNewAddress(_ step: inout Step) {
    guard phase != .idle, phase != .over, !hasMoved else { return }
    // between users of ours nothing waits until it may go out
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
    // the app has changed its mind while the offer was on its way
    if let offered, offered != direction(isHeld: isHeld) { signalHold(&step) }
  }

  /// The session stays as it was. A peer that was to learn another address of ours has not.
  mutating func offerRefused(_ code: Int) {
    if offersMove { moveRefusal = code }
    (offeredDirection, offersMove) = (nil, false)
  }

  // MARK: digits

  /// Digits to the peer, as its trunk wants them: by INFO one after the other, so that they cannot overtake, else by the media thread.
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

  /// False if the peer refused it: those that wait are dropped.
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

  /// RTP came and then not for 20 s: is anybody there?
  mutating func ping(_ step: inout Step) {
    (isSilent, isPinging) = (true, true)
    step.sip(.ping(id))
  }

  mutating func stopPinging() { (isSilent, isPinging) = (false, false) }
}
