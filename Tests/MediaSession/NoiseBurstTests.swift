import AudioCodecs
import Bytes
import DemoSpeech
import MediaSession
import RTP
import Testing

/// Whatever comes as payload, nobody's ear is hurt: no 20 ms of what is played are more than 3 dB louder than the loudest of
/// the source in the 200 ms before, in mean square or highest sample.
@Suite struct NoiseBurstTests {
  enum Damage: String, CaseIterable {
    case randomPayload, randomLength, text, constant, otherCodec, empty, timestamps, everything
    // Most of the packet is good: what is wrong cannot be told in all cases.
    case turnedBits, cut, tail

    static let hopeless: [Damage] = [.turnedBits, .cut, .tail]
  }
  /// Which packets are hit: one here and there, many, every second for a while, or some in a row.
  enum Pattern: CaseIterable { case single, many, alternating, runs }

  /// Mean square and highest sample of each 20 ms, every 5 ms.
  static func windowLevels(_ samples: [Int16]) -> [(power: Double, peak: Double)] {
    var quarters: [(power: Double, peak: Double)] = []
    for start in stride(from: 0, to: samples.count - 39, by: 40) {
      var (power, peak) = (0.0, 0.0)
      for index in start..<start + 40 {
        let value = Double(samples[index])
        power += value * value
        peak = max(peak, abs(value))
      }
      quarters.append((power, peak))
    }
    return (0..<max(0, quarters.count - 3)).map { first in
      let window = quarters[first..<first + 4]
      return (window.reduce(0) { $0 + $1.power } / 160, window.reduce(0) { max($0, $1.peak) })
    }
  }

  /// - Parameter other: the same audio by another codec: the payload type changed and the header does not say so.
  static func damaged(_ payload: [UInt8], _ damage: Damage, other: [UInt8], _ random: inout SplitMix64) -> [UInt8] {
    func octets(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) } }
    switch damage {
    case .randomPayload: return octets(payload.count)
    case .randomLength: return octets(Int(random.next() % 1400))
    case .text: return payload.map { _ in UInt8(32 + random.next() % 95) }
    case .constant: return payload.map { [octet = UInt8(truncatingIfNeeded: random.next())] _ in octet }
    case .otherCodec: return other
    case .empty: return []
    case .timestamps: return payload
    case .turnedBits:
      var copy = payload
      for _ in 0..<1 + random.next() % 12 { copy[Int(random.next() % UInt64(copy.count))] ^= 1 << UInt8(random.next() % 8) }
      return copy
    case .cut: return Array(payload.prefix(1 + Int(random.next() % UInt64(payload.count))))
    case .tail: return payload.prefix(payload.count / 2) + octets(payload.count - payload.count / 2)
    case .everything:
      let all: [Damage] = [.randomPayload, .randomLength, .text, .constant, .empty]
      return damaged(payload, all[Int(random.next() % 5)], other: other, &random)
    }
  }

  static func isHit(_ pattern: Pattern, _ left: inout Int, _ random: inout SplitMix64) -> Bool {
    let draw = Int(random.next() % 40)
    switch pattern {
    case .single: return draw == 0
    case .many: return draw < 5
    case .alternating, .runs:
      if left == 0, draw == 0 { left = 20 }
      left = max(0, left - 1)
      return left > 0 && (pattern == .runs || left % 2 == 0)
    }
  }

  private static func payload(_ encoder: inout AudioEncoder, _ samples: [Int16]) throws -> [UInt8] {
    var payload = [UInt8](repeating: 0, count: 1275)
    var room = payload.mutableSpan
    payload.removeLast(1275 - (try encoder.encode(samples.span, into: &room)))
    return payload
  }

  /// How far the worst window is above the rule's bound less 3 dB, in dB, the share of ticks that played audio, how many packets were
  /// hit, and how many places were above the bound.
  static func worst(_ encoding: Encoding, _ damage: Damage, _ pattern: Pattern, seed: UInt64) throws -> (
    excess: Double, place: Int, heard: Double, hit: Int, bursts: Int
  ) {
    let octets = DemoSpeech.telephone
    var speech = [Int16](repeating: 0, count: octets.count)
    var span = speech.mutableSpan
    _ = G711.decode(octets.span, law: .mu, into: &span)
    var random = SplitMix64(seed: seed)
    let simulation = try ReceiverSimulation(encoding)
    var other = try AudioEncoder(encoding: encoding == .opus ? .pcmu : .opus)
    let units = Int(encoding.clockRateHz) / 50
    var (shift, left): (UInt32, Int) = (0, 0)
    let ticks = speech.count / 160
    var hit = 0
    for tick in 0..<ticks {
      let samples = Array(speech[tick * 160..<(tick + 1) * 160])
      var payload = try payload(&simulation.encoder, samples)
      let foreign = try Self.payload(&other, samples)
      let isDamaged = tick > 10 && isHit(pattern, &left, &random)
      if isDamaged { hit += 1 }
      if isDamaged { payload = damaged(payload, damage, other: foreign, &random) }
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
    var (excess, place, bursts, last) = (-100.0, 0, 0, -100)
    // 200 ms, and what the jitter buffer adds: what makes the line later makes what is heard later.
    let past = 40 + ([.timestamps, .everything, .randomLength, .cut].contains(damage) ? 240 : 16)
    for index in heard.indices {
      var (power, peak) = (1.1e4, 330.0)  // −50 dBov
      for before in max(0, index - past)...min(source.count - 1, index) {
        power = max(power, source[before].power)
        peak = max(peak, source[before].peak)
      }
      guard heard[index].power > power || heard[index].peak > peak else { continue }
      let above = max(
        LevelMeter.decibels(heard[index].power / power / 1e9), 2 * LevelMeter.decibels(heard[index].peak / peak / 1e9) + 90)
      if above + 90 > excess { (excess, place) = (above + 90, index) }
      guard above + 90 > 3 else { continue }
      if index - last > 8 { bursts += 1 }
      last = index
    }
    return (excess, place, 1 - simulation.share(of: .silent), hit, bursts)
  }

  @Test(arguments: Encoding.allCases, Damage.hopeless)
  func `turned bits, cut packets and wrong tails are hardly ever a burst`(_ encoding: Encoding, _ damage: Damage) throws {
    var (bursts, hit, excess) = (0, 0, 0.0)
    for (index, pattern) in Pattern.allCases.enumerated() {
      let worst = try Self.worst(encoding, damage, pattern, seed: UInt64(index) + 11)
      (bursts, hit, excess) = (bursts + worst.bursts, hit + worst.hit, max(excess, worst.excess))
      #expect(worst.heard > 0.5, "\(encoding) \(damage) \(pattern)")
    }
    // A bit of G.722 moves all that follows it, and what it makes sounds like a voice: to hold it back would hold voices back (0232).
    let share = encoding == .g722 ? 6 : 100
    #expect(hit > 150 && share * bursts <= hit && excess < 12, "\(encoding) \(damage): \(bursts) of \(hit), \(excess) dB")
  }

  @Test(arguments: Encoding.allCases, Damage.allCases.filter { !Damage.hopeless.contains($0) })
  func `no payload is a burst`(_ encoding: Encoding, _ damage: Damage) throws {
    for (index, pattern) in Pattern.allCases.enumerated() {
      let seed = UInt64(index) + 1
      let worst = try Self.worst(encoding, damage, pattern, seed: seed)
      #expect(worst.excess <= 3, "\(encoding) \(damage) \(pattern) seed \(seed), 5 ms number \(worst.place)")
      #expect(worst.heard > 0.5, "\(encoding) \(damage) \(pattern) seed \(seed)")
    }
  }
}
