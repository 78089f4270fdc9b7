import AudioCodecs
import Bytes
import RTP
import SRTP

extension MediaSession {
  /// A datagram on the trunk's RTP port; where SRTP was agreed on it is decrypted where it lies. HOT
  public mutating func handleTrunk(
    _ packet: UnsafeMutableRawBufferPointer, from source: SocketAddress, at now: Instant, into output: inout MediaOutput
  ) {
    guard trunk.isProtected else { return takeTrunk(UnsafeRawBufferPointer(packet), from: source, at: now, into: &output) }
    // What a stranger sends is not worth decrypting.
    guard trunk.source?.mayBeHeard(source) == true else { return rejectSource(source, into: &output) }
    guard let count = openTrunk(packet, isControl: false, into: &output) else { return }
    takeTrunk(UnsafeRawBufferPointer(rebasing: packet[..<count]), from: source, at: now, into: &output)
  }

  /// The same for bytes that can not be written to: plain RTP only.
  public mutating func handleTrunk(
    _ packet: UnsafeRawBufferPointer, from source: SocketAddress, at now: Instant, into output: inout MediaOutput
  ) {
    guard !trunk.isProtected else { return output.drop(.noKeys) }
    takeTrunk(packet, from: source, at: now, into: &output)
  }

  /// The packet's length in clear; nil if it is dropped. Nothing is learnt from a packet whose tag is wrong. HOT
  private mutating func openTrunk(_ packet: UnsafeMutableRawBufferPointer, isControl: Bool, into output: inout MediaOutput)
    -> Int?
  {
    var count = packet.count
    do throws(SRTPError) {
      guard trunk.security != nil else { throw .keyLength }
      try trunk.security?.unprotect(packet, count: &count, isControl: isControl)
      return count
    } catch {
      trunk.dropped &+= 1
      switch error {
      case .replayed, .tooOld: output.drop(.replayed)
      case .malformed: output.drop(.malformed)
      case .keyLength: output.drop(.noKeys)
      case .tooManySources: output.drop(.tooManySources)
      default: output.drop(.badTag)
      }
      return nil
    }
  }

  /// HOT
  private mutating func takeTrunk(
    _ packet: UnsafeRawBufferPointer, from source: SocketAddress, at now: Instant, into output: inout MediaOutput
  ) {
    let legs = legs
    guard trunk.isSet, !isClosed else { return output.drop(.beforeTrunk) }
    let bytes = Span<UInt8>(_unsafeElements: packet.bindMemory(to: UInt8.self))
    let header: RTPHeader
    do throws(RTPParseError) { header = try RTPHeader(parsing: bytes) } catch {
      trunk.dropped &+= 1
      return output.drop(.malformed)
    }
    switch trunk.source?.classify(source, at: now) {
    case .accepted: break
    case .tookOver: output.sourceTakeovers &+= 1
    case .rejected, nil: return rejectSource(source, into: &output)
    }
    guard trunk.budget.take(at: now) else {
      trunk.dropped &+= 1
      return output.drop(.overBudget)
    }
    let isEvent = header.payloadType == trunk.incomingEvent
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
      trunkEvents(header, payload, at: now, into: &output)
    } else if header.payloadType != ComfortNoise.payloadType {
      trunk.dropped &+= 1
      output.drop(.unknownPayloadType)
    } else if downlink.relays, hasLeg(winner) {
      legs[winner].stream.withhold()
    } else {
      downlink.receiver.comfortNoise(header, payload, at: now)
    }
  }

  /// A datagram on the trunk's RTCP port; decrypted like RTP.
  public mutating func handleTrunkControl(
    _ packet: UnsafeMutableRawBufferPointer, from source: SocketAddress, at now: Instant, into output: inout MediaOutput
  ) {
    guard trunk.isProtected else { return takeTrunkControl(UnsafeRawBufferPointer(packet), from: source, at: now, into: &output) }
    guard trunk.source?.allowsControl(source) == true else { return output.drop(.unexpectedSource) }
    guard let count = openTrunk(packet, isControl: true, into: &output) else { return }
    takeTrunkControl(UnsafeRawBufferPointer(rebasing: packet[..<count]), from: source, at: now, into: &output)
  }

  /// The same for bytes that can not be written to: plain RTCP only.
  public mutating func handleTrunkControl(
    _ packet: UnsafeRawBufferPointer, from source: SocketAddress, at now: Instant, into output: inout MediaOutput
  ) {
    guard !trunk.isProtected else { return output.drop(.noKeys) }
    takeTrunkControl(packet, from: source, at: now, into: &output)
  }

  private mutating func takeTrunkControl(
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
    let legs = legs
    guard isDownlinkOpen, hasLeg(winner) || bridge != nil || stream != nil else { return }
    guard !isHeld else { return }
    trunk.packetMilliseconds = trunk.payloadLength.milliseconds(ofOctets: payload.count)
    guard downlink.relays else {
      switch downlink.receiver.insert(header, payload, at: now) {
      case .late: trunk.reception.discarded(header.sequence)
      case .refused: output.drop(.undecodable)
      default: break
      }
      downlink.isPrimed = true
      return
    }
    hearRelayed(payload, at: now, into: &output)
    guard legs[winner].isReady, payload.count <= Limits.packetBytes else { return output.drop(.tooLarge) }
    let units = trunk.payloadLength.units(ofOctets: payload.count)
    let stamp = legs[winner].stream.forward(
      header.ssrc.raw, sequence: header.sequence.raw, timestamp: header.timestamp.raw, marker: header.marker, units: units,
      at: now)
    let room = output.packets.room
    let count = writeRTP(room, payloadType: legs[winner].payloadType, stamp, ssrc: legs[winner].stream.ssrc, payload: payload)
    sendToApp(winner, count, payloadBytes: payload.count, timestamp: stamp.timestamp, at: now, into: &output)
    if !downlink.firstAudioTold, trunk.encoding.isAudible(payload) { tellFirstAudio(.trunkToApp, at: now, into: &output) }
  }

  /// A relayed payload that is listened to: for digits, and now and then for the level.
  private mutating func hearRelayed(_ payload: UnsafeRawBufferPointer, at now: Instant, into output: inout MediaOutput) {
    guard trunk.pieceOctets > 0 else { return }
    guard downlink.tones != nil || trunk.reception.received & 7 == 0 else { return }
    let scratch = frame + Frame.capacity
    var start = 0
    while start &+ trunk.pieceOctets / 2 <= payload.count {
      let piece = UnsafeRawBufferPointer(rebasing: payload[start..<min(payload.count, start &+ trunk.pieceOctets)])
      var samples = MutableSpan<Int16>(_unsafeStart: scratch, count: AudioBand.narrowband.samplesPerTick)
      let octets = Span<UInt8>(_unsafeElements: piece.bindMemory(to: UInt8.self))
      let count = trunk.encoding.decodeSamples(octets, into: &samples)
      hearTones(scratch, count, .narrowband, at: now, into: &output)
      if trunk.reception.received & 7 == 0, count == samples.count { downlink.gate.measure(scratch, .narrowband) }
      start &+= trunk.pieceOctets
    }
  }

  /// Digits that the trunk sends as tones (`count` 0: it sends nothing). HOT
  mutating func hearTones(
    _ samples: UnsafePointer<Int16>, _ count: Int, _ band: AudioBand, at now: Instant, into output: inout MediaOutput
  ) {
    let heard = count == 0 ? downlink.tones?.absent() : downlink.tones?.hear(Span(_unsafeStart: samples, count: count), band)
    if let digit = heard ?? nil, connectedAt != nil { tell(digit, from: .trunkToApp, into: &output) }
  }

  /// Telephone-events of the trunk: digits for control and, if the app negotiated them, packet by packet to the app.
  private mutating func trunkEvents(
    _ header: RTPHeader, _ payload: UnsafeRawBufferPointer, at now: Instant, into output: inout MediaOutput
  ) {
    let bytes = Span<UInt8>(_unsafeElements: payload.bindMemory(to: UInt8.self))
    guard TelephoneEvent.count(in: bytes) > 0 else { return output.drop(.malformed) }
    skippedTicks = 0
    if !downlink.relays { downlink.receiver.skip(header, at: now) }
    var timestamp = header.timestamp
    for index in 0..<TelephoneEvent.count(in: bytes) {
      guard let event = TelephoneEvent(parsing: bytes, at: index) else { return }
      if let digit = trunk.digits.receive(event, timestamp: timestamp, at: now), connectedAt != nil {
        tell(digit, from: .trunkToApp, into: &output)
      }
      forwardToApp(event, timestamp.raw, index == 0 ? header : nil, payload, at: now, into: &output)
      timestamp = timestamp.advanced(by: Int(event.duration))
    }
  }

  /// `header` is nil for the further events of a packet, which relaying has sent with the first.
  private mutating func forwardToApp(
    _ event: TelephoneEvent, _ timestamp: UInt32, _ header: RTPHeader?, _ payload: UnsafeRawBufferPointer, at now: Instant,
    into output: inout MediaOutput
  ) {
    let legs = legs
    guard isDownlinkOpen, !isHeld, downlink.kept == nil, hasLeg(winner), legs[winner].isReady else { return }
    let payloadType = legs[winner].telephoneEventOnAudioClock
    guard payloadType != 255 else {
      if downlink.relays, header != nil { legs[winner].stream.withhold() }
      return
    }
    let scale = UInt64(max(1, legs[winner].stream.unitsPerFrame / max(1, trunk.stream.unitsPerFrame)))
    let (closing, part) = downlink.event.take(
      event, timestamp: timestamp, next: legs[winner].stream.nextTimestamp, scale: { $0 &* scale }, at: now)
    if downlink.relays {
      guard let header, payload.count <= Limits.packetBytes else { return }
      var stamp = legs[winner].stream.forward(
        header.ssrc.raw, sequence: header.sequence.raw, timestamp: header.timestamp.raw, marker: header.marker, units: 0, at: now)
      stamp.marker = part.marker
      let count = writeRTP(
        output.packets.room, payloadType: payloadType, stamp, ssrc: legs[winner].stream.ssrc, payload: payload)
      return sendToApp(winner, count, payloadBytes: payload.count, timestamp: stamp.timestamp, at: now, into: &output)
    }
    if let closing { sendEventToApp(event, closing, payloadType, at: now, into: &output) }
    sendEventToApp(event, part, payloadType, at: now, into: &output)
  }

  private mutating func sendEventToApp(
    _ event: TelephoneEvent, _ part: EventForward.Part, _ payloadType: UInt8, at now: Instant, into output: inout MediaOutput
  ) {
    let legs = legs
    var stamp = legs[winner].stream.stamp(units: 0, at: now)
    (stamp.timestamp, stamp.marker) = (part.timestamp, part.marker)
    let count = writeEvent(
      output.packets.room, payloadType: payloadType, stamp, ssrc: legs[winner].stream.ssrc, part.applied(to: event))
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
