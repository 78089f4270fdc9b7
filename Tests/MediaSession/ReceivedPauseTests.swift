import AudioCodecs
import Bytes
import MediaSession
import RTP
import Testing

/// A talker's pause is no loss, and sounds like the far end's room.
@Suite struct ReceivedPauseTests {
  func header(_ sequence: Int, _ timestamp: Int) -> RTPHeader {
    RTPHeader(
      payloadType: 0, marker: false, sequence: SequenceNumber(raw: UInt16(sequence)),
      timestamp: RTPTimestamp(raw: UInt32(timestamp)),
      ssrc: SSRC(raw: 1))
  }

  @Test func `comfort noise is played at its level until audio comes, and nothing counts as lost`() throws {
    let simulation = try ReceiverSimulation(.pcmu)
    let payload = [UInt8](repeating: 0x20, count: 160)
    var sequence = 0
    for tick in 0..<200 {
      let now = Instant.zero + .milliseconds(tick * 20)
      if tick < 50 || tick >= 150 {
        _ = simulation.receiver.insert(header(sequence, tick * 160), payload: payload.span, at: now)
        sequence += 1
      } else if tick == 50 || tick == 100 {
        let noise: [UInt8] = [50, 100, 140]
        simulation.receiver.comfortNoise(header(sequence, tick * 160), payload: noise.span, at: now)
        sequence += 1
      }
      simulation.pull(at: now + .milliseconds(5))
    }
    #expect(simulation.statistics.concealedSamples == 0)
    #expect(simulation.statistics.missing == 0)
    #expect(abs(simulation.level(60..<145) + 50) < 1.5)
    #expect(simulation.results[52..<148].allSatisfy { $0 == .noise })
    #expect(simulation.results[153...].allSatisfy { $0 == .played })
  }

  @Test func `an Opus talker who stops sending in a pause has lost nothing`() throws {
    for marks in [true, false] {
      let simulation = try ReceiverSimulation(.opus)
      var sequence = 0
      for tick in 0..<200 {
        let now = Instant.zero + .milliseconds(tick * 20)
        let samples = (0..<160).map { tick < 50 || tick >= 150 ? ReceiverSimulation.voice(tick * 160 + $0) : 0 }
        var payload = [UInt8](repeating: 0, count: 1275)
        var room = payload.mutableSpan
        payload.removeLast(1275 - (try simulation.encoder.encode(samples.span, into: &room)))
        if tick == 50, marks { payload = [payload[0]] }
        if tick < 50 || tick >= 150 || tick == 50 && marks {
          _ = simulation.receiver.insert(header(sequence, tick * 960), payload: payload.span, at: now)
          sequence += 1
        }
        simulation.pull(at: now + .milliseconds(5))
      }
      #expect(simulation.statistics.concealedSamples == 0, "\(marks)")
      #expect(simulation.statistics.missing == 0)
      #expect(simulation.results[155...].allSatisfy { $0 == .played })
    }
  }
}
