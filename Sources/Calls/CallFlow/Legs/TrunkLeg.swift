import CallModel
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSDP
import TrunklineSIP
import TrunklineSIPDialogs

/// One SIP leg between the gateway and a trunk: the caller's, one that an app dials, one to the number that a call is diverted
/// to, or one that a transfer makes. All legs have the same abilities; the call decides what their events mean
/// (`Call+Legs.swift`).
///
///     phase      inbound                      outbound
///     idle       –                            no INVITE yet
///     invited    no final response yet        no final response yet
///     answered   our 200 waits for its ACK    –
///     confirmed  ACK                          200
///     over       a final response, BYE or CANCEL is sent or received: nothing more goes out
struct TrunkLeg {
  enum Phase { case idle, invited, answered, confirmed, over }

  enum Purpose {
    /// The caller's leg, or the one that an app dials.
    case call
    case diversion(DiversionTarget)
    case transfer(TransferTarget)
  }

  let id: LegID
  private(set) var purpose: Purpose
  private(set) var trunk: Routing.Trunk
  /// Trunks of its route that are left to try.
  private(set) var alternatives: [Routing.Trunk] = []
  /// Our RTP address toward the trunk.
  private(set) var local: SocketAddress?
  /// The media session that carries its audio; nil while another leg of the call has it.
  private(set) var session: MediaSessionID?
  private(set) var sipCallID: String?
  private(set) var phase: Phase
  private(set) var negotiation: TrunkNegotiation?
  private(set) var media: TrunkMedia?
  /// Our answer to the INVITE's offer, for the 200.
  private(set) var answer: String?
  /// The INVITE had no offer: ours goes in the 200.
  private(set) var isLateOffer = false
  /// 18x go reliably; for a late offer the first holds our offer.
  private(set) var isReliable = false
  /// The peer's answer to that offer came in the PRACK.
  private(set) var isProvisionallyAnswered = false
  /// The last description of a provisional response: it opens early media, and is the answer if the 200 has none.
  private var earlyAnswer: String?
  /// An UPDATE before the 200 has changed the session: the 200's description changes nothing.
  private var wasUpdatedEarly = false
  private var offers = OwnOffers()
  /// Our INVITE had no answer when its local address was removed.
  private(set) var hasLostAddress = false
  /// Our offer went in the answer to a re-INVITE without one; the ACK brings the peer's answer.
  private(set) var awaitsReinviteAnswer = false
  /// The app was notified that the peer holds.
  private(set) var isHoldSignalled = false
  private var digits = InfoDigits()
  private(set) var wantsRinging = false
  private(set) var sentRinging = false
  /// Outbound: a provisional response of 180 or more has come.
  private(set) var hasRung = false
  private(set) var isPinging = false
  private(set) var isSilent = false
  /// Why our INVITE had no answer.
  private(set) var localFailure: LocalFailure?
  /// The final status of the INVITE; nil before it, and if there was none.
  private(set) var finalStatus: Int?
  /// The leg is counted among its trunk's calls of all nodes.
  private(set) var holdsSlot = false
  /// Outbound: the trunk has shown whether it works.
  private(set) var isTrunkOutcomeReported = false
  /// The latest statistics of its session.
  var statistics: MediaStatistics? { measured?.statistics }
  /// The same by reference: it is the largest part of what reading a call copies.
  private(set) var measured: Measured?

  init(
    _ id: LegID, _ purpose: Purpose = .call, over trunk: Routing.Trunk, session: MediaSessionID?, phase: Phase = .idle,
    alternatives: [Routing.Trunk] = []
  ) {
    (self.id, self.purpose, self.trunk, self.session, self.phase) = (id, purpose, trunk, session, phase)
    self.alternatives = alternatives
  }

  /// The peer accepts no audio from us (RFC 3264 §8.4), and that is not our own doing.
  var isHeldByPeer: Bool { media.map { !$0.direction.sends } ?? false }

  var diversion: DiversionTarget? { if case .diversion(let target) = purpose { target } else { nil } }
  var transfer: TransferTarget? { if case .transfer(let target) = purpose { target } else { nil } }

  /// Stores the agreed media; the media thread is notified if the leg has a session.
  mutating func set(_ media: TrunkMedia, _ step: inout Step) {
    self.media = media
    if let session { step.media(.setTrunk(session, trunk.parameters(of: media))) }
  }

  // MARK: the trunk's account

  /// The leg is counted among its trunk's calls of all nodes, or not.
  mutating func holdSlot(_ holds: Bool) { holdsSlot = holds }
  /// The new leg of a call gets the slot of its previous one.
  mutating func receiveSlot(of other: inout TrunkLeg) { (holdsSlot, other.holdsSlot) = (other.holdsSlot, false) }
  mutating func reportOutcome() { isTrunkOutcomeReported = true }
  mutating func failedLocally(_ failure: LocalFailure) { localFailure = failure }
  mutating func addressLost() { hasLostAddress = true }
  mutating func received(_ statistics: MediaStatistics?) { measured = statistics.map(Measured.init) }

  // MARK: an INVITE of ours

  /// The same leg over another trunk of its route; nothing has been agreed on yet.
  func retried(over next: Routing.Trunk, as id: LegID, alternatives: [Routing.Trunk], _ random: RandomSource) -> TrunkLeg {
    var leg = TrunkLeg(id, purpose, over: next, session: session, alternatives: alternatives)
    if let local { leg.prepareOffer(at: local, random) }
    return leg
  }

  mutating func prepareOffer(at local: SocketAddress, _ random: RandomSource) {
    self.local = local
    negotiation = trunk.negotiation(local: local, over: trunk.leastSecureFlow, random: random)
    sipCallID = CallID(random: random).description
  }

  /// Sends the INVITE with our offer, or without one if the trunk requires a late offer.
  mutating func invite(_ invite: OutboundInvite, _ step: inout Step) {
    var invite = invite
    invite.sdp = trunk.offersLate ? nil : negotiation?.makeOffer()
    invite.callID = sipCallID
    invite.failsOverOnSilence = !alternatives.isEmpty
    phase = .invited
    step.sip(.invite(id, invite))
  }

  /// A provisional response: true if it opens early media. Without 100rel an answer in it is not final (RFC 3261 §13.2.1): a copy
  /// of the negotiation applies it, so that the 200's answer counts.
  mutating func progressed(_ code: Int, _ sdp: String?, _ step: inout Step) -> Bool {
    if code >= 180 { hasRung = true }
    var copy = negotiation
    guard let sdp, let media = try? copy?.apply(answer: sdp) else { return false }
    earlyAnswer = sdp
    let isFirst = self.media == nil
    if media != self.media { set(media, &step) }
    return isFirst
  }

  /// Applies the SDP of a 2xx, or of an earlier response if it has none. Returns what is wrong with it; nil: nothing.
  mutating func answered(_ sdp: String?, _ step: inout Step) -> String? {
    phase = .confirmed
    finalStatus = 200
    do {
      if trunk.offersLate {
        if let sdp, let (answer, media) = try negotiation?.answer(to: sdp) {
          step.sip(.acknowledge(id, sdp: answer))
          set(media, &step)
        }
      } else if !wasUpdatedEarly, let sdp = sdp ?? earlyAnswer, let media = try negotiation?.apply(answer: sdp) {
        if media != self.media { set(media, &step) }
      }
    } catch {
      return String(describing: error)
    }
    return media == nil ? "200 without SDP" : nil
  }

  /// Whether a failure is the trunk's, not the callee's.
  func isTrunkFault(_ code: Int, byTransport: Bool) -> Bool {
    switch code {
    case 500, 502, 503, 504: true
    case 408: byTransport || !hasRung
    default: byTransport
    }
  }

  /// Whether another trunk may be tried after such a failure: nothing has been agreed on with the peer.
  var mayTryAnother: Bool { id.isOutbound && phase == .invited && media == nil }

  // MARK: an INVITE of the peer

  mutating func received(_ invite: InboundInvite) {
    sipCallID = invite.callID
    isReliable = invite.isReliable
    isLateOffer = invite.sdp == nil
  }

  mutating func requestRinging() { wantsRinging = true }

  /// A reliable 180 carried our offer: the user agent sends the 200 after its PRACK.
  private var hasOffered: Bool { isLateOffer && isReliable && sentRinging }

  /// Our 200 is sent now. Nil: there is no description for it. `sdp` is nil if a 180 has carried it; `isJoined`: both
  /// descriptions are known.
  mutating func answerCall() -> (sdp: String?, isJoined: Bool)? {
    let offer = isLateOffer && !hasOffered ? negotiation?.makeOffer() : nil
    guard hasOffered || (offer ?? answer) != nil else { return nil }
    phase = .answered
    finalStatus = 200
    return (hasOffered ? nil : offer ?? answer, !isLateOffer || isProvisionallyAnswered)
  }

  /// The ACK of our 200. False: it is one of a re-INVITE, or a repeat.
  mutating func acknowledged() -> Bool {
    guard phase == .answered else { return false }
    phase = .confirmed
    return true
  }

  /// The PRACK carried the answer to the offer of our 180. False: it carried none.
  mutating func provisionallyAnswered() -> Bool {
    guard isLateOffer, !isProvisionallyAnswered else { return false }
    isProvisionallyAnswered = true
    return true
  }

  /// Answers the INVITE's offer, for the 200; without one the leg makes its own.
  mutating func accept(_ offer: SessionDescription?, over flow: Flow, at local: SocketAddress, _ step: inout Step)
    throws(NegotiationError)
  {
    self.local = local
    var negotiation = trunk.negotiation(local: local, over: flow, random: step.random)
    if let offer {
      let (answer, media) = try negotiation.answer(to: offer)
      self.answer = answer
      set(media, &step)
    }
    self.negotiation = negotiation
  }

  /// Sends 180. Without an offer in the INVITE the first reliable response must hold ours (RFC 3262 §5).
  mutating func sendRinging(_ step: inout Step) {
    sentRinging = true
    let offer = isLateOffer && isReliable ? negotiation?.makeOffer() : nil
    step.sip(.respondProvisional(id, code: 180, reason: nil, sdp: offer))
  }

  /// Sends 183 with our answer. False without an offer: there is nothing that a 183 could answer.
  mutating func sendEarlyMedia(_ step: inout Step) -> Bool {
    guard let answer else { return false }
    sentRinging = true
    step.sip(.respondProvisional(id, code: 183, reason: nil, sdp: answer))
    return true
  }

  /// The peer's answer to the offer that our 200 or 180 carried. Returns what is wrong with it; nil: nothing.
  mutating func lateAnswer(_ sdp: String?, in request: String, _ step: inout Step) -> String? {
    do {
      guard let sdp, let media = try negotiation?.apply(answer: sdp) else { return "no SDP in the " + request }
      set(media, &step)
      return nil
    } catch {
      return String(describing: error)
    }
  }

  // MARK: the end

  /// Nothing more goes out. `status`: of the INVITE's final response.
  mutating func close(_ status: Int? = nil) { (phase, finalStatus) = (.over, status ?? finalStatus) }

  /// This leg has the call from now on, in place of another.
  mutating func replace(_ old: TrunkLeg, in session: MediaSessionID) {
    purpose = .call
    self.session = session
    sipCallID = old.sipCallID
    finalStatus = 200
    sentRinging = true
    measured = old.measured
    isHoldSignalled = old.isHoldSignalled
  }

  enum Ending { case nothing, refused, cancelled, saidBye }

  /// Sends a final response, CANCEL or BYE, whichever the phase allows.
  mutating func end(_ reason: EndReason, q850: Int?, _ step: inout Step) -> Ending {
    defer { if phase != .idle { phase = .over } }
    switch phase {
    case .idle, .over: return .nothing
    case .invited where !id.isOutbound:
      // a 603 to a caller of ours ends no other branch of a fork
      let declineCode = !id.isDirect ? step.configuration.declineCode : reason == .declined ? 603 : 486
      let refusal = reason.refusal(declineCode: declineCode) ?? .init(status: 480)
      finalStatus = refusal.status
      let retry = refusal.status == 503 ? step.configuration.retryAfterSeconds : nil
      let cause = (q850 ?? refusal.q850).map { ReasonValue.q850($0) }
      step.sip(.refuse(id, code: refusal.status, reason: nil, cause: cause, retryAfter: retry))
      return .refused
    case .invited:
      step.sip(.cancel(id, reason.causeSent))
      return .cancelled
    case .answered, .confirmed:
      let usual: ReasonValue? = diversion == nil ? nil : .q850(16)
      step.sip(.bye(id, q850.map { .q850($0) } ?? reason.causeSent ?? usual))
      return .saidBye
    }
  }

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
    offers.send(direction)
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
    guard phase != .idle, phase != .over else { return }
    // between our users no offer is queued until it may be sent
    if id.isDirect, phase == .invited { return }
    if offers.move() { step.sip(.modify(id)) }
  }

  /// The answer counts like any other; one that cannot be used leaves the session as it was.
  mutating func offerAnswered(_ sdp: String?, isHeld: Bool, _ step: inout Step) {
    let offered = offers.answered()
    if let sdp, let media = try? negotiation?.apply(answer: sdp), media != self.media { set(media, &step) }
    // the app changed its hold while the offer was pending
    if let offered, offered != direction(isHeld: isHeld) { signalHold(&step) }
  }

  /// The session stays as it was. If the offer stated our new address, the peer still uses the old one.
  mutating func offerRefused(_ code: Int) { offers.refused(code) }
  var moveRefusal: Int? { offers.moveRefusal }

  /// The app was notified that the peer holds, or no longer. False: it was before.
  mutating func notifyHold() -> Bool {
    defer { isHoldSignalled = isHeldByPeer }
    return isHoldSignalled != isHeldByPeer
  }

  // MARK: digits

  /// Sends digits to the peer as its trunk requires: by INFO one after the other, so that they stay in order, else by the media
  /// thread.
  mutating func send(_ request: DigitRequest, infoMilliseconds: Int = 160, _ step: inout Step) {
    guard trunk.sendsDigitsByInfo else {
      if let session { step.media(.sendDigits(session, request)) }
      return
    }
    digits.add(request.digits, milliseconds: infoMilliseconds)
    sendNextDigit(&step)
  }

  /// False if the peer refused it: waiting digits are dropped.
  mutating func digitSent(_ code: Int, _ step: inout Step) -> Bool {
    let isAccepted = (200..<300).contains(code)
    digits.sent(isAccepted: isAccepted)
    sendNextDigit(&step)
    return isAccepted
  }

  private mutating func sendNextDigit(_ step: inout Step) {
    guard phase == .confirmed, let (digit, milliseconds) = digits.next() else { return }
    step.sip(.sendDigit(id, digit, milliseconds: milliseconds))
  }

  // MARK: silence

  /// RTP stopped for 20 s: checks whether the peer still exists.
  mutating func ping(_ step: inout Step) {
    isSilent = true
    isPinging = true
    step.sip(.ping(id))
  }

  /// False: no ping is open.
  mutating func pingAnswered() -> Bool {
    defer { isPinging = false }
    return isPinging
  }

  mutating func stopPinging() { (isSilent, isPinging) = (false, false) }
}
