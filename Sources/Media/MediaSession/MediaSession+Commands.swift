import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineICE
import TrunklineRTP
import TrunklineSRTP

extension MediaSession {
  /// Handles one command of control. Commands for removed legs are ignored: they crossed the leg's end.
  public mutating func handle(_ command: MediaCommand, at now: Instant, into output: inout MediaOutput) {
    guard !state.isClosed else { return }
    skipped.end()
    switch command {
    case .addAppLeg(_, let leg, let local): addLeg(leg, local)
    case .setAppRemote(_, let leg, let remote, let newLocal, let newAssociation):
      guard let index = index(of: leg) else { return }
      setRemote(index, remote, newLocal: newLocal, newAssociation: newAssociation, at: now, into: &output)
    case .removeAppLeg(_, let leg):
      guard let index = index(of: leg) else { return }
      removeLeg(index, at: now, into: &output)
    case .setTrunk(_, let parameters): setTrunk(parameters, at: now)
    case .lockWinner(_, let leg):
      guard state.mayLock, let index = index(of: leg) else { return }
      choose(index)
      state.lock()
      if !state.isEarly { uplink.firstWords.begin(band) }
      updateRelay()
    case .openEarly(_, let leg):
      guard !state.isConnected, let index = index(of: leg) else { return }
      choose(index)
      state.openEarly()
      updateRelay()
    case .connect(_, let leg, let keeps): connect(leg, keepsFirstWords: keeps, at: now)
    case .playoutActive:
      state.playoutActive()
      releaseDownlink()
    case .mute(_, let on):
      state.mute(on)
      updateRelay()
    case .hold(_, let on): hold(on, at: now)
    case .sendDigits(_, let request):
      for digit in request.digits.utf8 {
        _ = uplink.sender.enqueue(
          digit, durationMilliseconds: request.durationMilliseconds, gapMilliseconds: request.gapMilliseconds)
      }
    case .bridge(_, let other, let connects): bridge(to: other, connects: connects, at: now)
    case .group(_, let group): if partners.join(group) { updateRelay() }
    case .play(_, let announcement): play(announcement)
    case .tap(_, let tap):
      taps.attach(tap)
      updateRelay()
    case .stream(_, let stream): connect(stream, at: now)
    case .close: close(at: now, into: &output)
    }
  }

  /// Local ufrags of this session's legs: the runtime's table dispatches STUN by them.
  public func localUfrags(of leg: AppLegID) -> [String] {
    guard let index = index(of: leg) else { return [] }
    return apps.slots[index].ufrags
  }

  // MARK: Legs

  private mutating func addLeg(_ id: AppLegID, _ local: AppLegLocal) {
    guard index(of: id) == nil else { return }
    let first = reporting.firstNumbers()
    apps.insert(AppLeg(id, local, sequence: first.sequence, timestamp: first.timestamp))
  }

  private mutating func removeLeg(_ index: Int, at now: Instant, into output: inout MediaOutput) {
    sendGoodbye(index, at: now, into: &output)
    endAssociation(index, into: &output)
    guard apps.remove(index) else { return }
    state.winnerRemoved()
    downlink.encoder.free()
    uplink.receiver.free()
    uplink.firstWords.drop()
    updateRelay()
  }

  private mutating func setRemote(
    _ index: Int, _ remote: AppLegRemote, newLocal: AppLegLocal?, newAssociation: Bool, at now: Instant,
    into output: inout MediaOutput
  ) {
    let legs = apps.slots
    let isFirst = legs[index].remote == nil
    let encodingBefore = legs[index].encoding
    legs[index].apply(remote)
    // Before the connect a device prepares again from another session; later the old pair and keys stay in use.
    let startsOver = newAssociation && !isFirst && newLocal == nil && !state.isConnected
    legs[index].applyCredentials(remote, newLocal: newLocal, startsOver: startsOver)
    if newAssociation, !isFirst {
      endAssociation(index, into: &output)
      legs[index].handshake.replace()
      legs[index].keys.associationReplaced(inCall: state.isConnected)
    }
    if isFirst || newAssociation {
      output.handshakes.append(
        .expect(handshakeKey(index), algorithm: remote.fingerprintAlgorithm, fingerprint: remote.fingerprint))
      if let address = legs[index].path.address { startHandshake(index, toward: address, legs[index].path.route, into: &output) }
    }
    if index == apps.winner, encodingBefore != remote.encoding { choose(index) }
    if !newAssociation, !isFirst, let profile = legs[index].keys.profileName {
      output.events.append(.keysInstalled(id, legs[index].id, generation: remote.generation, profile: profile))
    }
    updateRelay()
  }

  func endAssociation(_ index: Int, into output: inout MediaOutput) {
    output.handshakes.append(.end(handshakeKey(index)))
  }

  func handshakeKey(_ index: Int) -> HandshakeKey {
    HandshakeKey(session: id, leg: apps.slots[index].id, association: apps.slots[index].handshake.association)
  }

  // MARK: The trunk

  private mutating func setTrunk(_ parameters: TrunkLegParameters, at now: Instant) {
    let (wasReceiving, wasSending) = (trunk.receives, trunk.sends)
    uplink.hold.replace(parameters.holdAudio)
    let changed = trunk.apply(parameters, at: now)
    if trunk.receives, !wasReceiving { trunk.liveness.restart(at: now) }
    if trunk.sends, !wasSending {
      clearPacketizer()
      trunk.stream.resume(at: now)
    }
    if changed.incoming {
      downlink.receiver.retire()
      downlink.relay.queueDropped()
    } else {
      downlink.receiver.release(at: now)
    }
    if changed.outgoing {
      uplink.encoder.free()
      uplink.clearFrames(unitsPerFrame: trunk.stream.unitsPerFrame, band)
    }
    uplink.setEventClock(rateHz: trunk.eventClockRateHz)
    uplink.setFormat(trunk.encoding.row, packetTimeMilliseconds: trunk.packetTimeMilliseconds)
    updateRelay()
  }

  // MARK: Audio routing

  /// Makes a leg the one whose audio flows.
  private mutating func choose(_ index: Int) {
    let changed = apps.choose(index)
    let encoding = apps.slots[index].encoding
    if changed || uplink.receiver.encoding != encoding {
      if changed { uplink.receiver.free() } else { uplink.receiver.retire() }
      uplink.relay.queueDropped()
    }
    if changed || downlink.encoder.encoding != encoding { downlink.encoder.free() }
    updateRelay()
  }

  /// Allocates coders for directions that are not relayed: at commands, never per packet. They are freed when relaying begins.
  private mutating func equip() {
    if trunk.isSet {
      if isDownlinkOpen, !downlink.relay.isOn, !state.isHeld { downlink.receiver.make(trunk.incoming, band) }
      uplink.encoder.make(trunk.encoding, band, trunk.opus, complexity: setup.opusComplexity, ceiling: complexityCeiling)
      let listens = trunk.detectsTones || (trunk.watchesTones && !downlink.relay.isOn)
      downlink.tones.listen(listens)
    }
    let legs = apps.slots
    guard apps.hasWinner, legs[apps.winner].payloadType != 255 else { return }
    let encoding = legs[apps.winner].encoding
    if !uplink.relay.isOn, state.acceptsApp { uplink.receiver.make(encoding, band, policy: .ofApps) }
    if isDownlinkOpen, !downlink.relay.isOn, downlink.encoder.isEmpty {
      let preferences = legs[apps.winner].remote?.opus ?? OpusPreferences()
      downlink.encoder.make(encoding, band, preferences, complexity: setup.opusComplexity, ceiling: complexityCeiling)
      downlink.fillGaps(encoding == .opus && !legs[apps.winner].leavesSilenceOut)
    }
  }

  private mutating func connect(_ leg: AppLegID, keepsFirstWords: Bool, at now: Instant) {
    guard !state.isConnected, let index = index(of: leg) else { return }
    if apps.winner != index { uplink.firstWords.drop() }
    choose(index)
    state.connect(at: now)
    reporting.start(at: now)
    uplink.firstWords.release()
    if keepsFirstWords, state.awaitPlayout(at: now) { downlink.firstWords.begin(band) }
    updateRelay()
  }

  /// The device plays: kept audio is sent faster, then live audio.
  mutating func releaseDownlink() {
    downlink.firstWords.release()
    updateRelay()
  }

  private mutating func hold(_ on: Bool, at now: Instant) {
    guard state.hold(on) else { return }
    if !on {
      trunk.liveness.restart(at: now)
      downlink.receiver.reset()
      downlink.relay.queueDropped()
      // the hold audio fades out in a frame of ours: relaying waits for the next pause
      if uplink.hold.isPlaying { uplink.relay.packetQueued() }
    }
    updateRelay()
  }

  /// Relaying begins at once only if the receiver is empty; otherwise the tick switches over in a pause (`tickDownlink`,
  /// `tickUplink`).
  mutating func updateRelay() {
    updateBand()
    if !canRelayDownlink { downlink.relay.stop() } else if !downlink.relay.isPrimed { downlink.beginRelaying() }
    if !canRelayUplink { uplink.relay.stop() } else if !uplink.relay.isPrimed { uplink.beginRelaying() }
    equip()
  }

  // MARK: The band

  /// The trunk's band; nil before the trunk is set.
  var trunkBand: AudioBand? { trunk.isSet ? trunk.band : nil }

  /// Whether audio is decoded, or would be.
  var isCoding: Bool { trunk.isSet && !(downlink.relay.isOn && uplink.relay.isOn) }

  /// The widest band of both ends: the trunk, and the app or the other half of a diverted call. Recordings have both bands.
  private mutating func commonBand() -> AudioBand {
    let other = partners.bridge != nil ? partners.bridgeBand : apps.hasWinner ? apps.slots[apps.winner].band : nil
    return min(trunkBand ?? .narrowband, other ?? .wideband)
  }

  /// Switches receivers, encoders and kept audio to the call's band.
  private mutating func updateBand() {
    let wanted = commonBand()
    guard wanted != band else { return }
    if trunk.isSet { clearPacketizer() }
    setBand(wanted)
  }

  private var canRelay: Bool {
    apps.hasWinner && trunk.isSet && partners.group == nil && apps.slots[apps.winner].payloadType != 255
  }
  var canRelayDownlink: Bool {
    canRelay && trunk.incoming == apps.slots[apps.winner].encoding && isDownlinkOpen && !state.isHeld
      && downlink.firstWords.isEmpty && !taps.hasTap
  }
  var canRelayUplink: Bool {
    canRelay && trunk.encoding == apps.slots[apps.winner].encoding && state.isConnected && !state.isHeld && !state.isMuted
      && uplink.firstWords.isEmpty
      && !announcer.isPlaying && !taps.hasTap
      && trunk.packetTimeMilliseconds == 20
  }

  // MARK: The end

  private mutating func close(at now: Instant, into output: inout MediaOutput) {
    state.close()
    sendTrunkReport(goodbye: true, at: now, into: &output)
    for index in 0..<Limits.appLegs where apps.has(index) {
      sendGoodbye(index, at: now, into: &output)
      endAssociation(index, into: &output)
    }
    countRetirements(into: &output)
    output.events.append(.closed(id, statistics()))
  }
}
