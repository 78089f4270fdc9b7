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
    _ offer: SessionDescription, from device: DevicePresence, _ reservation: MediaReservation, _ turn: inout Turn
  ) -> RequestAnswer {
    appMedia.reservation = reservation
    guard let index = addDevice(device, &turn) else { return .err(Failure(.server)) }
    do {
      let (sdp, media) = try devices[index].negotiation.answer(to: offer)
      devices[index].sdp = sdp
      let remote = devices[index].describe(media, on: device.session, newAssociation: true)
      turn.media(.setAppRemote(session, devices[index].id, remote, newLocal: nil, newAssociation: true))
    } catch {
      return .err(Failure(.codec, msg: String(describing: error)))
    }
    winner = device.key
    devices[index].phase = .winner
    trunkLeg.local = reservation.trunkAddress
    trunkLeg.prepareOffer(turn.random)
    turn.output.actions.append(.journal(startLine(turn)))
    timers[.journal] = turn.now + turn.configuration.timers.journal
    timers[.gate] = turn.now + turn.configuration.timers.mediaGateOutgoing
    turn.app(.callLive(device.key, id))
    return .ok(Success(sdp: devices[index].sdp, call: id, to: parties.to))
  }

  /// The one place that calls whom an app dials.
  mutating func inviteTrunk(_ proof: GateProof, _ turn: inout Turn) {
    guard trunkLeg.phase == .idle else { return }
    if times[.gateOpen] == nil { noteGateOpen(since: ringsDevices ? .answered : .start, &turn) }
    sendInvite(&turn)
  }

  /// With a `GateProof`, or to a number that is called before any device.
  mutating func sendInvite(_ turn: inout Turn) {
    guard trunkLeg.phase == .idle, let peer = trunk.peer, trunkLeg.negotiation != nil, let dialled = parties.dialled else {
      return
    }
    enter(.ready, &turn)
    mark(.inviteSent, detail: trunk.name, &turn)
    timers[.ring] = turn.now + turn.configuration.timers.outgoingRing
    let caller = trunk.numbers.calling(parties.callerNumber)
    var invite = OutboundInvite(
      trunk: peer, to: trunk.numbers.called(dialled.text), from: caller,
      displayName: parties.origination == nil ? parties.from.n : parties.origination?.displayName,
      isPrivate: parties.isPrivate,
      assertedIdentity: caller, sdp: nil, maxForwards: transfers.maxForwards,
      extraHeaders: parties.identities.map { (HeaderName.identity.text, $0.text) })
    invite.parameters = parties.parameters?.values ?? [:]
    invite.location = trunk.sendsLocation ? parties.location : nil
    trunkLeg.invite(invite, &turn)
  }

  /// 100…199. The app hears of each stage once; SDP opens early media.
  mutating func calleeProgressed(_ code: Int, _ sdp: String?, _ turn: inout Turn) {
    guard state == .ready || state == .progress, let winner, let index = winnerIndex else { return }
    switch code {
    case 100:
      guard times[.trying] == nil else { return }
      mark(.trying, &turn)
      report(.trying, to: winner, &turn)
      return enter(.progress, &turn)
    case 180:
      if times[.ringing] == nil {
        mark(.ringing, &turn)
        report(.ringing, to: winner, &turn)
      }
    case 181:
      // the far side diverts it (RFC 3261 §21.1.3)
      if times[.forwarded] == nil { report(.divertedPstn, to: winner, &turn) }
      markOnce(.forwarded, &turn)
    case 182:
      if times[.progress] == nil { report(.queued, to: winner, &turn) }
      markOnce(.progress, detail: "182", &turn)
    default: markOnce(.progress, detail: String(code), &turn)
    }
    enter(.progress, &turn)
    guard trunkLeg.progressed(code, sdp, &turn) else { return }
    turn.media(.openEarly(session, devices[index].id))
    report(.early, to: winner, &turn)
  }

  private func report(_ stage: CallProgress.Stage, to key: DeviceKey, _ turn: inout Turn) {
    turn.send(.callProgress(CallProgress(stage, at: turn.wallNow)), to: key, call: id)
  }

  mutating func calleeAnswered(_ problem: String?, _ turn: inout Turn) {
    guard state == .ready || state == .progress, let index = winnerIndex else { return }
    timers[.ring] = nil
    if let problem { return end(.codec, by: .trunk, detail: problem, &turn) }
    becomeConnected(&turn)
    timers[.longestCall] = turn.now + (isTest ? Limits.testCallMost : turn.configuration.timers.longestCall)
    join(index, &turn)
    announceConnected(&turn)
  }
}
