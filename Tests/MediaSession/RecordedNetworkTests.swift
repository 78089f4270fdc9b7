import Foundation
import SpeechScore
import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineJitterBuffer
import TrunklineMediaSession
import TrunklineRTP

/// Networks from Tests/Vectors/jitter through the whole receive path. The bounds are a little above what it reaches;
/// `Scripts/bench --trace` shows the numbers.
@Suite struct RecordedNetworkTests {
  struct Outcome {
    /// Came, but were not played, of all packets.
    var latePercent: Double
    /// Made up, of all that was played.
    var concealedPercent: Double
    /// Behind the fastest packet of the trace.
    var meanDelayMilliseconds: Double
  }

  static func packets(_ name: String) throws -> [(sent: Double, arrived: Double?)] {
    let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().appending(
      path: "Vectors/jitter/\(name)")
    return try String(contentsOf: file, encoding: .utf8).split(whereSeparator: \.isNewline).dropFirst().map { line in
      let fields = line.split(separator: ",")
      return (try #require(Double(fields[0])), Double(fields[1]))
    }
  }

  static func replay(_ name: String, phase: Double) throws -> Outcome {
    let packets = try packets(name)
    let arrivals = packets.enumerated().compactMap { number, packet in packet.arrived.map { (at: $0, number: number) } }
      .sorted { ($0.at, $0.number) < ($1.at, $1.number) }
    let fastest = try #require(packets.compactMap { packet in packet.arrived.map { $0 - packet.sent } }.min())
    let speech = DemoSpeech.telephone
    var receiver = try AudioReceiver(encoding: .pcmu)
    var samples = [Int16](repeating: 0, count: 160)
    var (next, ticks, delay) = (0, 0, 0.0)
    var now = (arrivals.first?.at ?? 0) + phase
    while now < packets[packets.count - 1].sent + fastest {
      while next < arrivals.count, arrivals[next].at <= now {
        let number = arrivals[next].number
        let header = RTPHeader(
          payloadType: 0, marker: false, sequence: SequenceNumber(raw: UInt16(truncatingIfNeeded: number)),
          timestamp: RTPTimestamp(raw: UInt32(number * 160)), ssrc: SSRC(raw: 1))
        let start = number * 160 % (speech.count - 160)
        let payload = Array(speech[start..<start + 160])
        _ = receiver.insert(header, payload: payload.span, at: Instant(nanoseconds: Int64(arrivals[next].at * 1e6)))
        next += 1
      }
      var span = samples.mutableSpan
      _ = receiver.pull(into: &span, at: Instant(nanoseconds: Int64(now * 1e6)))
      delay += now - (Double(Int32(bitPattern: receiver.nextTimestamp.raw)) / 8 - 20) - fastest
      now += 20
      ticks += 1
    }
    let statistics = receiver.statistics
    return Outcome(
      latePercent: 100 * Double(statistics.late + statistics.overflowed) / Double(packets.count),
      concealedPercent: 100 * Double(statistics.concealedSamples) / Double(160 * ticks),
      meanDelayMilliseconds: delay / Double(ticks))
  }

  @Test(arguments: [2.0, 7, 12])
  func `3 % loss with jitter and reordering costs little more than the loss`(_ phase: Double) throws {
    let outcome = try Self.replay("syn-loss03-burst1.csv", phase: phase)
    #expect(outcome.latePercent < 0.6 && outcome.concealedPercent < 4 && outcome.meanDelayMilliseconds < 60, "\(outcome)")
  }

  @Test(arguments: [2.0, 7, 12])
  func `a 5G drive is played with hardly any loss`(_ phase: Double) throws {
    let outcome = try Self.replay("5g-urban_n8_v40_run03.csv", phase: phase)
    #expect(outcome.latePercent < 1.2 && outcome.concealedPercent < 1.5 && outcome.meanDelayMilliseconds < 48, "\(outcome)")
  }

  @Test(arguments: [2.0, 7, 12])
  func `steps of the route are followed, not averaged`(_ phase: Double) throws {
    let outcome = try Self.replay("syn-delay-steps-180ms.csv", phase: phase)
    // Half of the time packets themselves are 180 ms late.
    #expect(outcome.latePercent < 0.8 && outcome.concealedPercent < 2 && outcome.meanDelayMilliseconds < 155, "\(outcome)")
  }
}
