import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineJitterBuffer
import TrunklineMediaSession
import TrunklineRTP

/// The whole receive path on made networks: its output is never louder than its input.
@Suite struct OutputEnergyTests {
  /// A voice: harmonics of a wandering pitch that swell and pause.
  private static func speech(_ packets: Int, seed: UInt64) -> [Int16] {
    var random = SplitMix64(seed: seed)
    var (samples, phase, pitch) = ([Int16](), 0, 60)
    for index in 0..<packets * 160 {
      if index % 1600 == 0 { pitch = 40 + Int(random.next() % 80) }
      phase = (phase + 1) % pitch
      let envelope = max(0, 3000 - abs(index % 4000 - 1500) * 2)
      let pulse = phase < pitch / 8 ? 4 : phase < pitch / 2 ? 1 : -1
      samples.append(Int16(truncatingIfNeeded: pulse * envelope + Int(random.next() % 64)))
    }
    return samples
  }

  private static func energy(_ samples: ArraySlice<Int16>) -> Double {
    samples.reduce(0) { $0 + Double($1) * Double($1) } / Double(max(1, samples.count))
  }

  @Test(arguments: 0..<12 as Range<UInt64>)
  func `no 20 ms of output are louder by 3 dB than the loudest input of the time before`(
    _ seed: UInt64
  ) throws {
    var random = SplitMix64(seed: seed)
    let count = 600
    let source = Self.speech(count, seed: seed)
    let (loss, spread) = (random.next() % 20, random.next() % 150 + 1)
    var stall = 0.0
    let arrivals = (0..<count).compactMap { number -> (at: Double, number: Int)? in
      if random.next() % 200 == 0 { stall = Double(number * 20) + Double(random.next() % 2000) }
      guard random.next() % 100 >= loss else { return nil }
      return (max(stall, Double(number * 20) + Double(random.next() % spread)), number)
    }.sorted { ($0.at, $0.number) < ($1.at, $1.number) }
    var receiver = try AudioReceiver(encoding: .pcmu)
    var encoder = try AudioEncoder(encoding: .pcmu)
    var payloads: [[UInt8]] = []
    for number in 0..<count {
      var payload = [UInt8](repeating: 0, count: 160)
      var room = payload.mutableSpan
      _ = try encoder.encode(source.span.extracting(number * 160..<number * 160 + 160), into: &room)
      payloads.append(payload)
    }
    let loudness = (0..<count).map { Self.energy(source[$0 * 160..<$0 * 160 + 160]) }
    var (next, newest, output) = (0, 0, [Int16](repeating: 0, count: 160))
    for tick in 0..<count + 50 {
      let now = Double(tick * 20 + 7)
      while next < arrivals.count, arrivals[next].at <= now {
        let (at, number) = arrivals[next]
        let header = RTPHeader(
          payloadType: 0, marker: false, sequence: SequenceNumber(raw: UInt16(truncatingIfNeeded: number)),
          timestamp: RTPTimestamp(raw: UInt32(number * 160)), ssrc: SSRC(raw: 1))
        let payload = payloads[number]
        _ = receiver.insert(header, payload: payload.span, at: Instant(nanoseconds: Int64(at * 1e6)))
        newest = max(newest, number)
        next += 1
      }
      var span = output.mutableSpan
      _ = receiver.pull(into: &span, at: Instant(nanoseconds: Int64(now * 1e6)))
      // What is heard now was said at most a second before the newest packet.
      let loudest = loudness[max(0, newest - 60)...newest].max() ?? 0
      #expect(Self.energy(output[...]) <= 2 * loudest + 2000, "tick \(tick)")
    }
    let counted = receiver.statistics
    #expect(counted.fetched + counted.late + counted.duplicate + counted.overflowed <= counted.inserted)
    #expect(counted.fetched > 300)
  }
}
