import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineMediaSession
import TrunklineRTP

/// What carriers do to a stream during a call: packets of another length, nothing sent in pauses, and a new marker, source or
/// timestamp where a word begins.
@Suite struct CarrierHabitTests {
  private struct Packet {
    var at: Int
    var sequence: Int
    var timestamp: Int
    var ssrc: UInt32 = 1
    var marker = false
    var samples: Range<Int>
  }

  private static let voice = (0..<16_000).map { ReceiverSimulation.voice($0) &+ Int16($0 * 7919 % 251) }
  private static func octets(_ samples: Range<Int>) -> [UInt8] {
    let part = samples.map { voice[$0 % voice.count] }
    var octets = [UInt8](repeating: 0, count: part.count)
    var span = octets.mutableSpan
    _ = G711.encode(part.span, law: .mu, into: &span)
    return octets
  }

  /// The samples that a plain decoder returns.
  private static func decoded(_ range: Range<Int>) -> [Int16] {
    let octets = octets(range)
    var samples = [Int16](repeating: 0, count: octets.count)
    var span = samples.mutableSpan
    _ = G711.decode(octets.span, law: .mu, into: &span)
    return samples
  }

  private func play(_ packets: [Packet], ticks: Int) throws -> ReceiverSimulation {
    let simulation = try ReceiverSimulation(.pcmu)
    var next = 0
    for tick in 0..<ticks {
      while next < packets.count, packets[next].at <= tick * 20 {
        let packet = packets[next]
        let header = RTPHeader(
          payloadType: 0, marker: packet.marker, sequence: SequenceNumber(raw: UInt16(truncatingIfNeeded: packet.sequence)),
          timestamp: RTPTimestamp(raw: UInt32(truncatingIfNeeded: packet.timestamp)), ssrc: SSRC(raw: packet.ssrc))
        let payload = Self.octets(packet.samples)
        _ = simulation.receiver.insert(header, payload: payload.span, at: .zero + .milliseconds(packet.at))
        next += 1
      }
      simulation.pull(at: .zero + .milliseconds(tick * 20 + 5))
    }
    return simulation
  }

  /// Made-up audio is joined to the audio after it over this many samples.
  private static let join = 80

  /// Whether `samples` are heard as they were sent, from at most 80 ms after `time` on.
  private func hears(_ simulation: ReceiverSimulation, _ samples: Range<Int>, from time: Int) -> Bool {
    let said = Self.decoded(samples)
    let first = time / 20 * 160
    return (first..<first + 640).contains { start in
      start + said.count <= simulation.heard.count && simulation.heard[start..<start + said.count].elementsEqual(said)
    }
  }

  @Test func `packets of 20, 40, 10, then 60 ms are all played, and only the longer wait for the first is made up`() throws {
    var (packets, time) = ([Packet](), 0)
    let lengths = [20, 40, 10, 60]
    for length in lengths {
      for _ in 0..<2400 / length {
        packets.append(
          Packet(
            at: time + length, sequence: 65_500 + packets.count, timestamp: time * 8 - 10_000,
            samples: time * 8..<(time + length) * 8))
        time += length
      }
    }
    let simulation = try play(packets, ticks: time / 20)
    #expect(simulation.statistics.late == 0 && simulation.statistics.missing == 0 && simulation.statistics.overflowed == 0)
    #expect(simulation.statistics.resynchronised == 0)
    #expect(simulation.statistics.fetched >= UInt64(packets.count - 2))
    // 20 ms more at the first packet of 40, 50 at that of 60.
    #expect(simulation.statistics.concealedMilliseconds <= 20 + 60)
    for index in lengths.indices {
      // The second half of each length, said and heard in one piece.
      let begin = index * 2400 + 1200
      #expect(hears(simulation, begin * 8..<(begin + 900) * 8, from: begin + 20), "\(lengths[index]) ms")
    }
  }

  enum Habit: CaseIterable { case marksBeginnings, marksNothing, marksAll, newSource, newSourceWithoutMarker }

  @Test(arguments: Habit.allCases, [200, 1000, 5000])
  func `a pause in which the carrier sends nothing is no concealment, and the first word after it is heard whole`(
    _ habit: Habit, _ pause: Int
  ) throws {
    let isNew = habit == .newSource || habit == .newSourceWithoutMarker
    var (packets, spurts, time) = ([Packet](), [Int](), 0)
    for spurt in 0..<6 {
      spurts.append(time)
      for number in 0..<40 {
        let marker = habit == .marksAll || (number == 0 && (habit == .marksBeginnings || habit == .newSource))
        packets.append(
          Packet(
            at: time, sequence: isNew ? spurt * 12_345 + number : packets.count,
            timestamp: isNew ? spurt * 987_654_321 + number * 160 : time * 8, ssrc: isNew ? UInt32(spurt + 1) : 1, marker: marker,
            samples: time * 8..<time * 8 + 160))
        time += 20
      }
      time += pause
    }
    let simulation = try play(packets, ticks: (time - pause) / 20)
    for begin in spurts {
      #expect(hears(simulation, begin * 8 + Self.join..<(begin + 400) * 8, from: begin), "at \(begin) ms")
    }
    #expect(simulation.statistics.concealedSamples == 0)
    #expect(simulation.statistics.missing == 0 && simulation.statistics.late == 0 && simulation.statistics.outOfRange == 0)
  }
}
