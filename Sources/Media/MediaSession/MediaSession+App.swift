import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP
import TrunklineSRTP
public import TrunklineSTUN

extension MediaSession {
  /// Handles a datagram for the leg in slot `index`, found by the ufrag of its STUN or by its address. Decrypts in place. HOT
  public mutating func handleApp(
    _ packet: UnsafeMutableRawBufferPointer, leg index: Int, from source: SocketAddress, route: PacketRoute, at now: Instant,
    into output: inout MediaOutput
  ) {
    guard apps.has(index), !state.isClosed else { return output.drop(.unvalidatedAddress) }
    switch PacketKind(Span<UInt8>(_unsafeElements: UnsafeRawBufferPointer(packet).bindMemory(to: UInt8.self))) {
    case .rtp: appRTP(packet, index, from: source, route: route, at: now, into: &output)
    case .rtcp: appRTCP(packet, index, from: source, route: route, at: now, into: &output)
    case .stun:
      let check = try? STUNMessage(UnsafeRawBufferPointer(packet))
      appCheck(check, index, from: source, route: route, at: now, into: &output)
    case .dtls: appDTLS(packet, index, from: source, route: route, at: now, into: &output)
    case .zrtp, .turnChannel, .unknown: output.drop(.malformed)
    }
  }

  // MARK: ICE

  /// The same for STUN that was already parsed, to find the leg. Its bytes must not have been modified since.
  public mutating func handleApp(
    _ check: STUNMessage, leg index: Int, from source: SocketAddress, route: PacketRoute, at now: Instant,
    into output: inout MediaOutput
  ) {
    guard apps.has(index), !state.isClosed else { return output.drop(.unvalidatedAddress) }
    appCheck(check, index, from: source, route: route, at: now, into: &output)
  }

  private mutating func appCheck(
    _ check: STUNMessage?, _ index: Int, from source: SocketAddress, route: PacketRoute, at now: Instant,
    into output: inout MediaOutput
  ) {
    let legs = apps.slots
    guard let check else { return output.drop(.malformed) }
    let outcome = legs[index].agent.handle(check, from: source, at: now, reply: output.packets.room)
    output.packets.commit(outcome.replyCount, to: source, route: route)
    switch outcome.verdict {
    case .ignored(.malformed): return output.drop(.malformed)
    case .ignored: return output.drop(.badIntegrity)
    case .roleConflict, .unknownAttribute: return
    case .validated:
      legs[index].path.validated(source, route)
    case .nominated(let nomination, let isNew):
      legs[index].path.nominated(source, route)
      if isNew {
        output.events.append(.nominated(id, legs[index].id, generation: nomination.generation, remote: nomination.remote))
      }
    }
    output.bindings.append(AppBinding(leg: legs[index].id, route: route, address: source))
    legs[index].path.received(from: source, at: now)
    authenticated(index, at: now, into: &output)
    startHandshake(index, toward: source, route, into: &output)
  }

  // MARK: DTLS

  private mutating func appDTLS(
    _ packet: UnsafeMutableRawBufferPointer, _ index: Int, from source: SocketAddress, route: PacketRoute, at now: Instant,
    into output: inout MediaOutput
  ) {
    let legs = apps.slots
    guard legs[index].agent.isValidated(source, at: now) else { return output.drop(.unvalidatedAddress) }
    let isServer = legs[index].remote?.isDTLSServer ?? false
    guard HandshakeDatagram(UnsafeRawBufferPointer(packet), isFromServer: isServer).isSound else {
      return output.drop(.malformed)
    }
    guard legs[index].handshake.received(from: source, route, at: now) else { return output.drop(.overBudget) }
    output.handshakes.append(.datagram(handshakeKey(index), Array(packet)))
  }

  /// If the peer is the DTLS server: sends our first flight to the first address that ICE validated, and retransmissions to the
  /// newest.
  func startHandshake(
    _ index: Int, toward address: SocketAddress, _ route: PacketRoute, into output: inout MediaOutput
  ) {
    let legs = apps.slots
    guard legs[index].remote?.isDTLSServer == true, legs[index].handshake.start(toward: address, route) else { return }
    output.handshakes.append(.start(handshakeKey(index)))
  }

  /// Handles the handshake runner's result for one of this session's legs. Results of an earlier association are ignored.
  public mutating func handle(_ result: HandshakeResult, at now: Instant, into output: inout MediaOutput) {
    let key = result.key
    guard !state.isClosed, let index = index(of: key.leg) else { return }
    let legs = apps.slots
    guard legs[index].handshake.isCurrent(key.association) else { return }
    switch result {
    case .flight(_, let datagrams):
      guard let address = legs[index].handshake.address else { return }
      for datagram in datagrams where datagram.count <= OutgoingBatch.slotBytes {
        datagram.withUnsafeBytes { output.packets.room.copyMemory(from: $0) }
        output.packets.commit(datagram.count, to: address, route: legs[index].handshake.route)
      }
    case .completed(_, let keys): install(keys, index, into: &output)
    case .failed(_, let failure): fail(index, failure, into: &output)
    }
  }

  /// The first keys are used at once; later ones from their first valid packet on (docs/reference/protocol.md, Reconnect and
  /// handover).
  private mutating func install(_ keys: SRTPKeyMaterial, _ index: Int, into output: inout MediaOutput) {
    let legs = apps.slots
    do throws(SRTPError) {
      try legs[index].keys.install(keys, isClient: legs[index].remote?.isDTLSServer ?? false, seed: setup.random.next())
    } catch { return fail(index, .dtls("\(error)"), into: &output) }
    output.events.append(
      .keysInstalled(id, legs[index].id, generation: legs[index].remote?.generation ?? 1, profile: keys.profile.name))
  }

  private mutating func fail(_ index: Int, _ failure: AppLegFailure, into output: inout MediaOutput) {
    let legs = apps.slots
    guard legs[index].handshake.fail() else { return }
    output.events.append(.appLegFailed(id, legs[index].id, failure))
  }

  // MARK: SRTP

  /// HOT
  private mutating func appRTP(
    _ packet: UnsafeMutableRawBufferPointer, _ index: Int, from source: SocketAddress, route: PacketRoute, at now: Instant,
    into output: inout MediaOutput
  ) {
    let legs = apps.slots
    var count = packet.count
    guard unprotect(packet, index, from: source, isControl: false, count: &count, at: now, into: &output) else { return }
    validPacket(index, from: source, route: route, at: now, into: &output)
    let clear = UnsafeRawBufferPointer(rebasing: packet[..<count])
    let header: RTPHeader
    do throws(RTPParseError) {
      header = try RTPHeader(parsing: Span<UInt8>(_unsafeElements: clear.bindMemory(to: UInt8.self)))
    } catch { return output.drop(.malformed) }
    guard legs[index].budget.consume(at: now) else {
      legs[index].received.packetDropped()
      return output.drop(.overBudget)
    }
    let payloadType = header.payloadType
    let isAudio = payloadType == legs[index].payloadType
    let isEvent = !isAudio && (payloadType == legs[index].telephoneEvent48 || payloadType == legs[index].telephoneEvent8)
    // An app that sends G.711 may describe its pauses (RFC 3389).
    let isNoise = payloadType == ComfortNoise.payloadType && legs[index].encoding != .opus
    guard isAudio || isEvent || isNoise else {
      // The number of a packet that is not forwarded is not a loss for the trunk.
      if index == apps.winner { passOver(header, at: now) }
      legs[index].received.packetDropped()
      return output.drop(.unknownPayloadType)
    }
    let isBeside = isEvent && legs[index].reception.source.map { $0 != header.ssrc } ?? false
    // Events may have a source of their own, which does not affect the audio's numbers.
    if isBeside { legs[index].reception.receivedBeside() }
    let verdict = isBeside ? .accepted : legs[index].reception.receive(header, at: now, measuresJitter: isAudio)
    legs[index].received.received(payloadBytes: header.payloadLength)
    guard verdict != .outOfRange, header.payloadLength > 0 else {
      if verdict != .outOfRange, index == apps.winner { passOver(header, at: now) }
      legs[index].received.packetDropped()
      return output.drop(verdict == .outOfRange ? .outOfSequence : .empty)
    }
    if isAudio, legs[index].isNewSource(header.ssrc.raw) {
      // The receiver finds this leg by its SSRC as well as by its address.
      output.sources.append(AppSource(leg: legs[index].id, ssrc: header.ssrc.raw))
    }
    guard index == apps.winner, state.acceptsApp else { return output.drop(.beforeLock) }
    let payload = UnsafeRawBufferPointer(rebasing: clear[header.length..<(header.length &+ header.payloadLength)])
    if isAudio {
      appAudio(header, payload, at: now, into: &output)
    } else if isNoise {
      appNoise(header, payload, at: now)
    } else if state.isConnected {
      appEvents(header, payload, isBeside: isBeside, at: now, into: &output)
    }
  }

  private mutating func appNoise(_ header: RTPHeader, _ payload: UnsafeRawBufferPointer, at now: Instant) {
    guard !uplink.relay.isOn else { return trunk.stream.withhold(header.ssrc.raw, sequence: header.sequence.raw) }
    uplink.receiver.comfortNoise(header, payload, at: now)
  }

  /// Drops a packet of the winner; its number does not count as a loss.
  private mutating func passOver(_ header: RTPHeader, at now: Instant) {
    guard apps.slots[apps.winner].reception.source == header.ssrc else { return }
    if uplink.relay.isOn {
      trunk.stream.withhold(header.ssrc.raw, sequence: header.sequence.raw)
    } else {
      uplink.receiver.skip(header, at: now)
    }
  }

  private mutating func appRTCP(
    _ packet: UnsafeMutableRawBufferPointer, _ index: Int, from source: SocketAddress, route: PacketRoute, at now: Instant,
    into output: inout MediaOutput
  ) {
    let legs = apps.slots
    var count = packet.count
    guard unprotect(packet, index, from: source, isControl: true, count: &count, at: now, into: &output) else { return }
    validPacket(index, from: source, route: route, at: now, into: &output)
    let clear = UnsafeRawBufferPointer(rebasing: packet[..<count])
    let bytes = Span<UInt8>(_unsafeElements: clear.bindMemory(to: UInt8.self))
    let clock = wallClock(now)
    do throws(RTCPParseError) {
      let arrived = legs[index].received.payloadBytes &+ legs[index].received.dropped
      let oneWay = try legs[index].reports.receive(
        bytes, about: legs[index].stream, arrived: arrived, reception: &legs[index].reception, at: now, wallClock: clock)
      guard let oneWay, index == apps.winner, state.isConnected else { return }
      output.events.append(.appOneWay(id, legs[index].id, oneWay))
    } catch { output.drop(.malformed) }
  }

  /// Decrypts with the present keys, or with pending ones, which then replace them. A refused packet's bytes stay unchanged. HOT
  private mutating func unprotect(
    _ packet: UnsafeMutableRawBufferPointer, _ index: Int, from source: SocketAddress, isControl: Bool, count: inout Int,
    at now: Instant, into output: inout MediaOutput
  ) -> Bool {
    let legs = apps.slots
    guard legs[index].keys.isInstalled else {
      legs[index].received.packetDropped()
      output.drop(.noKeys)
      return false
    }
    do throws(SRTPError) {
      try legs[index].keys.unprotect(packet, isControl: isControl, count: &count)
      return true
    } catch {
      legs[index].received.packetDropped()
      switch error {
      case .replayed, .tooOld:
        // If copies from another address arrive first, the peer's own packets count as replays: its address is not silent.
        legs[index].path.received(from: source, at: now)
        output.drop(.replayed)
      case .malformed: output.drop(.malformed)
      case .tooManySources: output.drop(.tooManySources)
      default: output.drop(.badTag)
      }
      return false
    }
  }

  /// Handles SRTP or SRTCP with a valid tag.
  @inline(__always) private mutating func validPacket(
    _ index: Int, from source: SocketAddress, route: PacketRoute, at now: Instant, into output: inout MediaOutput
  ) {
    authenticated(index, at: now, into: &output)
    let legs = apps.slots
    guard !legs[index].path.received(from: source, at: now) else { return }
    follow(index, to: source, route: route, at: now, into: &output)
  }

  /// Follows the app to another address, if its packets and checks allow it.
  @inline(never) private mutating func follow(
    _ index: Int, to source: SocketAddress, route: PacketRoute, at now: Instant, into output: inout MediaOutput
  ) {
    let legs = apps.slots
    guard let nomination = legs[index].path.move(to: source, route, agent: &legs[index].agent, at: now) else { return }
    output.bindings.append(AppBinding(leg: legs[index].id, route: route, address: source))
    output.events.append(.appMoved(id, legs[index].id, to: nomination.remote))
  }

  /// Records STUN, SRTP or SRTCP with a valid tag: the leg is alive.
  @inline(__always) mutating func authenticated(_ index: Int, at now: Instant, into output: inout MediaOutput) {
    let legs = apps.slots
    guard legs[index].liveness.received(at: now) else { return }
    output.events.append(.appLegBack(id, legs[index].id))
  }

  // MARK: Audio

  /// HOT
  private mutating func appAudio(
    _ header: RTPHeader, _ payload: UnsafeRawBufferPointer, at now: Instant, into output: inout MediaOutput
  ) {
    let legs = apps.slots
    if uplink.relay.isOn, !uplink.sender.isIdle { return }  // digits replace the audio
    legs[apps.winner].received.audioReceived(milliseconds: legs[apps.winner].payloadLength.milliseconds(ofOctets: payload.count))
    guard uplink.relay.isOn else {
      switch uplink.receiver.insert(header, payload, legs[apps.winner].encoding, at: now) {
      case .late: legs[apps.winner].reception.discarded(header.sequence)
      case .refused: output.drop(.undecodable)
      default: break
      }
      uplink.relay.packetQueued()
      return
    }
    guard trunk.sends, let destination = trunk.destination else { return }
    guard payload.count <= Limits.packetBytes else { return output.drop(.tooLarge) }
    uplink.forwarded(at: now)
    let units = trunk.payloadLength.units(ofOctets: payload.count)
    let stamp = trunk.stream.forward(
      header.ssrc.raw, sequence: header.sequence.raw, timestamp: header.timestamp.raw, marker: header.marker, units: units,
      at: now)
    let count = writeRTP(output.packets.room, payloadType: trunk.payloadType, stamp, ssrc: trunk.stream.ssrc, payload: payload)
    sendToTrunk(count, payloadBytes: payload.count, timestamp: stamp.timestamp, to: destination, at: now, into: &output)
    if uplink.awaitsFirstAudio, trunk.encoding.isAudible(payload) { reportFirstAudio(.appToTrunk, at: now, into: &output) }
  }

  /// Handles telephone-events of the app: digits for control, and events for the trunk if it accepts them.
  private mutating func appEvents(
    _ header: RTPHeader, _ payload: UnsafeRawBufferPointer, isBeside: Bool, at now: Instant, into output: inout MediaOutput
  ) {
    let bytes = Span<UInt8>(_unsafeElements: payload.bindMemory(to: UInt8.self))
    guard TelephoneEvent.count(in: bytes) > 0 else { return output.drop(.malformed) }
    skipped.end()
    let legs = apps.slots
    let clock: UInt32 = header.payloadType == legs[apps.winner].telephoneEvent48 ? 48_000 : 8_000
    let stamps = legs[apps.winner].encoding.clockRateHz
    if !uplink.relay.isOn, !isBeside { uplink.receiver.skip(header, at: now) }
    var number = uplink.relay.isOn && !isBeside ? header.sequence.raw : nil
    var timestamp = header.timestamp
    for index in 0..<TelephoneEvent.count(in: bytes) {
      guard let event = TelephoneEvent(parsing: bytes, at: index) else { break }
      let digit = uplink.digits.receive(
        event, of: header.ssrc.raw, timestamp, clockRateHz: clock, stampRateHz: stamps, at: now)
      if let digit {
        report(digit, from: .appToTrunk, into: &output)
        // A trunk without the format gets the digit as a tone.
        if trunk.telephoneEvent == 255 {
          _ = uplink.sender.enqueue(digit.digit, durationMilliseconds: min(max(digit.durationMilliseconds, 80), 500))
        }
      }
      if uplink.defers(header.ssrc.raw, timestamp: timestamp.raw, acceptsEvents: trunk.telephoneEvent != 255) {
        if let digit {
          _ = uplink.sender.enqueue(digit.digit, durationMilliseconds: min(max(digit.durationMilliseconds, 80), 500))
        }
      } else {
        let clocks = EventForward.Clocks(event: clock, stream: stamps)
        forwardToTrunk(event, header: header, timestamp: timestamp.raw, incoming: clocks, &number, at: now, into: &output)
      }
      timestamp = timestamp.advanced(by: Int(event.duration))
    }
    if number != nil { trunk.stream.withhold(header.ssrc.raw, sequence: header.sequence.raw) }
  }

  /// `number`: the source packet's number in a relayed stream, until one of our packets uses it.
  private mutating func forwardToTrunk(
    _ event: TelephoneEvent, header: RTPHeader, timestamp: UInt32, incoming: EventForward.Clocks, _ number: inout UInt16?,
    at now: Instant, into output: inout MediaOutput
  ) {
    guard trunk.sends, !state.isHeld, trunk.telephoneEvent != 255 else { return }
    if !uplink.relay.isOn, !uplink.event.isActive(at: now) { clearPacketizer() }
    let parts = uplink.event.forward(
      event, of: header.ssrc.raw, timestamp: timestamp, from: incoming, to: trunk.eventClocks,
      next: trunk.stream.eventTimestamp(of: header, relays: uplink.relay.isOn),
      at: now)
    if let opening = parts.opening { sendEventToTrunk(opening, header, &number, at: now, into: &output) }
    if let closing = parts.closing { sendEventToTrunk(closing, header, &number, at: now, into: &output) }
    if let part = parts.part { sendEventToTrunk(part, header, &number, at: now, into: &output) }
  }

  /// `header` is the source's packet whose number may be used; nil: it is between two of them.
  mutating func sendEventToTrunk(
    _ part: EventForward.Part, _ header: RTPHeader?, _ number: inout UInt16?, at now: Instant, into output: inout MediaOutput
  ) {
    guard let destination = trunk.destination, trunk.telephoneEvent != 255 else { return }
    let stamp = trunk.stream.event(part, in: header, &number, relays: uplink.relay.isOn, at: now)
    let count = writeEvent(
      output.packets.room, payloadType: trunk.telephoneEvent, stamp, ssrc: trunk.stream.ssrc, part.event)
    sendToTrunk(count, payloadBytes: TelephoneEvent.length, timestamp: stamp.timestamp, to: destination, at: now, into: &output)
  }

  /// Ends presses whose sender fell silent before the end, or sent fewer than three ends. On ticks.
  mutating func endPresses(_ direction: AudioDirection, at now: Instant, into output: inout MediaOutput) {
    var number: UInt16?
    switch direction {
    case .appToTrunk:
      guard uplink.event.isPending, trunk.sends, !state.isHeld, let part = uplink.event.due(at: now) else { return }
      sendEventToTrunk(part, nil, &number, at: now, into: &output)
    case .trunkToApp:
      guard downlink.event.isPending, !state.isHeld, apps.hasWinner, let part = downlink.event.due(at: now) else { return }
      sendEventToApp(part, nil, &number, at: now, into: &output)
    }
  }

  /// Protects the packet in the batch's next slot and sends it to the leg. HOT
  mutating func sendToApp(
    _ index: Int, count: Int, payloadBytes: Int, timestamp: UInt32, at now: Instant, into output: inout MediaOutput
  ) {
    let legs = apps.slots
    guard count > 0, let address = legs[index].path.address, legs[index].keys.isInstalled else { return }
    var total = count
    do throws(SRTPError) {
      try legs[index].keys.protect(output.packets.room, isControl: false, count: &total)
    } catch {
      return output.drop(error == .replayed ? .duplicate : error == .keyExhausted ? .noKeys : .badTag)
    }
    output.packets.commit(total, to: address, route: legs[index].path.route)
    legs[index].stream.sent(payloadBytes: payloadBytes, timestamp: timestamp, at: now)
  }
}
