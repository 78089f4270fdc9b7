import TrunklineAudioCodecs
public import TrunklineBytes
import TrunklineICE
import TrunklineJitterBuffer
import TrunklineMediaSession
import TrunklineRTP
import TrunklineSDP
import TrunklineSRTP

extension ClientMedia {
  /// Decrypts in place.
  mutating func receiveAudio(_ datagram: UnsafeMutableRawBufferPointer, _ now: Instant, _ output: inout Output) {
    var count = datagram.count
    do throws(SRTPError) {
      guard try receiver?.unprotect(datagram, count: &count) != nil, count <= datagram.count else { return refuse() }
    } catch { return refuse() }
    packetReceived(now, isAudio: true, &output)
    let packet = Span<UInt8>(_unsafeBytes: UnsafeRawBufferPointer(rebasing: datagram[..<count]))
    guard let header = try? RTPHeader(parsing: packet), let remote else { return }
    _ = reception.receive(header, at: now)
    let payload = header.payload(of: packet)
    statistics.receivedBytes += UInt64(payload.count)
    if header.payloadType == remote.payloadType {
      if configuration.codesAudio {
        _ = audioReceiver?.insert(header, payload: payload, at: now)
      } else {
        output.frames.append(.init(header: header, payload: payload.withUnsafeBufferPointer { Array($0) }))
      }
    } else if header.payloadType == remote.telephoneEvent48 || header.payloadType == remote.telephoneEvent8 {
      audioReceiver?.skip(header, at: now)
      if let event = TelephoneEvent(parsing: payload),
        let digit = digitReceiver.receive(event, timestamp: header.timestamp, at: now)
      {
        statistics.digits.append(Character(Unicode.Scalar(digit.digit)))
      }
    }
    statistics.receivedPackets = reception.received
    statistics.lostPackets = reception.lost
    statistics.jitterMilliseconds = reception.jitterMilliseconds
  }

  mutating func refuse() { statistics.refusedPackets += 1 }

  /// Writes the next 20 ms in the configured band, for the loudspeaker. Silence before audio may run. No allocation.
  public mutating func play(into samples: inout MutableSpan<Int16>, at now: Instant) {
    for index in 0..<samples.count { samples[index] = 0 }
    guard isActive, remote != nil, samples.count == configuration.band.samplesPerTick else { return }
    if let band = audioReceiver?.band, band < configuration.band {
      var frame = narrowed
      narrowed = []  // otherwise the array is copied when it is written
      defer { narrowed = frame }
      var room = frame.mutableSpan
      for index in room.indices { room[index] = 0 }
      _ = audioReceiver?.pull(into: &room, at: now)
      convert(room.span, widen, from: band, to: configuration.band, into: &samples)
    } else {
      _ = audioReceiver?.pull(into: &samples, at: now)
    }
    statistics.speakerLevel = speaker.measure(samples.span)
    if let receiver = audioReceiver?.statistics {
      statistics.concealedMilliseconds = receiver.concealedMilliseconds
      statistics.bufferDelayMilliseconds = receiver.bufferDelayMilliseconds
    }
  }

  /// Sends 20 ms in the configured band, from the microphone; nothing before audio may run, silence while muted. A pause is not
  /// encoded: earlier packets of it are sent again. No allocation.
  public mutating func send(captured samples: Span<Int16>, into output: inout Output) {
    guard isActive, let remote, samples.count == configuration.band.samplesPerTick else { return }
    statistics.microphoneLevel = microphone.measure(samples)
    let band = encoder?.band ?? configuration.band
    if isMuted {
      let frame = silentFrame
      send(frame.span.extracting(first: band.samplesPerTick), remote, &output)
    } else if band < configuration.band {
      var frame = narrowed
      narrowed = []
      defer { narrowed = frame }
      var room = frame.mutableSpan
      convert(samples, narrow, from: configuration.band, to: band, into: &room)
      send(frame.span, remote, &output)
    } else {
      send(samples, remote, &output)
    }
  }

  /// - Parameter target: has room for all converted samples.
  private func convert(
    _ samples: Span<Int16>, _ converter: borrowing BandConverter, from: AudioBand, to: AudioBand,
    into target: inout MutableSpan<Int16>
  ) {
    guard target.count >= BandConverter.count(samples.count, from: from, to: to) else { return }
    samples.withUnsafeBufferPointer { samples in
      target.withUnsafeMutableBufferPointer { target in
        guard let source = samples.baseAddress, let room = target.baseAddress else { return }
        converter.convert(source, samples.count, from: from, to: to, into: room)
      }
    }
  }

  private mutating func send(_ samples: Span<Int16>, _ remote: AppMedia, _ output: inout Output) {
    let isPause = silence != nil && silenceDetector.isSilence(samples)
    if isPause, let packet = silence?.next() { return transmit(packet, remote, &output) }
    let isSilence = isPause || silenceDetector.isLingering
    if !isSilence { silence?.removeAll() }
    var frame = coded
    coded = []  // otherwise the array is copied when it is written
    defer { coded = frame }
    var room = frame.mutableSpan
    let length = (try? encoder?.encode(samples, into: &room)) ?? 0
    guard length > 0 else {
      timestamp &+= UInt32(truncatingIfNeeded: encoder?.units(ofSamples: samples.count) ?? 160)
      return
    }
    if isSilence { silence?.keep(frame.span.extracting(..<length)) }
    frame.withUnsafeBytes { transmit(UnsafeRawBufferPointer(rebasing: $0[..<length]), remote, &output) }
  }

  /// Sends 20 ms of encoded audio in the negotiated codec; nothing before audio may run. For owners that encode audio themselves:
  /// call it every 20 ms.
  public mutating func send(encoded payload: [UInt8], into output: inout Output) {
    guard isActive, let remote, !payload.isEmpty, payload.count <= TrunklineAudioCodecs.Limits.opusFrameLength else { return }
    payload.withUnsafeBytes { bytes in transmit(bytes, remote, &output) }
  }

  /// Adds the header and the protection to a payload, and sends it.
  private mutating func transmit(_ payload: UnsafeRawBufferPointer, _ remote: AppMedia, _ output: inout Output) {
    defer { timestamp &+= remote.codec.clockRateHz / 50 }
    guard keys != nil, let pair = agent.nominatedPair else { return }
    let header = RTPHeader(
      payloadType: remote.payloadType, marker: ticks == 0, sequence: SequenceNumber(raw: sequence),
      timestamp: RTPTimestamp(raw: timestamp), ssrc: SSRC(raw: negotiation.endpoint.ssrc))
    var packet = room
    room = []
    defer { room = packet }
    var whole = packet.mutableSpan
    _ = header.write(into: &whole)
    var count = Self.headerBytes + payload.count
    let isProtected = packet.withUnsafeMutableBytes { buffer -> Bool in
      UnsafeMutableRawBufferPointer(rebasing: buffer[Self.headerBytes...]).copyMemory(from: payload)
      do throws(SRTPError) {
        try sender?.protect(buffer, count: &count)
        return true
      } catch { return false }
    }
    guard isProtected else { return }
    sequence &+= 1
    ticks += 1
    statistics.sentPackets += 1
    sentBytes += UInt64(payload.count)
    packet.withUnsafeBytes { bytes in
      emit(UnsafeRawBufferPointer(rebasing: bytes[..<count]), from: pair.local, to: pair.remote, &output)
    }
  }

  private static var headerBytes: Int { 12 }
}
