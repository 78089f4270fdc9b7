import AudioCodecs
public import Bytes
import ICE
import JitterBuffer
import MediaSession
import RTP
import SDP
import SRTP

extension ClientMedia {
  mutating func receiveAudio(_ bytes: [UInt8], _ now: Instant, _ output: inout Output) {
    var packet = bytes
    var count = packet.count
    let isAuthentic = packet.withUnsafeMutableBytes { buffer -> Bool in
      do throws(SRTPError) { return try receiver?.unprotect(buffer, count: &count) != nil } catch { return false }
    }
    guard isAuthentic, count <= packet.count else {
      statistics.refusedPackets += 1
      return
    }
    packet.removeLast(packet.count - count)
    guard let header = try? RTPHeader(parsing: packet.span), let remote else { return }
    _ = reception.receive(header, at: now)
    let payload = header.payload(of: packet.span)
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

  /// Every 20 ms: sends `captured` (160 samples at 8 kHz) if audio runs, and returns the 160 samples to play.
  /// Once active nothing heard means silence; before that nothing is played or sent.
  public mutating func tick(captured: [Int16], at now: Instant, into output: inout Output) -> [Int16] {
    defer { send(captured: captured, at: now, into: &output) }
    return play(at: now)
  }

  /// The next 160 samples at 8 kHz, at the loudspeaker's pace. Silence before audio may run.
  public mutating func play(at now: Instant) -> [Int16] {
    var played = [Int16](repeating: 0, count: 160)
    guard isActive, remote != nil else { return played }
    var room = played.mutableSpan
    _ = audioReceiver?.pull(into: &room, at: now)
    if let receiver = audioReceiver?.statistics {
      statistics.concealedMilliseconds = receiver.concealedMilliseconds
      statistics.bufferDelayMilliseconds = receiver.bufferDelayMilliseconds
    }
    return played
  }

  /// Sends 160 samples at 8 kHz, at the microphone's pace; nothing before audio may run, silence while muted.
  public mutating func send(captured: [Int16], at now: Instant, into output: inout Output) {
    guard isActive, let remote else { return }
    send(isMuted ? [Int16](repeating: 0, count: 160) : captured, remote, &output)
  }

  private mutating func send(_ captured: [Int16], _ remote: AppMedia, _ output: inout Output) {
    var payload = [UInt8](repeating: 0, count: AudioCodecs.Limits.opusFrameLength)
    var room = payload.mutableSpan
    guard captured.count == 160, let length = try? encoder?.encode(captured.span, into: &room), length > 0 else {
      timestamp &+= UInt32(truncatingIfNeeded: encoder?.units(ofSamples: 160) ?? 160)
      return
    }
    transmit(payload[..<length], remote, &output)
  }

  /// Sends 20 ms of audio that is coded already, in the negotiated codec; nothing before audio may run. For owners that code audio
  /// themselves: call it every 20 ms.
  public mutating func send(encoded payload: [UInt8], into output: inout Output) {
    guard isActive, let remote, !payload.isEmpty, payload.count <= AudioCodecs.Limits.opusFrameLength else { return }
    transmit(payload[...], remote, &output)
  }

  private mutating func transmit(_ payload: ArraySlice<UInt8>, _ remote: AppMedia, _ output: inout Output) {
    defer { timestamp &+= remote.codec.clockRateHz / 50 }
    guard keys != nil, let pair = agent.nominatedPair else { return }
    var packet = [UInt8](repeating: 0, count: 12 + payload.count + 64)
    let header = RTPHeader(
      payloadType: remote.payloadType, marker: ticks == 0, sequence: SequenceNumber(raw: sequence),
      timestamp: RTPTimestamp(raw: timestamp),
      ssrc: SSRC(raw: negotiation.endpoint.ssrc))
    var whole = packet.mutableSpan
    _ = header.write(into: &whole)
    packet.replaceSubrange(12..<12 + payload.count, with: payload)
    var count = 12 + payload.count
    let isProtected = packet.withUnsafeMutableBytes { buffer -> Bool in
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
    packet.removeLast(packet.count - count)
    output.datagrams.append(.init(bytes: packet, local: pair.local, remote: pair.remote))
  }
}
