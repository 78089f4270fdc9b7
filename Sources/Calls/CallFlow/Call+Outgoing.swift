import AppProtocol
import AppSessions
import Bytes
import MediaSession
import SDP
import SIP
import SIPDialogs

/// A call from an app to a trunk: the gate first, then the INVITE.
extension Call {
  /// Media is reserved: the app's offer is answered and the gate's clock runs.
  mutating func start(
    _ start: CallStart, from device: DevicePresence, _ reservation: MediaReservation, _ turn: inout Turn
  ) -> RequestAnswer {
    self.reservation = reservation
    guard let index = addDevice(device, &turn) else { return .err(Failure(.server)) }
    do {
      let (sdp, media) = try devices[index].negotiation.answer(to: start.sdp)
      devices[index].sdp = sdp
      let remote = devices[index].describe(media, on: device.session, newAssociation: true)
      turn.media(.setAppRemote(session, devices[index].id, remote, newLocal: nil, newAssociation: true))
    } catch {
      return .err(Failure(.codec, msg: String(describing: error)))
    }
    winner = device.key
    devices[index].phase = .winner
    trunkLeg.negotiation = trunk.negotiation(local: reservation.trunkAddress, over: trunk.leastSecureFlow, random: turn.random)
    turn.output.actions.append(.journal(startLine(turn)))
    timers[.journal] = turn.now + turn.configuration.timers.journal
    timers[.gate] = turn.now + turn.configuration.timers.mediaGateOutgoing
    turn.app(.callLive(device.key, id))
    return .ok(Success(sdp: devices[index].sdp, call: id))
  }

  /// The one place that sends an INVITE.
  mutating func inviteTrunk(_ proof: GateProof, _ turn: inout Turn) {
    guard trunkLeg.phase == .idle, let peer = trunk.peer, var negotiation = trunkLeg.negotiation else { return }
    if times[.gateOpen] == nil { noteGateOpen(since: .start, &turn) }
    let offer = trunk.offersLate ? nil : negotiation.makeOffer()
    trunkLeg.negotiation = negotiation
    trunkLeg.phase = .invited
    enter(.ready, &turn)
    reach(.inviteSent, detail: trunk.name, &turn)
    timers[.ring] = turn.now + turn.configuration.timers.outgoingRing
    let caller = trunk.numbers.calling(callerNumber)
    var invite = OutboundInvite(
      trunk: peer, to: trunk.numbers.called(calledNumber), from: caller, displayName: from.n, isPrivate: isPrivate,
      assertedIdentity: caller, sdp: offer, callID: sipCallID, maxForwards: maxForwards,
      extraHeaders: identities.map { (HeaderName.identity.text, $0.text) })
    invite.givesUpSilence = !alternatives.isEmpty
    turn.sip(.invite(trunkLeg.leg, invite))
  }

  /// Whether another trunk may be tried after this failure: the far side has said nothing that binds, and it is the trunk's fault.
  func mayTryNextTrunk(after code: Int, byTransport: Bool) -> Bool {
    guard direction == .outgoing, state == .ready || state == .progress, trunkLeg.media == nil else { return false }
    return isTrunkFault(code, byTransport: byTransport)
  }

  /// A failure that says something about the trunk, not about who was called.
  func isTrunkFault(_ code: Int, byTransport: Bool) -> Bool {
    switch code {
    case 500, 502, 503, 504: true
    case 408: byTransport || (times[.ringing] == nil && times[.progress] == nil)
    default: byTransport
    }
  }

  /// The same call by the next trunk of its route, as a leg of its own.
  mutating func tryTrunk(_ next: Routing.Trunk, leg: LegID, _ turn: inout Turn) {
    guard let reservation else { return }
    trunk = next
    trunkLeg = TrunkLeg(leg: leg, phase: .idle)
    trunkLeg.negotiation = next.negotiation(local: reservation.trunkAddress, over: next.leastSecureFlow, random: turn.random)
    sipCallID = CallID(random: turn.random).description
    inviteAgain(&turn)
  }

  /// 100…199. The app hears of each stage once; SDP opens early media.
  mutating func progressed(_ code: Int, _ sdp: String?, _ turn: inout Turn) {
    guard direction == .outgoing, state == .ready || state == .progress, let winner, let index = winnerIndex else { return }
    switch code {
    case 100:
      guard times[.trying] == nil else { return }
      reach(.trying, &turn)
      report(.trying, to: winner, &turn)
      return enter(.progress, &turn)
    case 180:
      if times[.ringing] == nil {
        reach(.ringing, &turn)
        report(.ringing, to: winner, &turn)
      }
    case 181:
      // the far side diverts it (RFC 3261 §21.1.3)
      if times[.forwarded] == nil { report(.divertedPstn, to: winner, &turn) }
      reachOnce(.forwarded, &turn)
    case 182:
      if times[.progress] == nil { report(.queued, to: winner, &turn) }
      reachOnce(.progress, detail: "182", &turn)
    default: reachOnce(.progress, detail: String(code), &turn)
    }
    enter(.progress, &turn)
    guard let sdp, let media = try? earlyMedia(sdp) else { return }
    trunkLeg.earlyAnswer = sdp
    let isFirst = trunkLeg.media == nil
    if media != trunkLeg.media { setTrunk(media, &turn) }
    if isFirst {
      turn.media(.openEarly(session, devices[index].id))
      report(.early, to: winner, &turn)
    }
  }

  /// An answer in a provisional response is not the last word without 100rel (RFC 3261 §13.2.1): a copy takes it, so that the
  /// 200's counts.
  private func earlyMedia(_ sdp: String) throws(NegotiationError) -> TrunkMedia? {
    var copy = trunkLeg.negotiation
    return try copy?.apply(answer: sdp)
  }

  private func report(_ stage: CallProgress.Stage, to key: DeviceKey, _ turn: inout Turn) {
    turn.send(.callProgress(CallProgress(stage, at: turn.wallNow)), to: key, call: id)
  }

  /// 2xx: its SDP, or that of an earlier response if it has none.
  mutating func trunkAnswered(_ sdp: String?, _ turn: inout Turn) {
    guard direction == .outgoing, state == .ready || state == .progress, let index = winnerIndex else { return }
    trunkLeg.phase = .confirmed
    trunkLeg.finalStatus = 200
    timers[.ring] = nil
    do {
      if trunk.offersLate {
        if let sdp, let (answer, media) = try trunkLeg.negotiation?.answer(to: sdp) {
          turn.sip(.acknowledge(trunkLeg.leg, sdp: answer))
          setTrunk(media, &turn)
        }
      } else if !trunkLeg.wasUpdatedEarly, let sdp = sdp ?? trunkLeg.earlyAnswer {
        if let media = try trunkLeg.negotiation?.apply(answer: sdp), media != trunkLeg.media { setTrunk(media, &turn) }
      }
    } catch {
      return end(.codec, by: .trunk, detail: String(describing: error), &turn)
    }
    guard trunkLeg.media != nil else { return end(.codec, by: .trunk, detail: "200 without SDP", &turn) }
    becomeConnected(&turn)
    timers[.longestCall] = turn.now + turn.configuration.timers.longestCall
    join(index, &turn)
    announceConnected(&turn)
  }

  mutating func trunkRefused(_ code: Int, _ cause: ReasonValue?, byTransport: Bool, _ turn: inout Turn) {
    guard direction == .outgoing, isLive else { return }
    trunkLeg.finalStatus = code
    let reason: EndReason = byTransport ? .trunkLost : code == 487 ? .unanswered : EndReason(sipStatus: code)
    end(reason, by: .trunk, sip: code, trunk: .alreadyOver, detail: byTransport ? "transport" : cause?.description, &turn)
  }
}
