import AppSessions
import CallModel
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSDP

/// Requests of an app in a call that it has, and messages to it.
extension Call {
  // MARK: first words

  mutating func mediaActive(_ active: MediaActive, from key: DeviceKey, _ step: inout Step) {
    guard winner == key || isUndecided, let index = index(of: key), active.playout else { return }
    if winner == key, times[.mediaActive] == nil {
      mark(.mediaActive, &step)
      if let connected = times[.connected] { step.measure(.connectedToActive(step.now - connected)) }
    }
    if devices[index].plays(), winner == key { startPlayout(&step) }
  }

  /// The device plays, or has not sent `media.active` for 10 s.
  mutating func startPlayout(_ step: inout Step) {
    gate.playing()
    guard state == .connected, let index = winnerIndex else { return }
    _ = devices[index].plays()
    step.media(.playoutActive(session))
  }

  // MARK: requests

  mutating func mute(_ mute: CallMute, _ step: inout Step) -> RequestAnswer {
    if audio.mute(mute.on), state == .connected { step.media(.mute(session, mute.on)) }
    return .ok
  }

  /// Answers `ok` and silences the audio at once. With `hold: signal` the trunk gets a re-INVITE, too; its result changes nothing
  /// here.
  mutating func hold(_ hold: CallHold, from key: DeviceKey, _ step: inout Step) -> RequestAnswer {
    guard state == .connected else { return .err(Failure(.badState)) }
    if audio.hold(hold.on) {
      mark(hold.on ? .heldByApp : .resumedByApp, &step)
      if hold.on { stopTrunkWatch() }
      step.media(.hold(session, hold.on))
      for leg in legs { leg.signalHold(&step) }
    }
    return .ok
  }

  mutating func sendDigits(_ request: CallDTMF, _ step: inout Step) -> RequestAnswer {
    guard state == .connected || (state == .progress && trunkLeg.media != nil) else { return .err(Failure(.badState)) }
    if request.continue == true { play(digits.resume(step), &step) }
    guard !request.digits.isEmpty else { return .ok }
    guard let due = digits.add(request, step) else { return .err(Failure(.tooMany)) }
    reportDigits(request.digits, from: .app, &step)
    play(due, &step)
    return .ok
  }

  mutating func play(_ due: [CallDTMF], _ step: inout Step) {
    for next in due {
      trunkLeg.send(
        DigitRequest(digits: next.digits, durationMilliseconds: next.durMs, gapMilliseconds: next.gapMs), &step)
    }
  }

  /// A new generation of the app leg: the client's offer, our answer. Packets of the old pair are accepted until the new one is
  /// nominated.
  mutating func restart(_ restart: MediaRestart, from key: DeviceKey, on session: SessionID, _ step: inout Step) -> RequestAnswer
  {
    guard let index = index(of: key), isUndecided || winner == key else { return .err(Failure(.badState)) }
    guard let sdp = restart.sdp else { return .err(Failure(.badRequest, msg: "sdp is missing")) }
    guard restart.gen == devices[index].gen + 1 else { return .err(Failure(.staleGen)) }
    let opus = opusLimits(step)
    do {
      let (remote, isNew) = try devices[index].restart(gen: restart.gen, sdp, on: session, opus: opus, step.random)
      let leg = devices[index]
      gate.restarted()
      step.media(.setAppRemote(self.session, leg.id, remote, newLocal: leg.local, newAssociation: isNew))
      mark(.restarted, detail: restart.cause?.rawValue, &step)
      return .mediaAnswer(MediaAnswer(sdp: leg.sdp, gen: restart.gen))
    } catch {
      return .err(Failure(.codec, msg: String(describing: error)))
    }
  }

  /// `call.end`. Before the lock it rejects the call; from the winner it ends the call for all parties.
  mutating func endByApp(_ request: CallEnd, from key: DeviceKey, _ step: inout Step) {
    if isUndecided, ringsDevices {
      _ = reject(CallReject(), from: key, &step)
    } else if winner == key {
      let reason: EndReason =
        switch request.reason {
        case .localEnd: .localEnd
        case .mediaFailed: .mediaFailed
        case .appRestart: .appRestart
        }
      end(reason, by: .app, &step)
    }
  }

  // MARK: what media reports

  mutating func appLegSilent(_ leg: AppLegID, _ step: inout Step) {
    guard let index = index(of: leg), winner == devices[index].key, state == .connected || state == .ready || state == .progress
    else { return }
    mark(.appSilent, &step)
    watch.appSilent(until: step.now + step.configuration.timers.appLegGrace)
    askForRestart(.timeout, &step)
  }

  mutating func appMoved(_ leg: AppLegID, to address: SocketAddress, _ step: inout Step) {
    guard let index = index(of: leg), winner == devices[index].key else { return }
    mark(.appMoved, detail: "\(address)", &step)
  }

  /// Audio of a live leg flows one way only, and nothing else would react: a restart finds another path. Requested once for each
  /// generation.
  mutating func appOneWay(_ leg: AppLegID, _ direction: AudioDirection, _ step: inout Step) {
    guard let index = index(of: leg), winner == devices[index].key, state == .connected,
      devices[index].flowsOneWay()
    else { return }
    mark(.appOneWay, detail: direction == .trunkToApp ? "toApp" : "fromApp", &step)
    askForRestart(.timeout, &step)
  }

  mutating func appLegBack(_ leg: AppLegID, _ step: inout Step) {
    guard let index = index(of: leg), winner == devices[index].key, watch.appBack() else { return }
    mark(.appBack, &step)
  }

  mutating func digitReceived(_ digit: Character, _ durationMilliseconds: Int, in source: MediaSessionID, _ step: inout Step) {
    if isDivertedToNumber { return relayDigit(digit, durationMilliseconds, from: source == session ? 0 : 1, &step) }
    guard isLive, winner != nil || stream.audio != nil else { return }
    reportDigits(String(digit), from: .trunk, &step)
    if stream.audio != nil { step.output.actions.append(.stream(.digit(id, digit))) }
    guard let winner else { return }
    step.send(.callDigit(CallDigit(digit: String(digit), durMs: durationMilliseconds)), to: winner, call: id)
  }

  /// Keeps the device's own statistics, for operators.
  mutating func statsReceived(_ stats: StreamStats, from key: DeviceKey) {
    guard winner == key, let index = winnerIndex else { return }
    devices[index].received(stats)
  }

  mutating func measured(_ statistics: MediaStatistics, of measured: MediaSessionID, _ step: inout Step) {
    guard isLive, let index = legs.index(of: measured) else { return }
    let before = legs[index].statistics
    legs[index].received(statistics)
    guard index == 0, state == .connected, let winner else { return }
    // A device that is held or muted need not send. `before` is of the connected call, too: it is nil at first, and then has the
    // packets of the call's first seconds.
    let isAppQuiet =
      !audio.isHeld && !audio.isMuted && before.map { $0.fromApp.packets == statistics.fromApp.packets } == true
    watch.measured(silentSide: isAppQuiet ? .app : legs[0].isSilent ? .trunk : nil)
    // earlier packets do not show the quality of a side that sends nothing now
    let quality = watch.silentSide == nil ? Quality(statistics) : Quality(level: "poor", cause: "silence")
    step.send(.quality(quality), to: winner, call: id)
    reportQuality(quality, statistics, &step)
    endTest(&step)
  }

  /// Answer to audio, less what only trunk and client can shorten: 200 → ACK and connected → `media.active` run in parallel, so
  /// the longer of the two is subtracted.
  mutating func firstAudio(_ audio: AudioDirection, at instant: Instant, _ step: inout Step) {
    let stage: CallStage = audio == .trunkToApp ? .firstAudioToApp : .firstAudioToTrunk
    guard isLive, times[stage] == nil else { return }
    mark(stage, at: instant, &step)
    guard direction == .incoming, let answered = times[.answered], let connected = times[.connected] else { return }
    let acknowledged = times[.acknowledged].map { $0 - connected } ?? .zero
    let active = times[.mediaActive].map { $0 - connected } ?? .zero
    step.measure(.answerToAudio(audio, max(.zero, instant - answered - max(acknowledged, active))))
  }
}

extension Quality {
  /// From the lower opinion score of the two directions: 3.6 and 3.1 are the limits of G.109's medium and low quality.
  init(_ statistics: MediaStatistics) {
    let scores = [statistics.fromTrunk.meanOpinionScore, statistics.fromApp.meanOpinionScore].compactMap { $0 }
    guard let worst = scores.min() else {
      self.init(level: "good")
      return
    }
    let side = worst == statistics.fromTrunk.meanOpinionScore ? statistics.fromTrunk : statistics.fromApp
    let expected = side.packets &+ side.lost
    let isLossy = expected > 0 && Double(side.lost) / Double(expected) > 0.01
    self.init(
      level: worst >= 3.6 ? "good" : worst >= 3.1 ? "fair" : "poor",
      cause: worst >= 3.6 ? nil : isLossy ? "loss" : side.jitterMilliseconds > 30 ? "jitter" : "delay")
  }
}
