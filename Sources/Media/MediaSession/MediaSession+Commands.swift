import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineICE
import TrunklineRTP
import TrunklineSRTP

extension MediaSession {
  /// Handles one command of control. Commands for removed legs are ignored: they crossed the leg's end.
  public mutating func handle(_ command: MediaCommand, at now: Instant, into output: inout MediaOutput) {
    guard !isClosed else { return }
    skippedTicks = 0
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
      guard !isLocked, connectedAt == nil, let index = index(of: leg) else { return }
      choose(index)
      isLocked = true
      if !isEarly { uplink.kept = KeptAudio(band) }
      updateRelay()
    case .openEarly(_, let leg):
      guard connectedAt == nil, let index = index(of: leg) else { return }
      choose(index)
      isEarly = true
      updateRelay()
    case .connect(_, let leg, let keeps): connect(leg, keepsFirstWords: keeps, at: now)
    case .playoutActive:
      isPlaying = true
      releaseDownlink(at: now)
    case .mute(_, let on):
      isMuted = on
      updateRelay()
    case .hold(_, let on): hold(on, at: now)
    case .sendDigits(_, let request):
      for digit in request.digits.utf8 {
        _ = uplink.sender.enqueue(
          digit, durationMilliseconds: request.durationMilliseconds, gapMilliseconds: request.gapMilliseconds)
      }
    case .bridge(_, let other, let connects): bridge(to: other, connects: connects, at: now)
    case .group(_, let group): self.group(group)
    case .play(_, let announcement): play(announcement)
    case .tap(_, let tap): setTap(tap)
    case .stream(_, let stream): connect(stream, at: now)
    case .close: close(at: now, into: &output)
    }
  }

  /// Local ufrags of this session's legs: the runtime's table dispatches STUN by them.
  public func localUfrags(of leg: AppLegID) -> [String] {
    guard let index = index(of: leg) else { return [] }
    return legs[index].ufrags
  }

  // MARK: Legs

  private mutating func addLeg(_ id: AppLegID, _ local: AppLegLocal) {
    guard index(of: id) == nil else { return }
    let numbers = random.next()
    insert(
      AppLeg(id, local, sequence: UInt16(truncatingIfNeeded: numbers), timestamp: UInt32(truncatingIfNeeded: numbers >> 16)))
  }

  private mutating func removeLeg(_ index: Int, at now: Instant, into output: inout MediaOutput) {
    sendGoodbye(index, at: now, into: &output)
    endAssociation(index, into: &output)
    removeSlot(index)
    if winner == index {
      winner = -1
      (isLocked, isEarly) = (false, false)
      downlink.encoder = nil
      uplink.receiver.free()
      uplink.kept = nil
      updateRelay()
    }
  }

  private mutating func setRemote(
    _ index: Int, _ remote: AppLegRemote, newLocal: AppLegLocal?, newAssociation: Bool, at now: Instant,
    into output: inout MediaOutput
  ) {
    let legs = legs
    let isFirst = legs[index].remote == nil
    let encodingBefore = legs[index].encoding
    legs[index].apply(remote)
    // Before the connect a device prepares again from another session; later the old pair and keys stay in use.
    let startsOver = newAssociation && !isFirst && newLocal == nil && connectedAt == nil
    legs[index].applyCredentials(remote, newLocal: newLocal, startsOver: startsOver)
    if newAssociation, !isFirst {
      endAssociation(index, into: &output)
      legs[index].association &+= 1
      legs[index].isHandshakeStarted = false
      legs[index].pending = nil
      if connectedAt == nil { legs[index].security = nil }
      legs[index].failed = false
    }
    if isFirst || newAssociation {
      output.handshakes.append(
        .expect(handshakeKey(index), algorithm: remote.fingerprintAlgorithm, fingerprint: remote.fingerprint))
      if let address = legs[index].address { startHandshake(index, toward: address, legs[index].route, into: &output) }
    }
    if index == winner, encodingBefore != remote.encoding { choose(index) }
    if !newAssociation, !isFirst, let profile = legs[index].profileName {
      output.events.append(.keysInstalled(id, legs[index].id, generation: remote.generation, profile: profile))
    }
    updateRelay()
  }

  func endAssociation(_ index: Int, into output: inout MediaOutput) {
    output.handshakes.append(.end(handshakeKey(index)))
  }

  func handshakeKey(_ index: Int) -> HandshakeKey {
    HandshakeKey(session: id, leg: legs[index].id, association: legs[index].association)
  }

  // MARK: The trunk

  private mutating func setTrunk(_ parameters: TrunkLegParameters, at now: Instant) {
    let (wasReceiving, wasSending) = (trunk.receives, trunk.sends)
    uplink.hold.replace(parameters.holdAudio)
    let changed = trunk.apply(parameters, at: now)
    if trunk.receives, !wasReceiving { trunk.restartSilence(at: now) }
    if trunk.sends, !wasSending {
      clearPacketizer()
      trunk.stream.resume(at: now)
    }
    if changed.incoming {
      downlink.receiver.retire()
      downlink.isPrimed = false
    } else {
      downlink.receiver.release(at: now)
    }
    if changed.outgoing {
      uplink.encoder = nil
      _ = (uplink.packetizer.clear(), uplink.gathered.clear())
    }
    if uplink.sender.clockRateHz != trunk.eventClockRateHz { uplink.sender = DigitSender(clockRateHz: trunk.eventClockRateHz) }
    let row = trunk.encoding.row
    let packetTime = row.packetTime(atMost: trunk.packetTimeMilliseconds)
    if row.octetsPerUnit > 0 {
      uplink.packetizer.setFormat(row, packetTime: packetTime)
    } else {
      uplink.gathered.setPacketTime(milliseconds: packetTime)
    }
    updateRelay()
  }

  /// libopus only refuses invalid parameters, and ours are constant.
  private mutating func makeEncoder(_ encoding: AudioEncoding, _ preferences: OpusPreferences) -> AudioEncoder? {
    do throws(OpusError) {
      var encoder = try AudioEncoder(
        encoding: encoding, band: band, control: preferences.control(band), complexity: setup.opusComplexity,
        isConstantRate: preferences.isConstantRate)
      encoder.limitComplexity(to: complexityCeiling)
      return encoder
    } catch { return nil }
  }

  // MARK: Audio routing

  /// Makes a leg the one whose audio flows.
  private mutating func choose(_ index: Int) {
    let changed = winner != index
    winner = index
    let encoding = legs[index].encoding
    if changed || uplink.receiver.encoding != encoding {
      if changed { uplink.receiver.free() } else { uplink.receiver.retire() }
      uplink.isPrimed = false
    }
    if changed || downlink.encoder?.encoding != encoding { downlink.encoder = nil }
    updateRelay()
  }

  /// Allocates coders for directions that are not relayed: at commands, never per packet. They are freed when relaying begins.
  private mutating func equip() {
    if trunk.isSet {
      if isDownlinkOpen, !downlink.relays, !isHeld { downlink.receiver.make(trunk.incoming, band) }
      if uplink.encoder == nil { uplink.encoder = makeEncoder(trunk.encoding, trunk.opus) }
      let listens = trunk.detectsTones || (trunk.watchesTones && !downlink.relays)
      if !listens { downlink.tones = nil } else if downlink.tones == nil { downlink.tones = ToneDetector() }
    }
    guard hasLeg(winner), legs[winner].payloadType != 255 else { return }
    let encoding = legs[winner].encoding
    if !uplink.relays, isLocked || connectedAt != nil { uplink.receiver.make(encoding, band, policy: .ofApps) }
    if isDownlinkOpen, !downlink.relays, downlink.encoder == nil {
      downlink.encoder = makeEncoder(encoding, legs[winner].remote?.opus ?? OpusPreferences())
      downlink.silence = encoding == .opus && !legs[winner].leavesSilenceOut ? CodedSilence() : nil
    }
  }

  private mutating func connect(_ leg: AppLegID, keepsFirstWords: Bool, at now: Instant) {
    guard connectedAt == nil, let index = index(of: leg) else { return }
    if winner != index { uplink.kept = nil }
    choose(index)
    connectedAt = now
    nextQuality = now + Limits.reportInterval
    uplink.kept?.release()
    if uplink.kept?.isFinished == true { uplink.kept = nil }
    if keepsFirstWords, !isPlaying {
      downlink.kept = KeptAudio(band)
      playoutAssumedAt = now + Limits.playoutAssumed
    }
    updateRelay()
  }

  /// The device plays: kept audio is sent faster, then live audio.
  mutating func releaseDownlink(at now: Instant) {
    playoutAssumedAt = .distantFuture
    downlink.kept?.release()
    if downlink.kept?.isFinished == true { downlink.kept = nil }
    updateRelay()
  }

  private mutating func hold(_ on: Bool, at now: Instant) {
    guard isHeld != on else { return }
    isHeld = on
    if !on {
      trunk.restartSilence(at: now)
      downlink.receiver.reset()
      downlink.isPrimed = false
      // the hold audio fades out in a frame of ours: relaying waits for the next pause
      if uplink.hold.isPlaying { uplink.isPrimed = true }
    }
    updateRelay()
  }

  /// Relaying begins at once only if the receiver is empty; otherwise the tick switches over in a pause (`tickDownlink`,
  /// `tickUplink`).
  mutating func updateRelay() {
    updateBand()
    if !canRelayDownlink { downlink.relays = false } else if !downlink.isPrimed { downlink.beginRelaying() }
    if !canRelayUplink { uplink.relays = false } else if !uplink.isPrimed { uplink.beginRelaying() }
    equip()
  }

  // MARK: The band

  /// The trunk's band; nil before the trunk is set.
  var trunkBand: AudioBand? { trunk.isSet ? trunk.band : nil }

  /// Whether audio is decoded, or would be.
  var isCoding: Bool { trunk.isSet && !(downlink.relays && uplink.relays) }

  /// The widest band of both ends: the trunk, and the app or the other half of a diverted call. Recordings have both bands.
  private mutating func commonBand() -> AudioBand {
    let other = bridge != nil ? bridgeBand : hasLeg(winner) ? legs[winner].band : nil
    return min(trunkBand ?? .narrowband, other ?? .wideband)
  }

  /// Switches receivers, encoders and kept audio to the call's band.
  private mutating func updateBand() {
    let wanted = commonBand()
    guard wanted != band else { return }
    if trunk.isSet { clearPacketizer() }
    band = wanted
    downlink.receiver.setBand(wanted)
    uplink.receiver.setBand(wanted)
    if let kept = downlink.kept.take() { downlink.kept = KeptAudio(kept, in: wanted) }
    if let kept = uplink.kept.take() { uplink.kept = KeptAudio(kept, in: wanted) }
    // libopus only refuses invalid parameters, and ours are constant.
    do throws(OpusError) {
      try downlink.encoder?.setBand(wanted)
      try uplink.encoder?.setBand(wanted)
    } catch {}
    downlink.silence?.removeAll()
  }

  private var canRelay: Bool { hasLeg(winner) && trunk.isSet && group == nil && legs[winner].payloadType != 255 }
  var canRelayDownlink: Bool {
    canRelay && trunk.incoming == legs[winner].encoding && isDownlinkOpen && !isHeld && downlink.kept == nil && tap == nil
  }
  var canRelayUplink: Bool {
    canRelay && trunk.encoding == legs[winner].encoding && connectedAt != nil && !isHeld && !isMuted && uplink.kept == nil
      && playback == nil && tap == nil
      && trunk.packetTimeMilliseconds == 20
  }

  // MARK: The end

  private mutating func close(at now: Instant, into output: inout MediaOutput) {
    isClosed = true
    sendTrunkReport(goodbye: true, at: now, into: &output)
    for index in 0..<Limits.appLegs where hasLeg(index) {
      sendGoodbye(index, at: now, into: &output)
      endAssociation(index, into: &output)
    }
    countRetirements(into: &output)
    output.events.append(.closed(id, statistics()))
  }
}
