import AppSessions
import CallModel
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSDP
import TrunklineSIP
import TrunklineSIPDialogs

/// A call from an app to a trunk: the gate first, then the INVITE.
extension Call {
  /// Media is reserved: answers the app's offer and starts the gate's deadline.
  mutating func start(
    _ offer: SessionDescription, from device: DevicePresence, _ reservation: MediaReservation, _ step: inout Step
  ) -> RequestAnswer {
    reserve(reservation)
    guard let index = addDevice(device, &step) else { return .err(Failure(.server)) }
    do {
      let remote = try devices[index].accept(offer, on: device.session)
      step.media(.setAppRemote(session, devices[index].id, remote, newLocal: nil, newAssociation: true))
    } catch {
      return .err(Failure(.codec, msg: String(describing: error)))
    }
    _ = devices.lock(index)
    trunkLeg.prepareOffer(at: reservation.trunkAddress, step.random)
    startJournal(&step)
    gate.wait(until: step.now + step.configuration.timers.mediaGateOutgoing)
    step.app(.callLive(device.key, id))
    return .ok(Success(sdp: devices[index].sdp, call: id, to: parties.to))
  }

  /// Calls the number that an app dials.
  mutating func inviteTrunk(_ proof: GateProof, _ step: inout Step) {
    guard trunkLeg.phase == .idle else { return }
    if times[.gateOpen] == nil { noteGateOpen(since: ringsDevices ? .answered : .start, &step) }
    sendInvite(&step)
  }

  /// Sends the INVITE. Requires a `GateProof`, or a number that is called before any device.
  mutating func sendInvite(_ step: inout Step) {
    guard trunkLeg.phase == .idle, let peer = trunk.peer, trunkLeg.negotiation != nil, let dialled = parties.dialled else {
      return
    }
    enter(.ready, &step)
    mark(.inviteSent, detail: trunk.name, &step)
    ringClock.ring(until: step.now + step.configuration.timers.outgoingRing)
    let caller = trunk.numbers.calling(parties.callerNumber)
    var invite = OutboundInvite(
      trunk: peer, to: trunk.numbers.called(dialled.text), from: caller,
      displayName: parties.origination == nil ? parties.from.n : parties.origination?.displayName,
      isPrivate: parties.isPrivate,
      assertedIdentity: caller, sdp: nil, maxForwards: transfers.maxForwards,
      extraHeaders: parties.identities.map { (HeaderName.identity.text, $0.text) })
    invite.parameters = parties.parameters?.values ?? [:]
    invite.location = trunk.sendsLocation ? parties.location : nil
    trunkLeg.invite(invite, &step)
  }

  /// 100…199: reports each stage to the app once; SDP opens early media.
  mutating func calleeProgressed(_ code: Int, _ sdp: String?, _ step: inout Step) {
    guard state == .ready || state == .progress, let winner, let index = winnerIndex else { return }
    switch code {
    case 100:
      guard times[.trying] == nil else { return }
      mark(.trying, &step)
      report(.trying, to: winner, &step)
      return enter(.progress, &step)
    case 180:
      if times[.ringing] == nil {
        mark(.ringing, &step)
        report(.ringing, to: winner, &step)
      }
    case 181:
      // the far side diverts it (RFC 3261 §21.1.3)
      if times[.forwarded] == nil { report(.divertedPstn, to: winner, &step) }
      markOnce(.forwarded, &step)
    case 182:
      if times[.progress] == nil { report(.queued, to: winner, &step) }
      markOnce(.progress, detail: "182", &step)
    default: markOnce(.progress, detail: String(code), &step)
    }
    enter(.progress, &step)
    guard trunkLeg.progressed(code, sdp, &step) else { return }
    step.media(.openEarly(session, devices[index].id))
    report(.early, to: winner, &step)
  }

  private func report(_ stage: CallProgress.Stage, to key: DeviceKey, _ step: inout Step) {
    step.send(.callProgress(CallProgress(stage, at: step.wallNow)), to: key, call: id)
  }

  mutating func calleeAnswered(_ problem: String?, _ step: inout Step) {
    guard state == .ready || state == .progress, let index = winnerIndex else { return }
    ringClock.close()
    if let problem { return end(.codec, by: .trunk, detail: problem, &step) }
    becomeConnected(&step)
    conclusion.limit(until: step.now + (isTest ? Limits.testCallMost : step.configuration.timers.longestCall))
    join(index, &step)
    announceConnected(&step)
  }
}
