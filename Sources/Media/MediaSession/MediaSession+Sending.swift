import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP
import TrunklineSRTP

// From frames to packets: encoding, packet times, comfort noise.

extension MediaSession {
  /// Encodes 20 ms and sends them to the winner. HOT
  /// - Parameter isSilence: the frame belongs to a pause; its packet may be repeated within the pause.
  mutating func sendFrameToApp(
    _ samples: UnsafePointer<Int16>, startsTalk: Bool, isSilence: Bool = false, at now: Instant, into output: inout MediaOutput
  ) {
    let legs = apps.slots
    let units = legs[apps.winner].stream.unitsPerFrame
    guard let base = output.packets.room.baseAddress, !downlink.encoder.isEmpty else { return }
    let room = UnsafeMutableRawBufferPointer(start: base + headerBytes, count: Limits.packetBytes - headerBytes)
    let bytes = downlink.encoder.encode(samples, band.samplesPerTick, into: room)
    guard bytes > 0 else { return legs[apps.winner].stream.skip(units: units) }
    if isSilence {
      downlink.keepSilence(Span(_unsafeElements: UnsafeBufferPointer(rebasing: room.bindMemory(to: UInt8.self)[..<bytes])))
    }
    let stamp = legs[apps.winner].stream.stamp(units: units, startsTalk: startsTalk, at: now)
    writeHeader(base, payloadType: legs[apps.winner].payloadType, stamp: stamp, ssrc: legs[apps.winner].stream.ssrc)
    sendToApp(apps.winner, count: headerBytes + bytes, payloadBytes: bytes, timestamp: stamp.timestamp, at: now, into: &output)
  }

  /// Sends a frame of talk, or of the hang-over after it. HOT
  mutating func sendTalkToApp(at now: Instant, into output: inout MediaOutput) {
    let isLingering = downlink.gate.detector.isLingering
    if !isLingering { downlink.dropSilence() }
    sendFrameToApp(frame, startsTalk: true, isSilence: isLingering, at: now, into: &output)
  }

  /// Sends a frame of a pause in a stream without gaps: repeats a packet of this pause, or encodes a new one. HOT
  mutating func sendSilenceToApp(at now: Instant, into output: inout MediaOutput) {
    let legs = apps.slots
    guard let packet = downlink.nextSilence(), let base = output.packets.room.baseAddress else {
      return sendFrameToApp(frame, startsTalk: true, isSilence: true, at: now, into: &output)
    }
    (base + headerBytes).copyMemory(from: packet.baseAddress ?? UnsafeRawPointer(base), byteCount: packet.count)
    let stamp = legs[apps.winner].stream.stamp(units: legs[apps.winner].stream.unitsPerFrame, at: now)
    writeHeader(base, payloadType: legs[apps.winner].payloadType, stamp: stamp, ssrc: legs[apps.winner].stream.ssrc)
    sendToApp(
      apps.winner, count: headerBytes + packet.count, payloadBytes: packet.count, timestamp: stamp.timestamp, at: now,
      into: &output)
  }

  /// Encodes a frame for the trunk and sends each packet that is complete. HOT
  mutating func sendFrame(
    _ samples: UnsafePointer<Int16>, to destination: SocketAddress, at now: Instant, into output: inout MediaOutput
  ) {
    if trunk.encoding == .opus { return sendOpusFrame(samples, to: destination, at: now, into: &output) }
    guard let octets = uplink.packetizer.room else { return }
    let room = UnsafeMutableRawBufferPointer(start: octets, count: uplink.packetizer.frameBytes)
    uplink.packetizer.added(uplink.encoder.encode(samples, band.samplesPerTick, into: room))
    let (packetBytes, units) = (uplink.packetizer.packetBytes, uplink.packetizer.packetUnits)
    while uplink.packetizer.count >= packetBytes {
      guard let base = output.packets.room.baseAddress, uplink.packetizer.pop(into: base + headerBytes) else { return }
      let stamp = trunk.stream.stamp(units: units, at: now)
      writeHeader(base, payloadType: trunk.payloadType, stamp: stamp, ssrc: trunk.stream.ssrc)
      sendToTrunk(
        headerBytes + packetBytes, payloadBytes: packetBytes, timestamp: stamp.timestamp, to: destination, at: now, into: &output)
    }
  }

  private mutating func sendOpusFrame(
    _ samples: UnsafePointer<Int16>, to destination: SocketAddress, at now: Instant, into output: inout MediaOutput
  ) {
    uplink.gathered.append(samples, band)
    let wanted = uplink.gathered.packetFrames * band.samplesPerTick / 2
    while uplink.gathered.count >= wanted {
      guard let base = output.packets.room.baseAddress, let gathered = uplink.gathered.samples else { return }
      let room = UnsafeMutableRawBufferPointer(start: base + headerBytes, count: Limits.packetBytes - headerBytes)
      let bytes = uplink.encoder.encode(gathered, wanted, into: room)
      uplink.gathered.remove(wanted)
      let units = trunk.stream.unitsPerFrame &* UInt32(truncatingIfNeeded: uplink.gathered.packetFrames) / 2
      guard bytes > 0 else {
        trunk.stream.skip(units: units)
        continue
      }
      let stamp = trunk.stream.stamp(units: units, at: now)
      writeHeader(base, payloadType: trunk.payloadType, stamp: stamp, ssrc: trunk.stream.ssrc)
      sendToTrunk(headerBytes + bytes, payloadBytes: bytes, timestamp: stamp.timestamp, to: destination, at: now, into: &output)
    }
  }

  /// Protects the packet in the batch's next slot if SRTP was negotiated, and sends it to the trunk. HOT
  @inline(__always) mutating func sendToTrunk(
    _ count: Int, payloadBytes: Int, timestamp: UInt32, to destination: SocketAddress, at now: Instant,
    into output: inout MediaOutput
  ) {
    var total = count
    guard !trunk.isProtected || protectForTrunk(&total, isControl: false, into: &output) else { return }
    output.packets.commit(total, to: destination, route: setup.trunkRoute)
    trunk.stream.sent(payloadBytes: payloadBytes, timestamp: timestamp, at: now)
  }

  /// Returns false if the packet must not be sent. HOT
  mutating func protectForTrunk(_ count: inout Int, isControl: Bool, into output: inout MediaOutput) -> Bool {
    guard count > 0 else { return false }
    do throws(SRTPError) {
      try trunk.protect(output.packets.room, count: &count, isControl: isControl)
      return true
    } catch {
      output.drop(error == .replayed ? .duplicate : .noKeys)
      return false
    }
  }

  /// Drops the frames that wait to complete a packet; the timestamp skips them.
  mutating func clearPacketizer() {
    let units = uplink.clearFrames(unitsPerFrame: trunk.stream.unitsPerFrame, band)
    if units > 0 { trunk.stream.skip(units: UInt32(truncatingIfNeeded: units)) }
  }

  /// Sends one comfort noise packet (RFC 3389 §4) in the stream's sequence, at the time of the frame that it replaces.
  mutating func sendComfortNoise(
    _ level: Double, to destination: SocketAddress, at now: Instant, into output: inout MediaOutput
  ) {
    guard let base = output.packets.room.baseAddress else { return }
    let stamp = trunk.stream.stamp(units: 0, startsTalk: false, at: now)
    writeHeader(base, payloadType: trunk.comfortNoise, stamp: stamp, ssrc: trunk.stream.ssrc)
    base.storeBytes(of: ComfortNoise.octet(level: level), toByteOffset: headerBytes, as: UInt8.self)
    sendToTrunk(headerBytes + 1, payloadBytes: 1, timestamp: stamp.timestamp, to: destination, at: now, into: &output)
  }
}
