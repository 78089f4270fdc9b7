import AudioCodecs
import Bytes
import DemoSpeech
import MediaSession
import RTP
import Testing

/// Whatever comes as payload, nobody's ear is hurt: no 20 ms of what is played are more than 3 dB louder than the loudest of
/// the source in the 200 ms before, in mean square or highest sample.
@Suite struct NoiseBurstTests {
  enum Damage: String, CaseIterable { case randomPayload, randomLength, empty, timestamps, everything }

  static func windowLevels(_ samples: [Int16]) -> [(power: Double, peak: Double)] {
    stride(from: 0, to: max(0, samples.count - 159), by: 40).map { start in
      var (power, peak) = (0.0, 0.0)
      for index in start..<start + 160 {
        let value = Double(samples[index])
        power += value * value
        peak = max(peak, abs(value))
      }
      return (power / 160, peak)
    }
  }

  static func damaged(_ payload: [UInt8], _ damage: Damage, _ random: inout SplitMix64) -> [UInt8] {
    func octets(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) } }
    switch damage {
    case .randomPayload: return octets(payload.count)
    case .randomLength: return octets(Int(random.next() % 1400))
    case .empty: return []
    case .timestamps: return payload
    case .everything:
      let all: [Damage] = [.randomPayload, .randomLength, .empty]
      return damaged(payload, all[Int(random.next() % 3)], &random)
    }
  }

  /// How far the worst window is above the rule's bound less 3 dB, in dB, and the share of ticks that played audio.
  static func worst(_ encoding: Encoding, _ damage: Damage, seed: UInt64) throws -> (excess: Double, place: Int, heard: Double) {
    let octets = DemoSpeech.telephone
    var speech = [Int16](repeating: 0, count: octets.count)
    var span = speech.mutableSpan
    _ = G711.decode(octets.span, law: .mu, into: &span)
    var random = SplitMix64(seed: seed)
    let simulation = try ReceiverSimulation(encoding)
    let units = Int(encoding.clockRateHz) / 50
    var shift: UInt32 = 0
    let ticks = speech.count / 160
    for tick in 0..<ticks {
      let samples = Array(speech[tick * 160..<(tick + 1) * 160])
      var payload = [UInt8](repeating: 0, count: 1275)
      var room = payload.mutableSpan
      payload.removeLast(1275 - (try simulation.encoder.encode(samples.span, into: &room)))
      let isDamaged = tick > 10 && random.next() % 8 == 0
      if isDamaged { payload = damaged(payload, damage, &random) }
      if isDamaged, damage == .timestamps || damage == .everything {
        shift = [shift, UInt32(truncatingIfNeeded: random.next()), shift &- 4800, shift &+ 9600][Int(random.next() % 4)]
      }
      let header = RTPHeader(
        payloadType: 0, marker: false, sequence: SequenceNumber(raw: UInt16(truncatingIfNeeded: tick)),
        timestamp: RTPTimestamp(raw: UInt32(tick * units) &+ shift), ssrc: SSRC(raw: 1))
      let now = Instant.zero + .milliseconds(tick * 20)
      _ = simulation.receiver.insert(header, payload: payload.span, at: now)
      simulation.pull(at: now + .milliseconds(5))
    }
    let (source, heard) = (windowLevels(speech), windowLevels(simulation.heard))
    var excess = -100.0
    var place = 0
    for index in heard.indices {
      // 200 ms, and what the jitter buffer adds.
      // What makes the line later makes what is heard later.
      let added = [.timestamps, .everything, .randomLength].contains(damage) ? 240 : 16
      let past = source[max(0, index - 40 - added)...min(source.count - 1, index)]
      let power = max(past.map(\.power).max() ?? 0, 1.1e4)  // −50 dBov
      let peak = max(past.map(\.peak).max() ?? 0, 330)
      let above = max(
        LevelMeter.decibels(heard[index].power / power / 1e9), 2 * LevelMeter.decibels(heard[index].peak / peak / 1e9) + 90)
      if above + 90 > excess { (excess, place) = (above + 90, index) }
    }
    return (excess, place, 1 - simulation.share(of: .silent))
  }

  @Test(arguments: Encoding.allCases, Damage.allCases)
  func `no payload is a burst`(_ encoding: Encoding, _ damage: Damage) throws {
    for seed in 1...2 as ClosedRange<UInt64> {
      let worst = try Self.worst(encoding, damage, seed: seed)
      if encoding == .g722 || (encoding == .opus && damage == .randomLength) {
        withKnownIssue("docs/decisions/0069: bursts in a pause, 13 dB as Opus, 44 dB as G.722", isIntermittent: true) {
          #expect(worst.excess <= 3, "seed \(seed), 5 ms number \(worst.place)")
        }
        continue
      }
      #expect(worst.excess <= 3, "\(encoding) \(damage) seed \(seed), 5 ms number \(worst.place)")
      #expect(worst.heard > 0.5, "\(encoding) \(damage) seed \(seed)")
    }
  }
}
