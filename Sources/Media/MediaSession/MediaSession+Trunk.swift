import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP
import TrunklineSRTP

extension MediaSession {
  /// Handles a datagram on the trunk's RTP port; if SRTP was agreed on, decrypts it in place. HOT
  public mutating func handleTrunk(
    _ packet: UnsafeMutableRawBufferPointer, from source: SocketAddress, at now: Instant, into output: inout MediaOutput
  ) {
    guard trunk.isProtected else { return receiveTrunk(UnsafeRawBufferPointer(packet), from: source, at: now, into: &output) }
    // Packets of an unknown source are not decrypted.
    guard trunk.mayAccept(source, at: now) else { return rejectSource(source, into: &output) }
    guard let count = openTrunk(packet, isControl: false, into: &output) else { return }
    receiveTrunk(UnsafeRawBufferPointer(rebasing: packet[..<count]), from: source, at: now, into: &output)
  }

  /// The same for read-only bytes: plain RTP only.
  public mutating func handleTrunk(
    _ packet: UnsafeRawBufferPointer, from source: SocketAddress, at now: Instant, into output: inout MediaOutput
  ) {
    guard !trunk.isProtected else { return output.drop(.noKeys) }
    receiveTrunk(packet, from: source, at: now, into: &output)
  }

  /// Decrypts in place and returns the packet's length; nil if it is dropped. A packet with a wrong tag changes no state. HOT
  private mutating func openTrunk(_ packet: UnsafeMutableRawBufferPointer, isControl: Bool, into output: inout MediaOutput)
    -> Int?
  {
    var count = packet.count
    do throws(SRTPError) {
      try trunk.unprotect(packet, count: &count, isControl: isControl)
      return count
    } catch {
      trunk.received.packetDropped()
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
  private mutating func receiveTrunk(
    _ packet: UnsafeRawBufferPointer, from source: SocketAddress, at now: Instant, into output: inout MediaOutput
  ) {
    let legs = apps.slots
    guard trunk.isSet, !state.isClosed else { return output.drop(.beforeTrunk) }
    let bytes = Span<UInt8>(_unsafeElements: packet.bindMemory(to: UInt8.self))
    let header: RTPHeader
    do throws(RTPParseError) { header = try RTPHeader(parsing: bytes) } catch {
      trunk.received.packetDropped()
      return output.drop(.malformed)
    }
    switch trunk.classify(source, at: now) {
    case .accepted: break
    case .replaced: output.sourceTakeovers &+= 1
    case .rejected, nil: return rejectSource(source, into: &output)
    }
    guard trunk.budget.consume(at: now) else {
      trunk.received.packetDropped()
      return output.drop(.overBudget)
    }
    trunk.received.received(payloadBytes: header.payloadLength)
    if trunk.liveness.received(at: now) { output.events.append(.trunkBack(id)) }
    let payload = UnsafeRawBufferPointer(rebasing: packet[header.length..<(header.length &+ header.payloadLength)])
    switch header.payloadLength == 0 ? .unknown : trunk.formats[header.payloadType] {
    case .audio(let encoding):
      guard admit(header, at: now, into: &output) else { return }
      guard encoding == trunk.incoming || follow(encoding, at: now) else {
        return passOver(header, .undecodable, at: now, into: &output)
      }
      trunkAudio(header, payload, at: now, into: &output)
    case .event(let clock):
      // Events may have a source of their own, which does not affect the audio's numbers.
      if isOfActiveSource(header) {
        guard trunk.reception.receive(header, at: now, measuresJitter: false) != .outOfRange else {
          return dropOutOfRange(into: &output)
        }
      } else {
        trunk.reception.receivedBeside()
      }
      trunkEvents(header, payload, clock: clock, at: now, into: &output)
    case .comfortNoise:
      guard admit(header, at: now, into: &output) else { return }
      if downlink.relay.isOn, apps.hasWinner {
        legs[apps.winner].stream.withhold(header.ssrc.raw, sequence: header.sequence.raw)
      } else {
        downlink.receiver.comfortNoise(header, payload, at: now)
      }
    case .unknown: trunkUnknown(header, from: source, at: now, into: &output)
    }
  }

  /// Whether the packet has the SSRC that is played, or is the first. HOT
  @inline(__always) private func isOfActiveSource(_ header: RTPHeader) -> Bool {
    trunk.active.current == nil || trunk.active.current == header.ssrc
  }

  /// Whether a packet belongs to the source that is played, and to its numbers; otherwise it is counted and dropped. HOT
  private mutating func admit(_ header: RTPHeader, at now: Instant, into output: inout MediaOutput) -> Bool {
    switch trunk.active.admit(header.ssrc, at: now) {
    case .active: break
    case .began: downlink.receiver.release(at: now)
    case .inactive:
      trunk.unheard.otherSourceCame()
      trunk.received.packetDropped()
      trunk.reception.receivedBeside()
      output.drop(.otherSource)
      return false
    }
    guard trunk.reception.receive(header, at: now) != .outOfRange else {
      dropOutOfRange(into: &output)
      return false
    }
    return true
  }

  private mutating func dropOutOfRange(into output: inout MediaOutput) {
    trunk.received.packetDropped()
    output.drop(.outOfSequence)
  }

  /// Follows the trunk to another of the codecs that both listed (RFC 3264 §7). The G.711 laws share a decoder; any other codec
  /// needs one of its own.
  @inline(never) private mutating func follow(_ encoding: AudioEncoding, at now: Instant) -> Bool {
    let sharesDecoder = encoding.sharesDecoder(with: downlink.receiver.encoding ?? trunk.incoming)
    guard trunk.follow(encoding, needsDecoder: !sharesDecoder, at: now) else { return false }
    if !sharesDecoder {
      downlink.receiver.retire()
      downlink.relay.queueDropped()
    }
    updateRelay()
    return true
  }

  /// Handles a packet without a payload, or of a type that was not agreed on: a keep-alive (RFC 6263), or part of a stream that
  /// is dropped.
  @inline(never) private mutating func trunkUnknown(
    _ header: RTPHeader, from source: SocketAddress, at now: Instant, into output: inout MediaOutput
  ) {
    if isOfActiveSource(header) {
      guard trunk.reception.receive(header, at: now, measuresJitter: false) != .outOfRange else {
        return dropOutOfRange(into: &output)
      }
    } else {
      trunk.reception.receivedBeside()
    }
    guard header.payloadLength > 0 else { return passOver(header, .empty, at: now, into: &output) }
    if trunk.unheard.unknownCame(header.payloadType, at: now) {
      output.events.append(.trunkStreamUnknown(id, payloadType: header.payloadType, source: header.ssrc.raw, from: source))
    }
    passOver(header, .unknownPayloadType, at: now, into: &output)
  }

  /// Drops the packet; its sequence number does not count as lost for the receiver of the stream.
  private mutating func passOver(_ header: RTPHeader, _ reason: MediaDrop, at now: Instant, into output: inout MediaOutput) {
    trunk.received.packetDropped()
    output.drop(reason)
    guard trunk.active.current == header.ssrc else { return }
    let legs = apps.slots
    if downlink.relay.isOn, apps.hasWinner {
      legs[apps.winner].stream.withhold(header.ssrc.raw, sequence: header.sequence.raw)
    } else {
      downlink.receiver.skip(header, at: now)
    }
  }

  /// Handles a datagram on the trunk's RTCP port; decrypted like RTP.
  public mutating func handleTrunkControl(
    _ packet: UnsafeMutableRawBufferPointer, from source: SocketAddress, at now: Instant, into output: inout MediaOutput
  ) {
    guard trunk.isProtected else {
      return receiveTrunkControl(UnsafeRawBufferPointer(packet), from: source, at: now, into: &output)
    }
    guard trunk.allowsControl(source) else { return output.drop(.unexpectedSource) }
    guard let count = openTrunk(packet, isControl: true, into: &output) else { return }
    receiveTrunkControl(UnsafeRawBufferPointer(rebasing: packet[..<count]), from: source, at: now, into: &output)
  }

  /// The same for read-only bytes: plain RTCP only.
  public mutating func handleTrunkControl(
    _ packet: UnsafeRawBufferPointer, from source: SocketAddress, at now: Instant, into output: inout MediaOutput
  ) {
    guard !trunk.isProtected else { return output.drop(.noKeys) }
    receiveTrunkControl(packet, from: source, at: now, into: &output)
  }

  private mutating func receiveTrunkControl(
    _ packet: UnsafeRawBufferPointer, from source: SocketAddress, at now: Instant, into output: inout MediaOutput
  ) {
    guard trunk.isSet, !state.isClosed else { return output.drop(.beforeTrunk) }
    guard trunk.allowsControl(source) else { return output.drop(.unexpectedSource) }
    let bytes = Span<UInt8>(_unsafeElements: packet.bindMemory(to: UInt8.self))
    do throws(RTCPParseError) {
      try trunk.reports.receive(
        bytes, about: trunk.stream, arrived: trunk.reception.received, reception: &trunk.reception, at: now,
        wallClock: wallClock(now))
    } catch { output.drop(.malformed) }
  }

  private mutating func rejectSource(_ source: SocketAddress, into output: inout MediaOutput) {
    trunk.received.packetDropped()
    output.drop(.unexpectedSource)
    guard let allowance = trunk.firstRejection(of: source) else { return }
    output.events.append(.trunkSourceRejected(id, from: source, allowedBy: allowance))
  }

  /// HOT
  private mutating func trunkAudio(
    _ header: RTPHeader, _ payload: UnsafeRawBufferPointer, at now: Instant, into output: inout MediaOutput
  ) {
    let legs = apps.slots
    guard isDownlinkOpen, apps.hasWinner || partners.bridge != nil || taps.hasStream else { return }
    guard !state.isHeld else { return }
    trunk.received.audioReceived(milliseconds: trunk.payloadLength.milliseconds(ofOctets: payload.count))
    trunk.unheard.audioReceived()
    guard downlink.relay.isOn else {
      switch downlink.receiver.insert(header, payload, trunk.incoming, at: now) {
      case .late: trunk.reception.discarded(header.sequence)
      case .refused:
        trunk.unheard.audioRefused()
        output.drop(.undecodable)
      default: break
      }
      downlink.relay.packetQueued()
      return
    }
    hearRelayed(payload, at: now, into: &output)
    guard legs[apps.winner].isReady, payload.count <= Limits.packetBytes else { return output.drop(.tooLarge) }
    let units = trunk.payloadLength.units(ofOctets: payload.count)
    let stamp = legs[apps.winner].stream.forward(
      header.ssrc.raw, sequence: header.sequence.raw, timestamp: header.timestamp.raw, marker: header.marker, units: units,
      at: now)
    let room = output.packets.room
    let count = writeRTP(
      room, payloadType: legs[apps.winner].payloadType, stamp, ssrc: legs[apps.winner].stream.ssrc, payload: payload)
    sendToApp(apps.winner, count: count, payloadBytes: payload.count, timestamp: stamp.timestamp, at: now, into: &output)
    if downlink.awaitsFirstAudio, trunk.incoming.isAudible(payload) { reportFirstAudio(.trunkToApp, at: now, into: &output) }
  }

  /// Decodes a relayed payload: always to detect digits, else one packet in eight for the level.
  private mutating func hearRelayed(_ payload: UnsafeRawBufferPointer, at now: Instant, into output: inout MediaOutput) {
    guard trunk.pieceOctets > 0 else { return }
    guard downlink.tones.isListening || trunk.reception.received & 7 == 0 else { return }
    let scratch = frame + Frame.capacity
    var start = 0
    while start &+ trunk.pieceOctets / 2 <= payload.count {
      let piece = UnsafeRawBufferPointer(rebasing: payload[start..<min(payload.count, start &+ trunk.pieceOctets)])
      var samples = MutableSpan<Int16>(_unsafeStart: scratch, count: AudioBand.narrowband.samplesPerTick)
      let octets = Span<UInt8>(_unsafeElements: piece.bindMemory(to: UInt8.self))
      let count = trunk.incoming.decodeSamples(octets, into: &samples)
      hearTones(scratch, count: count, band: .narrowband, at: now, into: &output)
      if trunk.reception.received & 7 == 0, count == samples.count { downlink.gate.measure(scratch, .narrowband) }
      start &+= trunk.pieceOctets
    }
  }

  /// Detects digits that the trunk sends as tones (`count` 0: no audio). HOT
  mutating func hearTones(
    _ samples: UnsafePointer<Int16>, count: Int, band: AudioBand, at now: Instant, into output: inout MediaOutput
  ) {
    guard let digit = downlink.tones.receive(samples, count: count, band: band), state.isConnected else { return }
    if trunk.detectsTones { return report(digit, from: .trunkToApp, into: &output) }
    guard trunk.watchesTones, trunk.unheard.toneCame() else { return }
    output.events.append(.trunkSendsTones(id))
    trunk.stopWatchingTones()
    downlink.tones.listen(false)
  }

  /// Handles telephone-events of the trunk: digits for control and, if the app negotiated them, events packet by packet for the
  /// app.
  private mutating func trunkEvents(
    _ header: RTPHeader, _ payload: UnsafeRawBufferPointer, clock: UInt32, at now: Instant, into output: inout MediaOutput
  ) {
    let bytes = Span<UInt8>(_unsafeElements: payload.bindMemory(to: UInt8.self))
    guard TelephoneEvent.count(in: bytes) > 0 else { return output.drop(.malformed) }
    skipped.end()
    if trunk.watchesTones {
      trunk.stopWatchingTones()
      downlink.tones.listen(false)
    }
    let isBeside = trunk.active.current != header.ssrc
    if !downlink.relay.isOn, !isBeside { downlink.receiver.skip(header, at: now) }
    var number = downlink.relay.isOn && !isBeside && apps.hasWinner ? header.sequence.raw : nil
    let stamps = trunk.incoming.clockRateHz
    var timestamp = header.timestamp
    for index in 0..<TelephoneEvent.count(in: bytes) {
      guard let event = TelephoneEvent(parsing: bytes, at: index) else { break }
      let digit = trunk.digits.receive(
        event, of: header.ssrc.raw, timestamp, clockRateHz: clock, stampRateHz: stamps, at: now)
      if let digit, state.isConnected { report(digit, from: .trunkToApp, into: &output) }
      let clocks = EventForward.Clocks(event: clock, stream: stamps)
      forwardToApp(event, header: header, timestamp: timestamp.raw, incoming: clocks, &number, at: now, into: &output)
      timestamp = timestamp.advanced(by: Int(event.duration))
    }
    let legs = apps.slots
    if number != nil { legs[apps.winner].stream.withhold(header.ssrc.raw, sequence: header.sequence.raw) }
  }

  /// `number`: the source packet's number in a relayed stream, until one of our packets uses it.
  private mutating func forwardToApp(
    _ event: TelephoneEvent, header: RTPHeader, timestamp: UInt32, incoming: EventForward.Clocks, _ number: inout UInt16?,
    at now: Instant, into output: inout MediaOutput
  ) {
    let legs = apps.slots
    guard isDownlinkOpen, !state.isHeld, downlink.firstWords.isEmpty, apps.hasWinner, legs[apps.winner].isReady else { return }
    guard let format = legs[apps.winner].telephoneEvent else { return }
    let clocks = EventForward.Clocks(event: format.clockRateHz, stream: legs[apps.winner].encoding.clockRateHz)
    let parts = downlink.event.forward(
      event, of: header.ssrc.raw, timestamp: timestamp, from: incoming, to: clocks,
      next: legs[apps.winner].stream.eventTimestamp(of: header, relays: downlink.relay.isOn),
      at: now)
    if let opening = parts.opening { sendEventToApp(opening, header, &number, at: now, into: &output) }
    if let closing = parts.closing { sendEventToApp(closing, header, &number, at: now, into: &output) }
    if let part = parts.part { sendEventToApp(part, header, &number, at: now, into: &output) }
  }

  /// `header` is the source's packet whose number may be used; nil: it is between two of them.
  mutating func sendEventToApp(
    _ part: EventForward.Part, _ header: RTPHeader?, _ number: inout UInt16?, at now: Instant, into output: inout MediaOutput
  ) {
    let legs = apps.slots
    guard let format = legs[apps.winner].telephoneEvent else { return }
    let stamp = legs[apps.winner].stream.event(part, in: header, &number, relays: downlink.relay.isOn, at: now)
    let count = writeEvent(
      output.packets.room, payloadType: format.payloadType, stamp, ssrc: legs[apps.winner].stream.ssrc, part.event)
    sendToApp(apps.winner, count: count, payloadBytes: TelephoneEvent.length, timestamp: stamp.timestamp, at: now, into: &output)
  }

  func report(_ digit: ReceivedDigit, from direction: AudioDirection, into output: inout MediaOutput) {
    let character = Character(UnicodeScalar(digit.digit))
    output.events.append(.digit(id, from: direction, digit: character, durationMilliseconds: digit.durationMilliseconds))
  }

  mutating func reportFirstAudio(_ direction: AudioDirection, at now: Instant, into output: inout MediaOutput) {
    let isFirst =
      switch direction {
      case .trunkToApp: downlink.firstAudio()
      case .appToTrunk: uplink.firstAudio()
      }
    if isFirst { output.events.append(.firstAudio(id, direction, at: now)) }
  }
}
