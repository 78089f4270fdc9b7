import AppSessions
import CallModel
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIPDialogs

/// The media gate (docs/reference/protocol.md): a call is connected, and charged, only once both sides have media.
extension Call {
  /// Proof that the device which has the call also has media. Only the gate makes one; a trunk is answered or called for a device
  /// only with one.
  struct GateProof {
    let winner: Int
    fileprivate init(winner: Int) { self.winner = winner }
  }

  /// Opens the gate if all of its conditions hold: winner locked, its SDP applied, a nominated pair, keys after the right
  /// fingerprint, `media.ready` of this generation. A reliable provisional response with SDP that waits for its PRACK delays the
  /// 200 in the user agent.
  mutating func tryGate(_ step: inout Step) {
    guard state == .answering || state == .starting, diversions.planned == nil, let winner = winnerIndex else { return }
    let leg = devices[winner]
    if leg.hasPair { markOnce(.ice, at: leg.nominatedAt, &step) }
    if leg.hasKeys { markOnce(.dtls, at: leg.keysAt, detail: leg.srtpProfile, &step) }
    if leg.saidReady { markOnce(.mediaReady, at: leg.readyAt, &step) }
    guard leg.hasMedia else { return }
    let proof = GateProof(winner: winner)
    switch direction {
    case .incoming: answerTrunk(proof, &step)
    case .outgoing where callsNumberFirst: joinNumber(proof, &step)
    case .outgoing where bookkeeping.isJournalled: inviteTrunk(proof, &step)
    case .outgoing: break  // the journal entry is on its way to disk
    }
  }

  /// Invites over another trunk, if the device still has media.
  mutating func inviteAgain(_ step: inout Step) {
    if callsNumberFirst { return inviteNumber(&step) }
    guard let winner = winnerIndex, devices[winner].hasMedia else {
      return end(.mediaFailed, by: .app, detail: "no media for the next trunk", &step)
    }
    inviteTrunk(GateProof(winner: winner), &step)
  }

  mutating func noteGateOpen(since: CallStage, _ step: inout Step) {
    markOnce(.gateOpen, &step)
    if let began = times[since] { step.measure(.gate(direction, step.now - began)) }
    timers[.gate] = nil
    timers[.restart] = nil
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
    let isAnswered = !trunkLeg.isLateOffer || trunkLeg.isProvisionallyAnswered
    // a reliable 180 carried our offer: the user agent sends the 200 after its PRACK
    let isOffered = trunkLeg.isLateOffer && trunkLeg.isReliable && trunkLeg.sentRinging
    var offer: String?
    if trunkLeg.isLateOffer, !isOffered { offer = trunkLeg.negotiation?.makeOffer() }
    guard isOffered || (offer ?? trunkLeg.answer) != nil else {
      return end(.server, by: .gateway, detail: "no SDP for the 200", &step)
    }
    trunkLeg.phase = .answered
    trunkLeg.finalStatus = 200
    becomeConnected(&step)
    timers[.longestCall] = step.now + step.configuration.timers.longestCall
    // media first: the media thread gets its command before the trunk can send
    if isAnswered { joinAnswered(&step) }
    step.sip(.answer(trunkLeg.id, sdp: isOffered ? nil : offer ?? trunkLeg.answer))
    if isAnswered { announceConnected(&step) }
  }

  /// Both descriptions are known: connects the audio of the parties that have the call.
  mutating func joinAnswered(_ step: inout Step) {
    if isDivertedToNumber || diversions.recording != nil {
      joinDiverted(&step)
    } else if appMedia.stream != nil {
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
    devices[winner].isPlaying = !keeps
    step.media(.connect(session, leg.id, keepsFirstWords: keeps))
    if appMedia.isMuted { step.media(.mute(session, true)) }
    if keeps { timers[.mediaActive] = step.now + step.configuration.timers.mediaActive }
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

  /// Starts the gate's deadline at `call.answer`: it counts from the tap and never exceeds the timeout of the device's own
  /// action.
  mutating func startGateDeadline(_ answer: CallAnswer, isWarm: Bool, _ step: inout Step) {
    let settings = step.configuration.timers
    let age = min(max(answer.ageMs ?? 0, Limits.answerAgeMilliseconds.lowerBound), Limits.answerAgeMilliseconds.upperBound)
    let tap = step.now - .milliseconds(age)
    mark(.tap, at: tap, &step)
    var deadline = tap + (isWarm ? settings.mediaGateWarm : settings.mediaGateCold)
    if let timeout = answer.timeoutMs, Limits.answerTimeoutMilliseconds.contains(timeout) {
      deadline = min(deadline, step.now + .milliseconds(timeout) - settings.answerMargin)
    }
    timers[.gate] = max(deadline, step.now)
  }

  mutating func gateTimedOut(_ step: inout Step) {
    guard state == .answering || state == .starting else { return }
    let missing = winnerIndex.map { devices[$0].missingMedia } ?? (appMedia.stream == nil ? "no device" : "no stream")
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
    case .dtls: timers[.restart] = step.now + Self.restartTimeout
    }
  }

  /// The winner's media failed: the call ends, or is diverted by a rule.
  mutating func failMedia(_ detail: String, _ step: inout Step) {
    guard ringsDevices, state == .answering else { return end(.mediaFailed, by: .app, detail: detail, &step) }
    endUnlessDiverted(.mediaFailed, .init(.mediaFailed, by: .app, others: .answeredElsewhere, detail: detail), &step)
  }

  /// After a failed handshake the device has this long to send `media.restart` instead of `media.fail`.
  private static let restartTimeout = Duration.seconds(3)
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
