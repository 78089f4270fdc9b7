import SpeechScore
import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineMediaSession
import TrunklineRTP

/// G.722's high band is not heard on a telephone, and what encoders make of silence there differs: ours keeps one code, ffmpeg's codes
/// alternate.
@Suite struct HighBandTests {
  @Test func `what is in the high band changes nothing that is heard`() throws {
    let octets = DemoSpeech.telephone
    var speech = [Int16](repeating: 0, count: octets.count)
    var span = speech.mutableSpan
    _ = G711.decode(octets.span, law: .mu, into: &span)
    var random = SplitMix64(seed: 5)
    var encoder = try AudioEncoder(encoding: .g722)
    var ours = try AudioReceiver(encoding: .g722)
    var others = try AudioReceiver(encoding: .g722)
    for tick in 0..<speech.count / 160 {
      var payload = [UInt8](repeating: 0, count: 200)
      var room = payload.mutableSpan
      let samples = Array(speech[tick * 160..<(tick + 1) * 160])
      payload.removeLast(200 - (try encoder.encode(samples.span, into: &room)))
      let other = payload.map { $0 & 0x3f | UInt8(truncatingIfNeeded: random.next()) << 6 }
      let expected = Self.play(payload, tick, &ours)
      let heard = Self.play(other, tick, &others)
      #expect(heard == expected, "tick \(tick)")
    }
    #expect(others.statistics.damaged == 0)
  }

  private static func play(_ payload: [UInt8], _ tick: Int, _ receiver: inout AudioReceiver) -> [Int16] {
    let now = Instant.zero + .milliseconds(tick * 20)
    let header = RTPHeader(
      payloadType: 9, marker: false, sequence: SequenceNumber(raw: UInt16(truncatingIfNeeded: tick)),
      timestamp: RTPTimestamp(raw: UInt32(tick * 160)), ssrc: SSRC(raw: 1))
    _ = receiver.insert(header, payload: payload.span, at: now)
    var samples = [Int16](repeating: 0, count: 160)
    var span = samples.mutableSpan
    _ = receiver.pull(into: &span, at: now + .milliseconds(5))
    return samples
  }
}
