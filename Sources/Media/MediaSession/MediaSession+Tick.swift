import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

extension MediaSession {
  /// True while a relayed call skips its ticks: to be called before each `tick`, which is omitted then. Four in five are skipped,
  /// since packets are relayed without them, and the remaining work, time-outs and reports, may be 80 ms late. HOT
  @inline(__always) public mutating func skipsTick(_ direction: AudioDirection) -> Bool {
    guard skippedTicks > 0 else { return false }
    if direction == .appToTrunk { skippedTicks &-= 1 }
    return true
  }

  /// Only time-outs and reports are due in the next `Limits.skippedTicks` ticks.
  private mutating func maySkipTicks(at now: Instant) -> Bool {
    guard downlink.relays, uplink.relays, bridge == nil, playback == nil else { return false }
    guard uplink.sender.isIdle, !uplink.event.isPending, !downlink.event.isPending, let connectedAt else { return false }
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
    guard !isClosed else { return }
    switch direction {
    case .trunkToApp: tickFromTrunk(in: slot, at: now, into: &output)
    case .appToTrunk: tickFromApp(in: slot, at: now, into: &output)
    }
  }

  private mutating func tickFromTrunk(in slot: GroupSlot?, at now: Instant, into output: inout MediaOutput) {
    if now >= playoutAssumedAt { releaseDownlink(at: now) }
    if let digit = trunk.digits.expire(at: now), connectedAt != nil { report(digit, from: .trunkToApp, into: &output) }
    endPresses(.trunkToApp, at: now, into: &output)
    if bridge != nil {
      tickBridge(at: now, into: &output)
    } else if stream != nil {
      tickStream(at: now, into: &output)
    } else if !downlink.relays {
      tickDownlink(in: slot, at: now, into: &output)
    }
  }

  private mutating func tickFromApp(in slot: GroupSlot?, at now: Instant, into output: inout MediaOutput) {
    if let digit = uplink.digits.expire(at: now) { report(digit, from: .appToTrunk, into: &output) }
    endPresses(.appToTrunk, at: now, into: &output)
    if playback != nil, tickPlayback(at: now, into: &output) {
      // the trunk hears the announcement
    } else if bridge != nil {
      // the other session's ticks send
    } else if connectedAt != nil {
      tickUplink(in: slot, at: now, into: &output)
    } else if uplink.kept != nil {
      keepUplink(at: now)
    }
    watch(at: now, into: &output)
    report(at: now, into: &output)
    if maySkipTicks(at: now) { skippedTicks = Limits.skippedTicks }
  }

  // MARK: Trunk → app

  private mutating func tickDownlink(in slot: GroupSlot?, at now: Instant, into output: inout MediaOutput) {
    let legs = legs
    guard isDownlinkOpen, hasLeg(winner), legs[winner].isReady else { return }
    var hasAudio = false
    if !isHeld { hasAudio = downlink.receiver.pull(into: frame, band, at: now) }
    if let slot, hasAudio { feedGroup(slot, at: now) }
    if hasAudio { tapFrame(.trunkToApp, at: now) }
    if downlink.tones != nil { hearTones(frame, hasAudio ? band.samplesPerTick : 0, band, at: now, into: &output) }
    if downlink.kept != nil { hasAudio = throughKeptDownlink(hasAudio) }
    guard !isHeld, downlink.kept == nil || hasAudio, !downlink.event.isActive(at: now) else { return skipDownlink() }
    switch classifyDownlink(hasAudio) {
    case .send: sendTalkToApp(at: now, into: &output)
    case _ where !legs[winner].leavesSilenceOut: sendSilenceToApp(at: now, into: &output)
    case .describe: sendFrameToApp(frame, startsTalk: false, at: now, into: &output)
    case .skip: legs[winner].stream.skip(units: legs[winner].stream.unitsPerFrame)
    }
    let pausing = !downlink.isFirstAudioReported || canRelayDownlink ? KeptAudio.isPause(frame, band) : true
    if !downlink.isFirstAudioReported, !pausing { reportFirstAudio(.trunkToApp, at: now, into: &output) }
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
    let legs = legs
    legs[winner].stream.skip(units: legs[winner].stream.unitsPerFrame)
  }

  /// First words towards the app: keeps the frame, or replaces it by the next kept one. False: there is no frame to play.
  private mutating func throughKeptDownlink(_ hasAudio: Bool) -> Bool {
    if hasAudio { downlink.kept?.push(frame) }
    if downlink.kept?.isHolding == true { return false }
    let played = downlink.kept?.pull(into: frame) ?? false
    if downlink.kept?.isFinished == true { downlink.kept = nil }
    return played
  }

  // MARK: App → trunk

  mutating func keepUplink(at now: Instant) {
    guard uplink.receiver.pull(into: frame, band, at: now) else { return }
    uplink.kept?.push(frame)
  }

  private mutating func tickUplink(in slot: GroupSlot?, at now: Instant, into output: inout MediaOutput) {
    guard trunk.isSet, trunk.sends, let destination = trunk.destination else {
      if !uplink.relays { _ = uplink.receiver.pull(into: frame, band, at: now) }
      return
    }
    if !uplink.sender.isIdle, !uplink.event.isPending { return tickDigits(to: destination, at: now, into: &output) }
    if uplink.event.isActive(at: now) {
      if !uplink.relays { trunk.stream.skip(units: trunk.stream.unitsPerFrame) }
      return
    }
    var step = SilenceGate.Step.send
    if uplink.relays {
      // The app is silent (DTX, or disconnected): the trunk still gets its stream, so that no carrier's RTP watchdog ends the
      // call.
      guard now - max(uplink.lastForwarded, connectedAt ?? now) >= Limits.relaySilence else { return }
      step = absentUplink()
    } else {
      step = slot.map { pullUplink(in: $0, at: now) } ?? pullUplink(at: now)
    }
    if !isHeld { tapFrame(.appToTrunk, at: now) }
    let audible = isHeld ? false : !uplink.isFirstAudioReported || canRelayUplink ? !KeptAudio.isPause(frame, band) : true
    send(step, to: destination, at: now, into: &output)
    if !uplink.isFirstAudioReported, audible { reportFirstAudio(.appToTrunk, at: now, into: &output) }
    if canRelayUplink, !uplink.relays, !audible {
      clearPacketizer()
      uplink.beginRelaying()
      uplink.lastForwarded = now
    }
  }

  /// The next frame of the app's audio: kept first, then live; silence when muted or held, comfort noise when absent.
  mutating func pullUplink(at now: Instant) -> SilenceGate.Step {
    var hasAudio = stream.map { pullStream($0) } ?? uplink.receiver.pull(into: frame, band, at: now)
    if isHeld { return holdFrame(hasAudio) }
    if isMuted {
      uplink.kept = nil
      silence()
      uplink.hold.stop(into: frame, band)
      return uplink.gate.absent()
    }
    if uplink.kept != nil {
      if hasAudio { uplink.kept?.push(frame) }
      hasAudio = uplink.kept?.pull(into: frame) ?? false
      if uplink.kept?.isFinished == true { uplink.kept = nil }
    }
    guard uplink.hold.isPlaying else { return hasAudio ? uplink.gate.classify(frame, band) : absentUplink() }
    if !hasAudio { silence() }
    uplink.hold.stop(into: frame, band)
    return .send
  }

  /// The frame for a held trunk. `hasAudio`: the frame holds the app's talk, which fades into the clip.
  private mutating func holdFrame(_ hasAudio: Bool) -> SilenceGate.Step {
    uplink.kept = nil
    guard uplink.hold.playsClip else {
      guard uplink.hold.playsNoise else {
        silence()
        return uplink.gate.absent()
      }
      return absentUplink()
    }
    if !hasAudio || isMuted || uplink.hold.isPlaying { silence() }
    uplink.hold.play(into: frame, band)
    return .send
  }

  mutating func absentUplink() -> SilenceGate.Step {
    uplink.gate.fillNoise(frame, band)
    return uplink.gate.absent()
  }

  func silence() { frame.update(repeating: 0, count: band.samplesPerTick) }

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
      let isQuiet = isHeld ? !uplink.hold.playsNoise : isMuted
      let level = isQuiet ? Limits.quietestNoise : uplink.gate.noiseLevel
      sendComfortNoise(level, to: destination, at: now, into: &output)
    }
    trunk.stream.skip(units: trunk.stream.unitsPerFrame)
  }

  /// Sends digits of control: telephone-events if the trunk agreed on the format, else tones in the audio. The app's audio is
  /// withheld.
  mutating func tickDigits(to destination: SocketAddress, at now: Instant, into output: inout MediaOutput) {
    if !uplink.relays { _ = uplink.receiver.pull(into: frame, band, at: now) }
    silence()
    guard let digit = uplink.sender.tick() else { return sendFrame(frame, to: destination, at: now, into: &output) }
    guard trunk.telephoneEvent != 255 else {
      if !digit.event.isEnd { writeTone(digit.event.event, at: digit.toneOffset, into: frame, band) }
      return sendFrame(frame, to: destination, at: now, into: &output)
    }
    if digit.marker { clearPacketizer() }
    let lag = digit.timestampLag * Int(trunk.encoding.clockRateHz) / Int(uplink.sender.clockRateHz)
    let start = trunk.stream.nextTimestamp &- UInt32(truncatingIfNeeded: lag)
    var stamp = trunk.stream.stamp(units: 0, at: now)
    (stamp.timestamp, stamp.marker) = (start, digit.marker)
    let count = writeEvent(output.packets.room, payloadType: trunk.telephoneEvent, stamp, ssrc: trunk.stream.ssrc, digit.event)
    sendToTrunk(count, payloadBytes: TelephoneEvent.length, timestamp: stamp.timestamp, to: destination, at: now, into: &output)
    trunk.stream.skip(units: trunk.stream.unitsPerFrame)
  }
}
