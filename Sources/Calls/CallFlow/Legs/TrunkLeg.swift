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
  var purpose: Purpose
  var trunk: Routing.Trunk
  /// Trunks of its route that are left to try.
  var alternatives: [Routing.Trunk] = []
  /// Our RTP address toward the trunk.
  var local: SocketAddress?
  /// The media session that carries its audio; nil while another leg of the call has it.
  var session: MediaSessionID?
  var sipCallID: String?
  var phase: Phase
  var negotiation: TrunkNegotiation?
  var media: TrunkMedia?
  /// Our answer to the INVITE's offer, for the 200.
  var answer: String?
  /// The INVITE had no offer: ours goes in the 200.
  var isLateOffer = false
  /// 18x go reliably; for a late offer the first holds our offer.
  var isReliable = false
  /// The peer's answer to that offer came in the PRACK.
  var isProvisionallyAnswered = false
  /// The last description of a provisional response: it opens early media, and is the answer if the 200 has none.
  var earlyAnswer: String?
  /// An UPDATE before the 200 has changed the session: the 200's description changes nothing.
  var wasUpdatedEarly = false
  /// What our open re-INVITE offered.
  var offeredDirection: MediaDirection?
  /// An offer is requested that names another address of ours.
  var hasMoved = false
  /// Our open re-INVITE names that address.
  var offersMove = false
  /// The status by which the peer refused our re-INVITE with the new address: its RTP may still go to the old one.
  var moveRefusal: Int?
  /// Our INVITE had no answer when its local address was removed.
  var hasLostAddress = false
  /// Our offer went in the answer to a re-INVITE without one; the ACK brings the peer's answer.
  var awaitsReinviteAnswer = false
  /// The app was notified that the peer holds.
  var isHoldSignalled = false
  /// A digit is being sent by INFO; `waitingDigits` are sent after it.
  var isSendingDigit = false
  var waitingDigits: [(digit: Character, milliseconds: Int)] = []
  var wantsRinging = false
  var sentRinging = false
  /// Outbound: a provisional response of 180 or more has come.
  var hasRung = false
  var isPinging = false
  var isSilent = false
  /// Why our INVITE had no answer.
  var localFailure: LocalFailure?
  /// The final status of the INVITE; nil before it, and if there was none.
  var finalStatus: Int?
  /// The leg is counted among its trunk's calls of all nodes.
  var holdsSlot = false
  /// Outbound: the trunk has shown whether it works.
  var isTrunkOutcomeReported = false
  /// The latest statistics of its session.
  var statistics: MediaStatistics? {
    get { measured?.statistics }
    set { measured = newValue.map(Measured.init) }
  }
  /// The same by reference: it is the largest part of what reading a call copies.
  private(set) var measured: Measured?

  init(_ id: LegID, _ purpose: Purpose = .call, over trunk: Routing.Trunk, session: MediaSessionID?, phase: Phase = .idle) {
    (self.id, self.purpose, self.trunk, self.session, self.phase) = (id, purpose, trunk, session, phase)
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

  // MARK: an INVITE of ours

  /// The same leg over another trunk of its route; nothing has been agreed on yet.
  func retried(over next: Routing.Trunk, as id: LegID, alternatives: [Routing.Trunk], _ random: RandomSource) -> TrunkLeg {
    var leg = TrunkLeg(id, purpose, over: next, session: session)
    (leg.alternatives, leg.local) = (alternatives, local)
    leg.prepareOffer(random)
    return leg
  }

  mutating func prepareOffer(_ random: RandomSource) {
    guard let local else { return }
    negotiation = trunk.negotiation(local: local, over: trunk.leastSecureFlow, random: random)
    sipCallID = CallID(random: random).description
  }

  /// Sends the INVITE with our offer, or without one if the trunk requires a late offer.
  mutating func invite(_ invite: OutboundInvite, _ step: inout Step) {
    var invite = invite
    invite.sdp = trunk.offersLate ? nil : negotiation?.makeOffer()
    (invite.callID, invite.failsOverOnSilence) = (sipCallID, !alternatives.isEmpty)
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
    (phase, finalStatus) = (.confirmed, 200)
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
}

extension EndReason {
  /// `Reason` of our CANCEL or BYE: 16 is a normal end (Q.850 §2.2.5).
  var causeSent: ReasonValue? {
    switch self {
    case .localEnd: .q850(16)
    case .unanswered: .q850(19)
    default: refusal()?.q850.map { .q850($0) }
    }
  }
}

extension Routing.Trunk {
  /// The parameters of a leg of this trunk for the media thread.
  func parameters(of media: TrunkMedia) -> TrunkLegParameters {
    var out = TrunkLegParameters(
      remote: media.remote, encoding: media.codec, payloadType: media.payloadType,
      telephoneEventPayloadType: media.telephoneEventPayloadType, packetTimeMilliseconds: media.packetTimeMilliseconds,
      sends: media.direction.sends, receives: media.direction.receives, sourcePolicy: sourcePolicy, mediaPeers: mediaPeers,
      comfortNoisePayloadType: media.comfortNoisePayloadType)
    (out.incoming, out.telephoneEventClockRateHz) = (media.incoming, media.telephoneEventClockRateHz)
    (out.peers, out.signalling) = (peers, calledFrom.isEmpty ? servers : calledFrom)
    (out.digits, out.remoteControl) = (digits, media.control)
    out.wantsVoIPMetrics = media.wantsVoIPMetrics
    out.holdAudio = holdAudio
    out.opus = OpusPreferences(media.opus)
    out.protection = media.protection.flatMap { TrunkProtection($0) }
    return out
  }
  /// The servers that an INVITE of ours may go to.
  private var servers: [IPAddress] {
    guard let peer else { return [] }
    return ([peer.target] + peer.further).flatMap { [$0.flow, $0.large].compactMap { $0?.remote.ip } }
  }
}

/// A snapshot of the statistics that a session's thread has counted.
final class Measured: Sendable {
  let statistics: MediaStatistics
  init(_ statistics: MediaStatistics) { self.statistics = statistics }
}
