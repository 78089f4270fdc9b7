import AudioCodecs
import Bytes
import RTP

extension MediaSession {
  /// The session's clock: to be called every 20 ms. Play-out, digits, reports and time-outs happen here. HOT
  public mutating func tick(at now: Instant, into output: inout MediaOutput) {
    guard !isClosed else { return }
    if now >= playoutAssumedAt { releaseDownlink(at: now) }
    if let digit = trunk.digits.expire(at: now), connectedAt != nil { tell(digit, from: .trunkToApp, into: &output) }
    if let digit = uplink.digits.expire(at: now) { tell(digit, from: .appToTrunk, into: &output) }
    if !downlink.relays { tickDownlink(at: now, into: &output) }
    if connectedAt != nil {
      tickUplink(at: now, into: &output)
    } else if uplink.kept != nil {
      keepUplink(at: now)
    }
    watch(at: now, into: &output)
    report(at: now, into: &output)
  }

  // MARK: Trunk → app

  private mutating func tickDownlink(at now: Instant, into output: inout MediaOutput) {
    guard isDownlinkOpen, hasLeg(winner), legs[winner].isReady else { return }
    let units = legs[winner].stream.unitsPerFrame
    var hasAudio = false
    if !isHeld { hasAudio = pull(&downlink.receiver, into: frame, at: now) }
    if downlink.kept != nil { hasAudio = throughKeptDownlink(hasAudio, at: now) }
    guard hasAudio, !downlink.event.isActive(at: now) else { return legs[winner].stream.skip(units: units) }
    let room = output.packets.room
    guard let base = room.baseAddress, downlink.encoder != nil else { return }
    let payloadRoom = UnsafeMutableRawBufferPointer(start: base + headerBytes, count: Limits.packetBytes - headerBytes)
    let bytes = encode(frame, &downlink.encoder, into: payloadRoom)
    guard bytes > 0 else { return legs[winner].stream.skip(units: units) }
    let stamp = legs[winner].stream.stamp(units: units, at: now)
    writeHeader(base, legs[winner].payloadType, stamp, legs[winner].stream.ssrc)
    sendToApp(winner, headerBytes + bytes, payloadBytes: bytes, timestamp: stamp.timestamp, at: now, into: &output)
    let pausing = !downlink.firstAudioTold || canRelayDownlink ? KeptAudio.isPause(frame) : true
    if !downlink.firstAudioTold, !pausing { tellFirstAudio(.trunkToApp, at: now, into: &output) }
    if canRelayDownlink, pausing {
      downlink.receiver?.reset()
      (downlink.relays, downlink.isPrimed) = (true, false)
    }
  }

  /// First words towards the app: keeps the frame, or replaces it by the next kept one. False: nothing to play.
  private mutating func throughKeptDownlink(_ hasAudio: Bool, at now: Instant) -> Bool {
    if hasAudio { downlink.kept?.push(frame) }
    if downlink.kept?.isHolding == true { return false }
    let played = downlink.kept?.pull(into: frame, at: now) ?? false
    if downlink.kept?.isFinished == true { downlink.kept = nil }
    return played
  }

  // MARK: App → trunk

  private mutating func keepUplink(at now: Instant) {
    guard pull(&uplink.receiver, into: frame, at: now) else { return }
    uplink.kept?.push(frame)
  }

  private mutating func tickUplink(at now: Instant, into output: inout MediaOutput) {
    guard trunk.isSet, trunk.sends, let destination = trunk.destination else {
      if !uplink.relays { _ = pull(&uplink.receiver, into: frame, at: now) }
      return
    }
    if !uplink.sender.isIdle { return tickDigits(to: destination, at: now, into: &output) }
    if uplink.event.isActive(at: now) {
      if !uplink.relays { trunk.stream.skip(units: trunk.stream.unitsPerFrame) }
      return
    }
    if uplink.relays {
      // The app is quiet (DTX, or gone): the trunk still gets its stream, so that no carrier's RTP watchdog ends the call.
      guard now - max(uplink.lastForwarded, connectedAt ?? now) >= Limits.relaySilence else { return }
      silence()
    } else {
      pullUplink(at: now)
    }
    let audible = !uplink.firstAudioTold || canRelayUplink ? !KeptAudio.isPause(frame) : true
    sendFrame(to: destination, at: now, into: &output)
    if !uplink.firstAudioTold, audible { tellFirstAudio(.appToTrunk, at: now, into: &output) }
    if canRelayUplink, !uplink.relays, !audible {
      uplink.receiver?.reset()
      _ = uplink.packetizer.clear()
      (uplink.relays, uplink.isPrimed, uplink.lastForwarded) = (true, false, now)
    }
  }

  /// The next frame of the app's audio: kept first, then live; silence when muted, held or absent.
  private mutating func pullUplink(at now: Instant) {
    var hasAudio = pull(&uplink.receiver, into: frame, at: now)
    if isMuted || isHeld { hasAudio = false }
    if isMuted || isHeld { uplink.kept = nil }
    if uplink.kept != nil {
      if hasAudio { uplink.kept?.push(frame) }
      hasAudio = uplink.kept?.pull(into: frame, at: now) ?? false
      if uplink.kept?.isFinished == true { uplink.kept = nil }
    }
    if !hasAudio { silence() }
  }

  private func silence() { frame.update(repeating: 0, count: Frame.samples) }

  /// Encodes the frame and sends what makes up whole packets.
  private mutating func sendFrame(to destination: SocketAddress, at now: Instant, into output: inout MediaOutput) {
    if trunk.encoding == .opus { return sendOpusFrame(to: destination, at: now, into: &output) }
    guard let octets = uplink.packetizer.room else { return }
    let bytes = encode(frame, &uplink.encoder, into: UnsafeMutableRawBufferPointer(start: octets, count: Frame.samples))
    uplink.packetizer.added(bytes)
    let packetBytes = uplink.packetizer.packetBytes
    while uplink.packetizer.count >= packetBytes {
      guard let base = output.packets.room.baseAddress, uplink.packetizer.take(into: base + headerBytes) else { return }
      let stamp = trunk.stream.stamp(units: UInt32(truncatingIfNeeded: packetBytes), at: now)
      writeHeader(base, trunk.payloadType, stamp, trunk.stream.ssrc)
      output.packets.commit(headerBytes + packetBytes, to: destination, route: setup.trunkRoute)
      trunk.stream.sent(payloadBytes: packetBytes, timestamp: stamp.timestamp, at: now)
    }
  }

  private mutating func sendOpusFrame(to destination: SocketAddress, at now: Instant, into output: inout MediaOutput) {
    guard let base = output.packets.room.baseAddress else { return }
    let room = UnsafeMutableRawBufferPointer(start: base + headerBytes, count: Limits.packetBytes - headerBytes)
    let bytes = encode(frame, &uplink.encoder, into: room)
    guard bytes > 0 else { return trunk.stream.skip(units: trunk.stream.unitsPerFrame) }
    let stamp = trunk.stream.stamp(units: trunk.stream.unitsPerFrame, at: now)
    writeHeader(base, trunk.payloadType, stamp, trunk.stream.ssrc)
    output.packets.commit(headerBytes + bytes, to: destination, route: setup.trunkRoute)
    trunk.stream.sent(payloadBytes: bytes, timestamp: stamp.timestamp, at: now)
  }

  /// Digits of control: telephone-events where the trunk took the format, else tones in the audio. The app's audio is withheld.
  private mutating func tickDigits(to destination: SocketAddress, at now: Instant, into output: inout MediaOutput) {
    if !uplink.relays { _ = pull(&uplink.receiver, into: frame, at: now) }
    silence()
    let units = trunk.stream.unitsPerFrame
    guard let digit = uplink.sender.tick() else { return sendFrame(to: destination, at: now, into: &output) }
    guard trunk.telephoneEvent != 255 else {
      if !digit.event.isEnd { writeTone(digit.event.event, at: digit.timestampLag, into: frame) }
      return sendFrame(to: destination, at: now, into: &output)
    }
    if digit.marker { trunk.stream.skip(units: UInt32(truncatingIfNeeded: uplink.packetizer.clear())) }
    let start = trunk.stream.nextTimestamp &- UInt32(truncatingIfNeeded: digit.timestampLag)
    var stamp = trunk.stream.stamp(units: 0, at: now)
    (stamp.timestamp, stamp.marker) = (start, digit.marker)
    let count = writeEvent(output.packets.room, payloadType: trunk.telephoneEvent, stamp, ssrc: trunk.stream.ssrc, digit.event)
    output.packets.commit(count, to: destination, route: setup.trunkRoute)
    trunk.stream.sent(payloadBytes: TelephoneEvent.length, timestamp: stamp.timestamp, at: now)
    trunk.stream.skip(units: units)
  }
}

/// The frame's payload; 0 octets when there is no encoder. HOT
@inline(__always)
private func encode(
  _ frame: UnsafeMutablePointer<Int16>, _ encoder: inout AudioEncoder?, into room: UnsafeMutableRawBufferPointer
) -> Int {
  var payload = MutableSpan<UInt8>(_unsafeElements: room.bindMemory(to: UInt8.self))
  let samples = Span<Int16>(_unsafeStart: frame, count: Frame.samples)
  do throws(OpusError) { return try encoder?.encode(samples, into: &payload) ?? 0 } catch { return 0 }
}
