import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

extension MediaSession {
  /// True while a relayed call skips its ticks: to be called before each `tick`, which is omitted then. Four in five are skipped,
  /// since packets are relayed without them, and the remaining work, time-outs and reports, may be 80 ms late. HOT
  @inline(__always) public mutating func skipsTick(_ direction: AudioDirection) -> Bool {
    skipped.skips(direction)
  }

  /// Only time-outs and reports are due in the next `Limits.skippedTicks` ticks.
  private mutating func maySkipTicks(at now: Instant) -> Bool {
    guard downlink.relay.isOn, uplink.relay.isOn, partners.bridge == nil, !announcer.isPlaying else { return false }
    guard uplink.sender.isIdle, !uplink.event.isPending, !downlink.event.isPending, let connectedAt = state.connectedAt else {
      return false
    }
    let quiet = now - max(uplink.lastForwarded, connectedAt)
    return quiet < Limits.relaySilence - .milliseconds(Limits.skippedTicks * Frame.milliseconds)
  }

  /// The clock of one direction: to be called every 20 ms, unless `skipsTick`. It plays audio and sends digits; the app's
  /// direction also handles time-outs and reports of both. The two directions' ticks are independent: each follows its own
  /// packets (`preferredPhase`). HOT
  public mutating func tick(_ direction: AudioDirection, at now: Instant, into output: inout MediaOutput) {
    tick(direction, in: nil, at: now, into: &output)
  }

  mutating func tick(
    _ direction: AudioDirection, in slot: GroupSlot?, at now: Instant, into output: inout MediaOutput
  ) {
    guard !state.isClosed else { return }
    switch direction {
    case .trunkToApp: tickFromTrunk(in: slot, at: now, into: &output)
    case .appToTrunk: tickFromApp(in: slot, at: now, into: &output)
    }
  }

  private mutating func tickFromTrunk(in slot: GroupSlot?, at now: Instant, into output: inout MediaOutput) {
    if state.playoutIsAssumed(at: now) { releaseDownlink() }
    if let digit = trunk.digits.expire(at: now), state.isConnected { report(digit, from: .trunkToApp, into: &output) }
    endPresses(.trunkToApp, at: now, into: &output)
    if partners.bridge != nil {
      tickBridge(at: now, into: &output)
    } else if taps.hasStream {
      tickStream(at: now, into: &output)
    } else if !downlink.relay.isOn {
      tickDownlink(in: slot, at: now, into: &output)
    }
  }

  private mutating func tickFromApp(in slot: GroupSlot?, at now: Instant, into output: inout MediaOutput) {
    if let digit = uplink.digits.expire(at: now) { report(digit, from: .appToTrunk, into: &output) }
    endPresses(.appToTrunk, at: now, into: &output)
    if announcer.isPlaying, tickPlayback(at: now, into: &output) {
      // the trunk hears the announcement
    } else if partners.bridge != nil {
      // the other session's ticks send
    } else if state.isConnected {
      tickUplink(in: slot, at: now, into: &output)
    } else if !uplink.firstWords.isEmpty {
      keepUplink(at: now)
    }
    watch(at: now, into: &output)
    report(at: now, into: &output)
    if maySkipTicks(at: now) { skipped.begin() }
  }

  // MARK: Trunk → app

  private mutating func tickDownlink(in slot: GroupSlot?, at now: Instant, into output: inout MediaOutput) {
    let legs = apps.slots
    guard isDownlinkOpen, apps.hasWinner, legs[apps.winner].isReady else { return }
    var hasAudio = false
    if !state.isHeld { hasAudio = downlink.receiver.pull(into: frame, band, at: now) }
    if let slot, hasAudio { feedGroup(slot, at: now) }
    if hasAudio { taps.record(.trunkToApp, frame, band, at: now) }
    if downlink.tones.isListening {
      hearTones(frame, count: hasAudio ? band.samplesPerTick : 0, band: band, at: now, into: &output)
    }
    hasAudio = downlink.firstWords.pass(frame, hasAudio: hasAudio)
    guard !state.isHeld, downlink.firstWords.isEmpty || hasAudio, !downlink.event.isActive(at: now) else { return skipDownlink() }
    switch classifyDownlink(hasAudio) {
    case .send: sendTalkToApp(at: now, into: &output)
    case _ where !legs[apps.winner].leavesSilenceOut: sendSilenceToApp(at: now, into: &output)
    case .describe: sendFrameToApp(frame, startsTalk: false, at: now, into: &output)
    case .skip: legs[apps.winner].stream.skip(units: legs[apps.winner].stream.unitsPerFrame)
    }
    let pausing = downlink.awaitsFirstAudio || canRelayDownlink ? KeptAudio.isPause(frame, band) : true
    if downlink.awaitsFirstAudio, !pausing { reportFirstAudio(.trunkToApp, at: now, into: &output) }
    if canRelayDownlink, pausing {
      downlink.beginRelaying()
    }
  }

  /// Without audio the app hears noise, described as in any pause, so that the line sounds live.
  private mutating func classifyDownlink(_ hasAudio: Bool) -> SilenceGate.Step {
    guard hasAudio else {
      downlink.gate.fillNoise(frame, band)
      return downlink.gate.absent()
    }
    return downlink.gate.classify(frame, band)
  }

  private mutating func skipDownlink() {
    let legs = apps.slots
    legs[apps.winner].stream.skip(units: legs[apps.winner].stream.unitsPerFrame)
  }

  // MARK: App → trunk

  mutating func keepUplink(at now: Instant) {
    guard uplink.receiver.pull(into: frame, band, at: now) else { return }
    uplink.firstWords.keep(frame)
  }

  private mutating func tickUplink(in slot: GroupSlot?, at now: Instant, into output: inout MediaOutput) {
    guard trunk.isSet, trunk.sends, let destination = trunk.destination else {
      if !uplink.relay.isOn { _ = uplink.receiver.pull(into: frame, band, at: now) }
      return
    }
    if !uplink.sender.isIdle, !uplink.event.isPending { return tickDigits(to: destination, at: now, into: &output) }
    if uplink.event.isActive(at: now) {
      if !uplink.relay.isOn { trunk.stream.skip(units: trunk.stream.unitsPerFrame) }
      return
    }
    var step = SilenceGate.Step.send
    if uplink.relay.isOn {
      // The app is silent (DTX, or disconnected): the trunk still gets its stream, so that no carrier's RTP watchdog ends the
      // call.
      guard now - max(uplink.lastForwarded, state.connectedAt ?? now) >= Limits.relaySilence else { return }
      step = absentUplink()
    } else {
      step = slot.map { pullUplink(in: $0, at: now) } ?? pullUplink(at: now)
    }
    if !state.isHeld { taps.record(.appToTrunk, frame, band, at: now) }
    let audible = state.isHeld ? false : uplink.awaitsFirstAudio || canRelayUplink ? !KeptAudio.isPause(frame, band) : true
    send(step, to: destination, at: now, into: &output)
    if uplink.awaitsFirstAudio, audible { reportFirstAudio(.appToTrunk, at: now, into: &output) }
    if canRelayUplink, !uplink.relay.isOn, !audible {
      clearPacketizer()
      uplink.beginRelaying()
      uplink.forwarded(at: now)
    }
  }

  /// The next frame of the app's audio: kept first, then live; silence when muted or held, comfort noise when absent.
  mutating func pullUplink(at now: Instant) -> SilenceGate.Step {
    var hasAudio = taps.hasStream ? taps.receive(into: frame, band) : uplink.receiver.pull(into: frame, band, at: now)
    if state.isHeld { return holdFrame(hasAudio) }
    if state.isMuted {
      uplink.firstWords.drop()
      clearFrame()
      uplink.hold.stop(into: frame, band)
      return uplink.gate.absent()
    }
    hasAudio = uplink.firstWords.pass(frame, hasAudio: hasAudio)
    guard uplink.hold.isPlaying else { return hasAudio ? uplink.gate.classify(frame, band) : absentUplink() }
    if !hasAudio { clearFrame() }
    uplink.hold.stop(into: frame, band)
    return .send
  }

  /// The frame for a held trunk. `hasAudio`: the frame holds the app's talk, which fades into the clip.
  private mutating func holdFrame(_ hasAudio: Bool) -> SilenceGate.Step {
    uplink.firstWords.drop()
    guard uplink.hold.playsClip else {
      guard uplink.hold.playsNoise else {
        clearFrame()
        return uplink.gate.absent()
      }
      return absentUplink()
    }
    if !hasAudio || state.isMuted || uplink.hold.isPlaying { clearFrame() }
    uplink.hold.play(into: frame, band)
    return .send
  }

  mutating func absentUplink() -> SilenceGate.Step {
    uplink.gate.fillNoise(frame, band)
    return uplink.gate.absent()
  }

  func clearFrame() { frame.update(repeating: 0, count: band.samplesPerTick) }

  /// Describes a pause to a trunk that agreed on comfort noise (RFC 3389); any other gets every frame of it, without gaps.
  private mutating func send(
    _ step: SilenceGate.Step, to destination: SocketAddress, at now: Instant, into output: inout MediaOutput
  ) {
    guard trunk.comfortNoise != 255, step != .send else {
      return sendFrame(frame, to: destination, at: now, into: &output)
    }
    // Gathered samples of the hang-over are dropped; the timestamp includes their time.
    clearPacketizer()
    if step == .describe {
      let isQuiet = state.isHeld ? !uplink.hold.playsNoise : state.isMuted
      let level = isQuiet ? Limits.quietestNoise : uplink.gate.noiseLevel
      sendComfortNoise(level, to: destination, at: now, into: &output)
    }
    trunk.stream.skip(units: trunk.stream.unitsPerFrame)
  }

  /// Sends digits of control: telephone-events if the trunk agreed on the format, else tones in the audio. The app's audio is
  /// withheld.
  mutating func tickDigits(to destination: SocketAddress, at now: Instant, into output: inout MediaOutput) {
    if !uplink.relay.isOn { _ = uplink.receiver.pull(into: frame, band, at: now) }
    clearFrame()
    guard let digit = uplink.sender.tick() else { return sendFrame(frame, to: destination, at: now, into: &output) }
    guard trunk.telephoneEvent != 255 else {
      if !digit.event.isEnd { writeTone(digit.event.event, at: digit.toneOffset, into: frame, band) }
      return sendFrame(frame, to: destination, at: now, into: &output)
    }
    if digit.marker { clearPacketizer() }
    let lag = digit.timestampLag * Int(trunk.encoding.clockRateHz) / Int(uplink.sender.clockRateHz)
    let start = trunk.stream.nextTimestamp &- UInt32(truncatingIfNeeded: lag)
    var stamp = trunk.stream.stamp(units: 0, at: now)
    stamp.timestamp = start
    stamp.marker = digit.marker
    let count = writeEvent(output.packets.room, payloadType: trunk.telephoneEvent, stamp, ssrc: trunk.stream.ssrc, digit.event)
    sendToTrunk(count, payloadBytes: TelephoneEvent.length, timestamp: stamp.timestamp, to: destination, at: now, into: &output)
    trunk.stream.skip(units: trunk.stream.unitsPerFrame)
  }
}
