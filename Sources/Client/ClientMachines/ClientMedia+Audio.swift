import TrunklineAudioCodecs
public import TrunklineBytes
import TrunklineICE
import TrunklineRTP

extension ClientMedia {
  /// Decrypts in place.
  mutating func receiveAudio(_ datagram: UnsafeMutableRawBufferPointer, _ now: Instant, _ output: inout Output) {
    var count = datagram.count
    guard keys.unprotect(datagram, count: &count) else { return }
    packetReceived(now, isAudio: true, &output)
    let packet = Span<UInt8>(_unsafeBytes: UnsafeRawBufferPointer(rebasing: datagram[..<count]))
    guard let header = try? RTPHeader(parsing: packet) else { return }
    let payload = header.payload(of: packet)
    switch received.receive(header, payloadBytes: payload.count, at: now) {
    case .audio? where configuration.codesAudio: played.insert(header, payload: payload, at: now)
    case .audio?: output.frames.append(.init(header: header, payload: payload.withUnsafeBufferPointer { Array($0) }))
    case .event?:
      played.skip(header, at: now)
      received.pressed(payload, header.timestamp, at: now)
    case .other?, nil: break
    }
  }

  /// Writes the next 20 ms in the configured band, for the loudspeaker. Silence before audio may run. No allocation.
  public mutating func play(into samples: inout MutableSpan<Int16>, at now: Instant) {
    for index in 0..<samples.count { samples[index] = 0 }
    guard activation.isActive, sent.isAgreed, samples.count == configuration.band.samplesPerTick else { return }
    played.play(into: &samples, at: now)
  }

  /// Sends 20 ms in the configured band, from the microphone; nothing before audio may run, silence while muted. A pause is not
  /// encoded: earlier packets of it are sent again. No allocation.
  public mutating func send(captured samples: Span<Int16>, into output: inout Output) {
    guard activation.isActive, sent.isAgreed, samples.count == configuration.band.samplesPerTick else { return }
    let pair = keys.isInstalled ? agent.nominatedPair : nil
    let skipped = captured.code(samples) { payload in
      guard let pair else { return sent.skip() }
      sent.send(payload, under: &keys) { relays.send($0, from: pair.local, to: pair.remote, into: &output) }
    }
    if skipped > 0 { sent.skip(units: skipped) }
  }

  /// Sends 20 ms of encoded audio in the negotiated codec; nothing before audio may run. For owners that encode audio themselves:
  /// call it every 20 ms.
  public mutating func send(encoded payload: [UInt8], into output: inout Output) {
    guard activation.isActive, !payload.isEmpty, payload.count <= TrunklineAudioCodecs.Limits.opusFrameLength else { return }
    guard keys.isInstalled, let pair = agent.nominatedPair else { return sent.skip() }
    _ = payload.withUnsafeBytes { bytes in
      sent.send(bytes, under: &keys) { relays.send($0, from: pair.local, to: pair.remote, into: &output) }
    }
  }
}
