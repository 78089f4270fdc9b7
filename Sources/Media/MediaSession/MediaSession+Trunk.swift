import AudioCodecs
import Bytes
import RTP

extension MediaSession {
  /// A datagram on the trunk's RTP port. HOT
  public mutating func handleTrunk(
    _ packet: UnsafeRawBufferPointer, from source: SocketAddress, at now: Instant, into output: inout MediaOutput
  ) {
    let legs = legs  // docs/decisions/0081
    guard trunk.isSet, !isClosed else { return output.drop(.beforeTrunk) }
    let bytes = Span<UInt8>(_unsafeElements: packet.bindMemory(to: UInt8.self))
    let header: RTPHeader
    do throws(RTPParseError) { header = try RTPHeader(parsing: bytes) } catch {
      trunk.dropped &+= 1
      return output.drop(.malformed)
    }
    guard trunk.source?.judge(source, at: now) == .accepted else { return rejectSource(source, into: &output) }
    guard trunk.budget.take(at: now) else {
      trunk.dropped &+= 1
      return output.drop(.overBudget)
    }
    let isEvent = header.payloadType == trunk.telephoneEvent
    let verdict = trunk.reception.receive(header, at: now, measuresJitter: !isEvent)
    trunk.bytesReceived &+= UInt64(header.payloadLength)
    trunk.lastReceived = now
    if trunk.isSilent {
      trunk.isSilent = false
      output.events.append(.trunkBack(id))
    }
    if verdict == .restarted, let digit = trunk.digits.sourceChanged(), connectedAt != nil {
      tell(digit, from: .trunkToApp, into: &output)
    }
    guard verdict != .outOfRange, header.payloadLength > 0 else {
      trunk.dropped &+= 1
      return output.drop(verdict == .outOfRange ? .outOfSequence : .empty)
    }
    let payload = UnsafeRawBufferPointer(rebasing: packet[header.length..<(header.length &+ header.payloadLength)])
    if header.payloadType == trunk.payloadType {
      trunkAudio(header, payload, at: now, into: &output)
    } else if isEvent {
      trunkEvent(header, payload, at: now, into: &output)
    } else if header.payloadType != 13 {  // comfort noise (RFC 3389) is silence
      trunk.dropped &+= 1
      output.drop(.unknownPayloadType)
    } else if downlink.relays, hasLeg(winner) {
      legs[winner].stream.withhold()
    } else {
      downlink.receiver?.skip(header, at: now)
    }
  }

  /// A datagram on the trunk's RTCP port.
  public mutating func handleTrunkControl(
    _ packet: UnsafeRawBufferPointer, from source: SocketAddress, at now: Instant, into output: inout MediaOutput
  ) {
    guard trunk.isSet, !isClosed else { return output.drop(.beforeTrunk) }
    guard trunk.source?.allowsControl(source) == true else { return output.drop(.unexpectedSource) }
    let bytes = Span<UInt8>(_unsafeElements: packet.bindMemory(to: UInt8.self))
    do throws(RTCPParseError) {
      try trunk.reports.receive(
        bytes, about: trunk.stream.ssrc, reception: &trunk.reception, at: now, wallClock: wallClock(now))
    } catch { output.drop(.malformed) }
  }

  private mutating func rejectSource(_ source: SocketAddress, into output: inout MediaOutput) {
    trunk.dropped &+= 1
    output.drop(.unexpectedSource)
    guard !trunk.toldSource, let policy = trunk.source else { return }
    trunk.toldSource = true
    output.events.append(.trunkSourceRejected(id, from: source, allowedBy: policy.allowance(for: source)))
  }

  /// HOT
  private mutating func trunkAudio(
    _ header: RTPHeader, _ payload: UnsafeRawBufferPointer, at now: Instant, into output: inout MediaOutput
  ) {
    let legs = legs  // docs/decisions/0081
    guard isDownlinkOpen, hasLeg(winner) else { return }
    guard !isHeld else { return }
    guard downlink.relays else {
      if insert(header, payload, into: &downlink.receiver, at: now) == .refused { output.drop(.undecodable) }
      downlink.isPrimed = true
      return
    }
    guard legs[winner].isReady, payload.count <= Limits.packetBytes else { return output.drop(.tooLarge) }
    let units = trunk.encoding == .opus ? 960 : UInt32(truncatingIfNeeded: payload.count)
    let stamp = legs[winner].stream.forward(
      header.ssrc.raw, sequence: header.sequence.raw, timestamp: header.timestamp.raw, marker: header.marker, units: units,
      at: now)
    let room = output.packets.room
    let count = writeRTP(room, payloadType: legs[winner].payloadType, stamp, ssrc: legs[winner].stream.ssrc, payload: payload)
    sendToApp(winner, count, payloadBytes: payload.count, timestamp: stamp.timestamp, at: now, into: &output)
    if !downlink.firstAudioTold, isAudible(payload, trunk.encoding) { tellFirstAudio(.trunkToApp, at: now, into: &output) }
  }

  /// A telephone-event of the trunk: a digit for control and, if the app negotiated it, packet by packet to the app.
  private mutating func trunkEvent(
    _ header: RTPHeader, _ payload: UnsafeRawBufferPointer, at now: Instant, into output: inout MediaOutput
  ) {
    let legs = legs  // docs/decisions/0081
    guard let event = TelephoneEvent(parsing: Span<UInt8>(_unsafeElements: payload.bindMemory(to: UInt8.self))) else {
      return output.drop(.malformed)
    }
    if let digit = trunk.digits.receive(event, timestamp: header.timestamp, at: now), connectedAt != nil {
      tell(digit, from: .trunkToApp, into: &output)
    }
    if !downlink.relays { downlink.receiver?.skip(header, at: now) }
    guard isDownlinkOpen, !isHeld, downlink.kept == nil, hasLeg(winner), legs[winner].isReady else { return }
    let payloadType = legs[winner].telephoneEventOnAudioClock
    guard payloadType != 255 else {
      if downlink.relays { legs[winner].stream.withhold() }
      return
    }
    let scale = legs[winner].encoding == .opus ? 6 : 1
    let isFirst = downlink.event.begin(
      header.timestamp.raw, isEnd: event.isEnd, next: legs[winner].stream.nextTimestamp, at: now)
    var stamp: OutgoingStream.Stamp
    if downlink.relays {
      stamp = legs[winner].stream.forward(
        header.ssrc.raw, sequence: header.sequence.raw, timestamp: header.timestamp.raw, marker: header.marker, units: 0, at: now)
    } else {
      stamp = legs[winner].stream.stamp(units: 0, at: now)
      stamp.timestamp = downlink.event.timestamp
    }
    stamp.marker = isFirst
    var scaled = event
    scaled.duration = UInt16(clamping: Int(event.duration) * scale)
    let room = output.packets.room
    let count = writeEvent(room, payloadType: payloadType, stamp, ssrc: legs[winner].stream.ssrc, scaled)
    sendToApp(winner, count, payloadBytes: TelephoneEvent.length, timestamp: stamp.timestamp, at: now, into: &output)
  }

  func tell(_ digit: ReceivedDigit, from direction: AudioDirection, into output: inout MediaOutput) {
    let character = Character(UnicodeScalar(digit.digit))
    output.events.append(.digit(id, from: direction, digit: character, durationMilliseconds: digit.durationMilliseconds))
  }

  mutating func tellFirstAudio(_ direction: AudioDirection, at now: Instant, into output: inout MediaOutput) {
    switch direction {
    case .trunkToApp: downlink.firstAudioTold = true
    case .appToTrunk: uplink.firstAudioTold = true
    }
    output.events.append(.firstAudio(id, direction, at: now))
  }
}

/// Whether a relayed payload is more than silence: G.711 above −40 dB of full scale somewhere, Opus more than a DTX frame.
func isAudible(_ payload: UnsafeRawBufferPointer, _ encoding: AudioEncoding) -> Bool {
  switch encoding {
  case .opus: payload.count > 10
  // The exponent bits: µ-law is sent inverted, A-law with every other bit inverted (G.711 tables 1 and 2).
  case .pcmu: payload.contains { ~$0 & 0x70 >= 0x20 }
  case .pcma: payload.contains { ($0 ^ 0x55) & 0x70 >= 0x20 }
  }
}
