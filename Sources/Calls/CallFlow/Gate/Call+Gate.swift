import AppSessions
import CallModel
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIPDialogs

/// The media gate (docs/reference/protocol.md): a call is connected, and charged, only once both sides have media.
extension Call {
  /// Opens the gate if all of its conditions hold: winner locked, its SDP applied, a nominated pair, keys after the right
  /// fingerprint, `media.ready` of this generation. A reliable provisional response with SDP that waits for its PRACK delays the
  /// 200 in the user agent.
  mutating func tryGate(_ step: inout Step) {
    guard state == .answering || state == .starting, diversions.planned == nil, let winner = winnerIndex else { return }
    let leg = devices[winner]
    if leg.hasPair { markOnce(.ice, at: leg.nominatedAt, &step) }
    if leg.hasKeys { markOnce(.dtls, at: leg.keysAt, detail: leg.srtpProfile, &step) }
    if leg.saidReady { markOnce(.mediaReady, at: leg.readyAt, &step) }
    guard let proof = MediaGate.proof(leg, at: winner) else { return }
    switch direction {
    case .incoming: answerTrunk(proof, &step)
    case .outgoing where callsNumberFirst: joinNumber(proof, &step)
    case .outgoing where journal.isOnDisk: inviteTrunk(proof, &step)
    case .outgoing: break  // the journal entry is on its way to disk
    }
  }

  /// Invites over another trunk, if the device still has media.
  mutating func inviteAgain(_ step: inout Step) {
    if callsNumberFirst { return inviteNumber(&step) }
    guard let winner = winnerIndex, let proof = MediaGate.proof(devices[winner], at: winner) else {
      return end(.mediaFailed, by: .app, detail: "no media for the next trunk", &step)
    }
    inviteTrunk(proof, &step)
  }

  mutating func noteGateOpen(since: CallStage, _ step: inout Step) {
    markOnce(.gateOpen, &step)
    if let began = times[since] { step.measure(.gate(direction, step.now - began)) }
    gate.opened()
  }

  /// Sends the 200 when the gate is open.
  private mutating func answerTrunk(_ proof: GateProof, _ step: inout Step) {
    guard trunkLeg.phase == .invited else { return }
    if !devices[proof.winner].hasMedia { step.statistics.answeredWithoutMedia += 1 }
    noteGateOpen(since: .answered, &step)
    sendAnswer(&step)
  }

  /// Sends the 200. Requires a `GateProof`, or another end than a device, with its own media: a number, a recording, a stream.
  mutating func sendAnswer(_ step: inout Step) {
    guard let (sdp, isJoined) = trunkLeg.answerCall() else {
      return end(.server, by: .gateway, detail: "no SDP for the 200", &step)
    }
    becomeConnected(&step)
    conclusion.limit(until: step.now + step.configuration.timers.longestCall)
    // media first: the media thread gets its command before the trunk can send
    if isJoined { joinAnswered(&step) }
    step.sip(.answer(trunkLeg.id, sdp: sdp))
    if isJoined { announceConnected(&step) }
  }

  /// Both descriptions are known: connects the audio of the parties that have the call.
  mutating func joinAnswered(_ step: inout Step) {
    if isDivertedToNumber || diversions.recording != nil {
      joinDiverted(&step)
    } else if stream.audio != nil {
      joinStream(&step)
    } else if let winner = winnerIndex {
      join(winner, &step)
    }
  }

  /// Connects the audio; the first words are kept until the device plays.
  mutating func join(_ winner: Int, _ step: inout Step) {
    let leg = devices[winner]
    // a test call has no first words to keep
    let keeps = leg.announcesActive && !leg.isPlaying && !isTest
    devices[winner].connects(keepingFirstWords: keeps)
    step.media(.connect(session, leg.id, keepsFirstWords: keeps))
    if audio.isMuted { step.media(.mute(session, true)) }
    if keeps { gate.keepFirstWords(until: step.now + step.configuration.timers.mediaActive) }
  }

  mutating func announceConnected(_ step: inout Step) {
    guard let winner, let index = winnerIndex else { return }
    guard let codec = devices[index].negotiation.agreed?.codec else {
      return end(.server, by: .gateway, detail: "connected without a codec", &step)
    }
    sendCapabilities(&step)
    let at = step.wall(times[.connected] ?? step.now)
    step.send(.callConnected(CallConnected(at: at, codec: codec.name)), to: winner, call: id)
    noteTrunkHold(&step)
  }

  mutating func gateTimedOut(_ step: inout Step) {
    guard state == .answering || state == .starting else { return }
    let missing = winnerIndex.map { devices[$0].missingMedia } ?? (stream.audio == nil ? "no device" : "no stream")
    closeStream(&step)
    // docs/reference/protocol.md, Outgoing: 5 s without media is mediaFailed; Incoming: the deadline is mediaTimeout
    if !ringsDevices { return end(.mediaFailed, by: .gateway, detail: missing, &step) }
    endUnlessDiverted(.mediaFailed, .init(.mediaTimeout, by: .gateway, others: .answeredElsewhere, detail: missing), &step)
  }

  // MARK: events of the gate

  mutating func mediaReady(_ ready: MediaReady, from key: DeviceKey, _ step: inout Step) {
    guard let index = index(of: key) else { return }
    devices[index].ready(gen: ready.gen, at: step.now)
    tryGate(&step)
  }

  /// Before the tap a failure only switches warm-up off; for the device that has the call it is final.
  mutating func mediaFailed(_ failure: MediaFail, from key: DeviceKey, _ step: inout Step) {
    guard winner == key, let index = index(of: key), failure.gen ?? devices[index].gen == devices[index].gen else { return }
    failMedia("\(failure.stage.rawValue) \(failure.detail ?? "")".trimmingSuffixSpace, &step)
  }

  mutating func nominated(_ leg: AppLegID, epoch: Int, _ step: inout Step) {
    guard let index = index(of: leg) else { return }
    devices[index].nominated(epoch: epoch, at: step.now)
    tryGate(&step)
  }

  mutating func keysInstalled(_ leg: AppLegID, epoch: Int, profile: String, _ step: inout Step) {
    guard let index = index(of: leg) else { return }
    devices[index].keysInstalled(epoch: epoch, profile: profile, at: step.now)
    tryGate(&step)
  }

  /// Our side of the handshake failed. A wrong fingerprint is final; otherwise the device may still restart, if time is left.
  mutating func appLegFailed(_ leg: AppLegID, _ failure: AppLegFailure, _ step: inout Step) {
    guard let index = index(of: leg) else { return }
    devices[index].failed(failure)
    failIfFatal(index, &step)
  }

  mutating func failIfFatal(_ index: Int, _ step: inout Step) {
    guard winner == devices[index].key, state == .answering || state == .starting, let failure = devices[index].failure else {
      return
    }
    switch failure {
    case .fingerprintMismatch: failMedia("wrong fingerprint", &step)
    case .noCommonProfile: failMedia("no common SRTP profile", &step)
    case .dtls: gate.handshakeFailed(at: step.now)
    }
  }

  /// The winner's media failed: the call ends, or is diverted by a rule.
  mutating func failMedia(_ detail: String, _ step: inout Step) {
    guard ringsDevices, state == .answering else { return end(.mediaFailed, by: .app, detail: detail, &step) }
    endUnlessDiverted(.mediaFailed, .init(.mediaFailed, by: .app, others: .answeredElsewhere, detail: detail), &step)
  }
}

extension DeviceLeg {
  /// What the gate still waited for, for the record.
  var missingMedia: String {
    if !isDescribed { return "no SDP" }
    if !hasPair { return "no ICE pair" }
    if !hasKeys { return failure.map { "DTLS: \($0)" } ?? "no DTLS keys" }
    return saidReady ? "nothing missing" : "no media.ready"
  }
}

extension String {
  fileprivate var trimmingSuffixSpace: String { hasSuffix(" ") ? String(dropLast()) : self }
}
