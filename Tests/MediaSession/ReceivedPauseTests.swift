import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineMediaSession
import TrunklineRTP

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

  /// What a sender's clock and numbers do in a pause in which it sends nothing.
  enum Silence: String, CaseIterable {
    case clockGoesOn, clockStandsStill, clockJumps, numbersJump, otherSource
  }

  @Test(arguments: Silence.allCases, [true, false])
  func `a pause in which nothing comes is no delay and no loss`(silence: Silence, isOpus: Bool) throws {
    // words of 1.2 s, and pauses as short as a breath and as long as a hold
    for pause in [12, 20, 50, 150, 1_000] {
      let simulation = isOpus ? try ReceiverSimulation(.opus) : try ReceiverSimulation(.pcmu)
      let units = isOpus ? 960 : 160
      var (sequence, timestamp, source) = (1, 0, 1 as UInt32)
      for tick in 0..<(6 * (60 + pause)) {
        let now = Instant.zero + .milliseconds(tick * 20)
        let position = tick % (60 + pause)
        if position == 0, tick > 0 {
          switch silence {
          case .clockGoesOn: timestamp += pause * units
          case .clockStandsStill: break
          case .clockJumps: timestamp += 1_000_000
          case .numbersJump: (sequence, timestamp) = (sequence + 10_000, timestamp + 1_000_000)
          case .otherSource: (sequence, timestamp, source) = (sequence + 20_000, timestamp / 2, source + 1)
          }
        }
        if position < 60 {
          let samples = (0..<160).map { ReceiverSimulation.voice(tick * 160 + $0) }
          var payload = [UInt8](repeating: 0, count: 1275)
          var room = payload.mutableSpan
          payload.removeLast(1275 - (try simulation.encoder.encode(samples.span, into: &room)))
          let header = RTPHeader(
            payloadType: 0, marker: position == 0, sequence: SequenceNumber(raw: UInt16(truncatingIfNeeded: sequence)),
            timestamp: RTPTimestamp(raw: UInt32(timestamp)), ssrc: SSRC(raw: source))
          _ = simulation.receiver.insert(header, payload: payload.span, at: now)
          (sequence, timestamp) = (sequence + 1, timestamp + units)
        }
        simulation.pull(at: now + .milliseconds(5))
      }
      let counts = simulation.statistics
      #expect(counts.concealedSamples == 0, "\(pause): \(counts.concealedSamples / 8) ms made up")
      #expect(counts.bufferDelayMilliseconds < 40, "\(pause): \(counts.bufferDelayMilliseconds) ms of delay")
      #expect(counts.ticks > 6 * 50, "\(pause): what was played was measured")
    }
  }

  @Test func `a stall is delay, and what was made up in it was late`() throws {
    let simulation = try ReceiverSimulation(.pcmu)
    // 300 ms in which the network keeps all back, and then gives all at once
    try simulation.run(packets: 200) { number in (100..<115).contains(number) ? (115 - number) * 20 : 0 }
    let counts = simulation.statistics
    #expect(counts.concealedSamples >= 8 * 150, "\(counts.concealedSamples / 8) ms")
    #expect(counts.bufferDelayMilliseconds > 5, "\(counts.bufferDelayMilliseconds) ms")
  }

  @Test func `what is made up behind a stream's last packet is no loss`() throws {
    let simulation = try ReceiverSimulation(.pcmu)
    try simulation.run(packets: 300) { $0 < 100 ? 0 : nil }
    #expect(simulation.statistics.concealedSamples == 0)
    #expect(simulation.statistics.bufferDelayMilliseconds < 40)
  }
}
