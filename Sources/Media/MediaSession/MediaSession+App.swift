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
    guard hasLeg(index), !isClosed else { return output.drop(.unvalidatedAddress) }
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
    guard hasLeg(index), !isClosed else { return output.drop(.unvalidatedAddress) }
    appCheck(check, index, from: source, route: route, at: now, into: &output)
  }

  private mutating func appCheck(
    _ check: STUNMessage?, _ index: Int, from source: SocketAddress, route: PacketRoute, at now: Instant,
    into output: inout MediaOutput
  ) {
    let legs = legs
    guard let check else { return output.drop(.malformed) }
    let outcome = legs[index].agent.handle(check, from: source, at: now, reply: output.packets.room)
    output.packets.commit(outcome.replyCount, to: source, route: route)
    switch outcome.verdict {
    case .ignored(.malformed): return output.drop(.malformed)
    case .ignored: return output.drop(.badIntegrity)
    case .roleConflict, .unknownAttribute: return
    case .validated:
      if !legs[index].isNominated { (legs[index].address, legs[index].route) = (source, route) }
    case .nominated(let nomination, let isNew):
      (legs[index].address, legs[index].route, legs[index].isNominated) = (source, route, true)
      if isNew {
        output.events.append(.nominated(id, legs[index].id, generation: nomination.generation, remote: nomination.remote))
      }
    }
    output.bindings.append(AppBinding(leg: legs[index].id, route: route, address: source))
    if legs[index].address == source { legs[index].lastReceived = now }
    authenticated(index, at: now, into: &output)
    startHandshake(index, toward: source, route, into: &output)
  }

  // MARK: DTLS

  private mutating func appDTLS(
    _ packet: UnsafeMutableRawBufferPointer, _ index: Int, from source: SocketAddress, route: PacketRoute, at now: Instant,
    into output: inout MediaOutput
  ) {
    let legs = legs
    guard legs[index].agent.isValidated(source, at: now) else { return output.drop(.unvalidatedAddress) }
    let isServer = legs[index].remote?.isDTLSServer ?? false
    guard HandshakeDatagram(UnsafeRawBufferPointer(packet), isFromServer: isServer).isSound else {
      return output.drop(.malformed)
    }
    guard legs[index].handshakeBudget.consume(at: now) else { return output.drop(.overBudget) }
    legs[index].handshakeAddress = source
    legs[index].handshakeRoute = route
    output.handshakes.append(.datagram(handshakeKey(index), Array(packet)))
  }

  /// If the peer is the DTLS server: sends our first flight to the first address that ICE validated, and retransmissions to the
  /// newest.
  func startHandshake(
    _ index: Int, toward address: SocketAddress, _ route: PacketRoute, into output: inout MediaOutput
  ) {
    let legs = legs
    guard legs[index].remote?.isDTLSServer == true else { return }
    (legs[index].handshakeAddress, legs[index].handshakeRoute) = (address, route)
    guard !legs[index].isHandshakeStarted else { return }
    legs[index].isHandshakeStarted = true
    output.handshakes.append(.start(handshakeKey(index)))
  }

  /// Handles the handshake runner's result for one of this session's legs. Results of an earlier association are ignored.
  public mutating func handle(_ result: HandshakeResult, at now: Instant, into output: inout MediaOutput) {
    let key = result.key
    guard !isClosed, let index = index(of: key.leg), legs[index].association == key.association else { return }
    switch result {
    case .flight(_, let datagrams):
      guard let address = legs[index].handshakeAddress else { return }
      for datagram in datagrams where datagram.count <= OutgoingBatch.slotBytes {
        datagram.withUnsafeBytes { output.packets.room.copyMemory(from: $0) }
        output.packets.commit(datagram.count, to: address, route: legs[index].handshakeRoute)
      }
    case .completed(_, let keys): install(keys, index, into: &output)
    case .failed(_, let failure): fail(index, failure, into: &output)
    }
  }

  /// The first keys are used at once; later ones from their first valid packet on (docs/reference/protocol.md, Reconnect and
  /// handover).
  private mutating func install(_ keys: SRTPKeyMaterial, _ index: Int, into output: inout MediaOutput) {
    do throws(SRTPError) {
      let security = try LegSecurity(keys, isClient: legs[index].remote?.isDTLSServer ?? false, seed: setup.random.next())
      if legs[index].security == nil { legs[index].security = consume security } else { legs[index].pending = consume security }
    } catch { return fail(index, .dtls("\(error)"), into: &output) }
    legs[index].profileName = keys.profile.name
    output.events.append(
      .keysInstalled(id, legs[index].id, generation: legs[index].remote?.generation ?? 1, profile: keys.profile.name))
  }

  private mutating func fail(_ index: Int, _ failure: AppLegFailure, into output: inout MediaOutput) {
    guard !legs[index].failed else { return }
    legs[index].failed = true
    output.events.append(.appLegFailed(id, legs[index].id, failure))
  }

  // MARK: SRTP

  /// HOT
  private mutating func appRTP(
    _ packet: UnsafeMutableRawBufferPointer, _ index: Int, from source: SocketAddress, route: PacketRoute, at now: Instant,
    into output: inout MediaOutput
  ) {
    let legs = legs
    var count = packet.count
    guard unprotect(packet, index, from: source, isControl: false, count: &count, at: now, into: &output) else { return }
    validPacket(index, from: source, route: route, at: now, into: &output)
    let clear = UnsafeRawBufferPointer(rebasing: packet[..<count])
    let header: RTPHeader
    do throws(RTPParseError) {
      header = try RTPHeader(parsing: Span<UInt8>(_unsafeElements: clear.bindMemory(to: UInt8.self)))
    } catch { return output.drop(.malformed) }
    guard legs[index].budget.consume(at: now) else {
      legs[index].dropped &+= 1
      return output.drop(.overBudget)
    }
    let payloadType = header.payloadType
    let isAudio = payloadType == legs[index].payloadType
    let isEvent = !isAudio && (payloadType == legs[index].telephoneEvent48 || payloadType == legs[index].telephoneEvent8)
    // An app that sends G.711 may describe its pauses (RFC 3389).
    let isNoise = payloadType == ComfortNoise.payloadType && legs[index].encoding != .opus
    guard isAudio || isEvent || isNoise else {
      // The number of a packet that is not forwarded is not a loss for the trunk.
      if index == winner { passOver(header, at: now) }
      legs[index].dropped &+= 1
      return output.drop(.unknownPayloadType)
    }
    let isBeside = isEvent && legs[index].reception.source.map { $0 != header.ssrc } ?? false
    // Events may have a source of their own, which does not affect the audio's numbers.
    if isBeside { legs[index].reception.receivedBeside() }
    let verdict = isBeside ? .accepted : legs[index].reception.receive(header, at: now, measuresJitter: isAudio)
    legs[index].bytesReceived &+= UInt64(header.payloadLength)
    guard verdict != .outOfRange, header.payloadLength > 0 else {
      if verdict != .outOfRange, index == winner { passOver(header, at: now) }
      legs[index].dropped &+= 1
      return output.drop(verdict == .outOfRange ? .outOfSequence : .empty)
    }
    if isAudio, legs[index].saidSource != header.ssrc.raw { saySource(header.ssrc.raw, index, into: &output) }
    guard index == winner, connectedAt != nil || isLocked else { return output.drop(.beforeLock) }
    let payload = UnsafeRawBufferPointer(rebasing: clear[header.length..<(header.length &+ header.payloadLength)])
    if isAudio {
      appAudio(header, payload, at: now, into: &output)
    } else if isNoise {
      appNoise(header, payload, at: now)
    } else if connectedAt != nil {
      appEvents(header, payload, isBeside: isBeside, at: now, into: &output)
    }
  }

  private mutating func appNoise(_ header: RTPHeader, _ payload: UnsafeRawBufferPointer, at now: Instant) {
    guard !uplink.relays else { return trunk.stream.withhold(header.ssrc.raw, sequence: header.sequence.raw) }
    uplink.receiver.comfortNoise(header, payload, at: now)
  }

  /// Drops a packet of the winner; its number does not count as a loss.
  private mutating func passOver(_ header: RTPHeader, at now: Instant) {
    guard legs[winner].reception.source == header.ssrc else { return }
    if uplink.relays {
      trunk.stream.withhold(header.ssrc.raw, sequence: header.sequence.raw)
    } else {
      uplink.receiver.skip(header, at: now)
    }
  }

  private mutating func appRTCP(
    _ packet: UnsafeMutableRawBufferPointer, _ index: Int, from source: SocketAddress, route: PacketRoute, at now: Instant,
    into output: inout MediaOutput
  ) {
    let legs = legs
    var count = packet.count
    guard unprotect(packet, index, from: source, isControl: true, count: &count, at: now, into: &output) else { return }
    validPacket(index, from: source, route: route, at: now, into: &output)
    let clear = UnsafeRawBufferPointer(rebasing: packet[..<count])
    let bytes = Span<UInt8>(_unsafeElements: clear.bindMemory(to: UInt8.self))
    let clock = wallClock(now)
    do throws(RTCPParseError) {
      let arrived = legs[index].bytesReceived &+ legs[index].dropped
      let oneWay = try legs[index].reports.receive(
        bytes, about: legs[index].stream, arrived: arrived, reception: &legs[index].reception, at: now, wallClock: clock)
      guard let oneWay, index == winner, connectedAt != nil else { return }
      output.events.append(.appOneWay(id, legs[index].id, oneWay))
    } catch { output.drop(.malformed) }
  }

  /// Decrypts with the present keys, or with pending ones, which then replace them. A refused packet's bytes stay unchanged. HOT
  private mutating func unprotect(
    _ packet: UnsafeMutableRawBufferPointer, _ index: Int, from source: SocketAddress, isControl: Bool, count: inout Int,
    at now: Instant, into output: inout MediaOutput
  ) -> Bool {
    let legs = legs
    if legs[index].pending != nil, openPending(packet, index, isControl: isControl, count: &count) { return true }
    guard legs[index].security != nil else {
      legs[index].dropped &+= 1
      output.drop(.noKeys)
      return false
    }
    do throws(SRTPError) {
      if isControl {
        try legs[index].security?.receiver.unprotectRTCP(packet, count: &count)
      } else {
        try legs[index].security?.receiver.unprotect(packet, count: &count)
      }
      return true
    } catch {
      legs[index].dropped &+= 1
      switch error {
      case .replayed, .tooOld:
        // If copies from another address arrive first, the peer's own packets count as replays: its address is not silent.
        if source == legs[index].address { legs[index].lastReceived = now }
        output.drop(.replayed)
      case .malformed: output.drop(.malformed)
      case .tooManySources: output.drop(.tooManySources)
      default: output.drop(.badTag)
      }
      return false
    }
  }

  private mutating func openPending(
    _ packet: UnsafeMutableRawBufferPointer, _ index: Int, isControl: Bool, count: inout Int
  ) -> Bool {
    let legs = legs
    do throws(SRTPError) {
      if isControl {
        try legs[index].pending?.receiver.unprotectRTCP(packet, count: &count)
      } else {
        try legs[index].pending?.receiver.unprotect(packet, count: &count)
      }
    } catch { return false }
    legs[index].security = legs[index].pending.take()
    return true
  }

  /// Handles SRTP or SRTCP with a valid tag.
  @inline(__always) private mutating func validPacket(
    _ index: Int, from source: SocketAddress, route: PacketRoute, at now: Instant, into output: inout MediaOutput
  ) {
    authenticated(index, at: now, into: &output)
    if source == legs[index].address {
      legs[index].lastReceived = now
    } else {
      follow(index, to: source, route: route, at: now, into: &output)
    }
  }

  /// Lets the receiver find this leg by its SSRC as well as by its address.
  @inline(never) private mutating func saySource(_ ssrc: UInt32, _ index: Int, into output: inout MediaOutput) {
    let legs = legs
    legs[index].saidSource = ssrc
    output.sources.append(AppSource(leg: legs[index].id, ssrc: ssrc))
  }

  /// After a NAT gave the app another port, its checks come from there and need not nominate (Chromium's do after 2.5 s, others'
  /// never). Its packets cannot be forged, and a copy counts as replayed; a check could be a copy. So both must arrive, and
  /// nothing may have come from the old address for a second. Some apps send no checks in a call (libnice before 0.1.22): for
  /// them five packets in a row count, after a longer silence.
  @inline(never) private mutating func follow(
    _ index: Int, to source: SocketAddress, route: PacketRoute, at now: Instant, into output: inout MediaOutput
  ) {
    let legs = legs
    let lastReceived = legs[index].lastReceived
    guard legs[index].isNominated, now - lastReceived >= Limits.sourceSilence else { return }
    let hasSettled = settled(index, at: source)
    guard
      let nomination = legs[index].agent.follow(source, silentSince: lastReceived)
        ?? (hasSettled && now - lastReceived >= Limits.uncheckedSilence ? legs[index].agent.followUnchecked(source) : nil)
    else { return }
    (legs[index].address, legs[index].route, legs[index].lastReceived) = (source, route, now)
    legs[index].elsewhere = nil
    output.bindings.append(AppBinding(leg: legs[index].id, route: route, address: source))
    output.events.append(.appMoved(id, legs[index].id, to: nomination.remote))
  }

  /// Whether at least the last five packets from another address came from this one.
  private mutating func settled(_ index: Int, at source: SocketAddress) -> Bool {
    let legs = legs
    guard let before = legs[index].elsewhere, before.address == source else {
      legs[index].elsewhere = (source, 1)
      return false
    }
    legs[index].elsewhere = (source, min(before.count + 1, Limits.agreeingPackets))
    return before.count + 1 >= Limits.agreeingPackets
  }

  /// Records STUN, SRTP or SRTCP with a valid tag: the leg is alive.
  @inline(__always) mutating func authenticated(_ index: Int, at now: Instant, into output: inout MediaOutput) {
    legs[index].lastAuthenticated = now
    guard legs[index].isSilent else { return }
    legs[index].isSilent = false
    output.events.append(.appLegBack(id, legs[index].id))
  }

  // MARK: Audio

  /// HOT
  private mutating func appAudio(
    _ header: RTPHeader, _ payload: UnsafeRawBufferPointer, at now: Instant, into output: inout MediaOutput
  ) {
    let legs = legs
    if uplink.relays, !uplink.sender.isIdle { return }  // digits replace the audio
    legs[winner].packetMilliseconds = legs[winner].payloadLength.milliseconds(ofOctets: payload.count)
    guard uplink.relays else {
      switch uplink.receiver.insert(header, payload, legs[winner].encoding, at: now) {
      case .late: legs[winner].reception.discarded(header.sequence)
      case .refused: output.drop(.undecodable)
      default: break
      }
      uplink.isPrimed = true
      return
    }
    guard trunk.sends, let destination = trunk.destination else { return }
    guard payload.count <= Limits.packetBytes else { return output.drop(.tooLarge) }
    uplink.lastForwarded = now
    let units = trunk.payloadLength.units(ofOctets: payload.count)
    let stamp = trunk.stream.forward(
      header.ssrc.raw, sequence: header.sequence.raw, timestamp: header.timestamp.raw, marker: header.marker, units: units,
      at: now)
    let count = writeRTP(output.packets.room, payloadType: trunk.payloadType, stamp, ssrc: trunk.stream.ssrc, payload: payload)
    sendToTrunk(count, payloadBytes: payload.count, timestamp: stamp.timestamp, to: destination, at: now, into: &output)
    if !uplink.isFirstAudioReported, trunk.encoding.isAudible(payload) { reportFirstAudio(.appToTrunk, at: now, into: &output) }
  }

  /// Handles telephone-events of the app: digits for control, and events for the trunk if it accepts them.
  private mutating func appEvents(
    _ header: RTPHeader, _ payload: UnsafeRawBufferPointer, isBeside: Bool, at now: Instant, into output: inout MediaOutput
  ) {
    let bytes = Span<UInt8>(_unsafeElements: payload.bindMemory(to: UInt8.self))
    guard TelephoneEvent.count(in: bytes) > 0 else { return output.drop(.malformed) }
    skippedTicks = 0
    let clock: UInt32 = header.payloadType == legs[winner].telephoneEvent48 ? 48_000 : 8_000
    let stamps = legs[winner].encoding.clockRateHz
    if !uplink.relays, !isBeside { uplink.receiver.skip(header, at: now) }
    var number = uplink.relays && !isBeside ? header.sequence.raw : nil
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
      if isDeferred(header.ssrc.raw, timestamp.raw) {
        if let digit {
          _ = uplink.sender.enqueue(digit.digit, durationMilliseconds: min(max(digit.durationMilliseconds, 80), 500))
        }
      } else {
        let clocks = EventForward.Clocks(event: clock, stream: stamps)
        forwardToTrunk(event, header, timestamp.raw, clocks, &number, at: now, into: &output)
      }
      timestamp = timestamp.advanced(by: Int(event.duration))
    }
    if number != nil { trunk.stream.withhold(header.ssrc.raw, sequence: header.sequence.raw) }
  }

  /// One press is sent to the trunk at a time: one that begins while digits of `call.dtmf` are sent follows them, as a whole.
  private mutating func isDeferred(_ ssrc: UInt32, _ timestamp: UInt32) -> Bool {
    if let deferred = uplink.deferred, deferred == (ssrc, timestamp) { return true }
    guard trunk.telephoneEvent != 255, !uplink.sender.isIdle, !uplink.event.isPending else { return false }
    uplink.deferred = (ssrc, timestamp)
    return true
  }

  /// `number`: the source packet's number in a relayed stream, until one of our packets uses it.
  private mutating func forwardToTrunk(
    _ event: TelephoneEvent, _ header: RTPHeader, _ timestamp: UInt32, _ incoming: EventForward.Clocks, _ number: inout UInt16?,
    at now: Instant, into output: inout MediaOutput
  ) {
    guard trunk.sends, !isHeld, trunk.telephoneEvent != 255 else { return }
    if !uplink.relays, !uplink.event.isActive(at: now) { clearPacketizer() }
    let parts = uplink.event.forward(
      event, of: header.ssrc.raw, timestamp: timestamp, from: incoming, to: trunk.eventClocks,
      next: trunk.stream.eventTimestamp(of: header, relays: uplink.relays),
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
    let stamp = trunk.stream.event(part, in: header, &number, relays: uplink.relays, at: now)
    let count = writeEvent(
      output.packets.room, payloadType: trunk.telephoneEvent, stamp, ssrc: trunk.stream.ssrc, part.event)
    sendToTrunk(count, payloadBytes: TelephoneEvent.length, timestamp: stamp.timestamp, to: destination, at: now, into: &output)
  }

  /// Ends presses whose sender fell silent before the end, or sent fewer than three ends. On ticks.
  mutating func endPresses(_ direction: AudioDirection, at now: Instant, into output: inout MediaOutput) {
    var number: UInt16?
    switch direction {
    case .appToTrunk:
      guard uplink.event.isPending, trunk.sends, !isHeld, let part = uplink.event.due(at: now) else { return }
      sendEventToTrunk(part, nil, &number, at: now, into: &output)
    case .trunkToApp:
      guard downlink.event.isPending, !isHeld, hasLeg(winner), let part = downlink.event.due(at: now) else { return }
      sendEventToApp(part, nil, &number, at: now, into: &output)
    }
  }

  /// Protects the packet in the batch's next slot and sends it to the leg. HOT
  mutating func sendToApp(
    _ index: Int, _ count: Int, payloadBytes: Int, timestamp: UInt32, at now: Instant, into output: inout MediaOutput
  ) {
    let legs = legs
    guard count > 0, let address = legs[index].address, legs[index].security != nil else { return }
    var total = count
    do throws(SRTPError) {
      try legs[index].security?.sender.protect(output.packets.room, count: &total)
    } catch {
      return output.drop(error == .replayed ? .duplicate : error == .keyExhausted ? .noKeys : .badTag)
    }
    output.packets.commit(total, to: address, route: legs[index].route)
    legs[index].stream.sent(payloadBytes: payloadBytes, timestamp: timestamp, at: now)
  }
}
