import AudioCodecs
import BenchKit
import Bytes
import Glibc
import MediaSession
import RTP

/// What one kind of damage did to all seeds of a pattern.
struct Outcome {
  /// dB of the worst window above the loudest of the source in 200 ms.
  var worst = -100.0
  /// Places with more than 3 dB.
  var bursts = 0
  var hit = 0
  var windows = 0
  var damaged: UInt64 = 0
  var limited: UInt64 = 0
  /// The lowest share of ticks with audio.
  var heard = 1.0
  var places: [String] = []
  /// Where good speech was brought down.
  var clippings: [Clipping] = []

  mutating func add(_ other: Outcome) {
    worst = max(worst, other.worst)
    bursts += other.bursts
    hit += other.hit
    windows += other.windows
    damaged += other.damaged
    limited += other.limited
    heard = min(heard, other.heard)
    places += other.places
    clippings += other.clippings
  }
}

/// Mean square and highest sample of each 20 ms, every 5 ms.
struct Levels {
  var powers: [Double] = []
  var peaks: [Double] = []

  init(_ samples: [Int16]) {
    var quarters: [(power: Double, peak: Double)] = []
    for start in stride(from: 0, to: samples.count - 39, by: 40) {
      var (energy, peak): (Int64, Int32) = (0, 0)
      for index in start..<start + 40 {
        energy += Int64(Int32(samples[index]) * Int32(samples[index]))
        peak = max(peak, abs(Int32(samples[index])))
      }
      quarters.append((Double(energy), Double(peak)))
    }
    for first in 0..<max(0, quarters.count - 3) {
      let window = quarters[first..<first + 4]
      powers.append(window.reduce(0) { $0 + $1.power } / 160)
      peaks.append(window.reduce(0) { max($0, $1.peak) })
    }
  }

  /// Of the window and the `past` before it.
  func loudest(before index: Int, _ past: Int) -> (power: Double, peak: Double) {
    // −55 dBov: what is not louder startles nobody, whatever was before.
    var (power, peak) = (3.4e3, 183.0)
    for before in max(0, index - past)...max(0, min(powers.count - 1, index)) {
      power = max(power, powers[before])
      peak = max(peak, peaks[before])
    }
    return (power, peak)
  }
}

/// Good speech that was brought down, in a row.
struct Clipping {
  let tick: Int
  let milliseconds: Int
  /// dB at the worst 5 ms.
  let depth: Double
}

struct Probe {
  /// A number of its own, for rows.
  let talker: Int
  let encoding: AudioEncoding
  let packets: [[UInt8]]
  /// The same speech by another codec.
  let others: [[UInt8]]
  let source: Levels

  init(_ talker: Talker, _ speech: [Int16], _ setting: EncoderSetting) throws {
    self.talker = Talker.allCases.firstIndex(of: talker) ?? 0
    encoding = talker.encoding
    packets = try talker.packets(speech, setting)
    others = try (talker.encoding == .opus ? Talker.pcmu : .opus).packets(speech)
    source = Levels(speech)
  }

  /// What was recorded is held against what it decodes to.
  init(_ recording: Recording) throws {
    talker = Talker.allCases.count
    (encoding, packets) = (recording.encoding, recording.packets)
    let speech = try Self.decoded(packets, encoding)
    let ticks = try (encoding == .opus ? Talker.pcmu : .opus).packets(speech)
    others = packets.indices.map { ticks[min($0, ticks.count - 1)] }
    source = Levels(speech)
  }

  /// - Parameter rows: takes what was judged.
  func run(_ damage: Damage, _ pattern: Pattern, seed: UInt64, rows: RowFile? = nil) throws -> Outcome {
    var random = SplitMix64(seed: seed)
    var receiver = try AudioReceiver(encoding: encoding)
    let units = Int(encoding.clockRateHz) / 50
    var (shift, left, silent): (UInt32, Int, Int) = (0, 0, 0)
    var outcome = Outcome()
    var heard: [Int16] = []
    var out = [Int16](repeating: 0, count: 160)
    var hits: [Int] = []
    var (next, timestamp, tick) = (0, 0, 0)
    while next < packets.count || timestamp > tick * units {
      let now = Instant.zero + .milliseconds(tick * 20)
      while next < packets.count, timestamp <= tick * units {
        var payload = packets[next]
        let duration = AudioDecoder.duration(payload.span, encoding: encoding) ?? units
        if pattern.hits(tick, &random, &left) {
          payload = damage.apply(payload, other: others[next], earlier: packets[max(0, next - 3)], &random)
          if damage == .timestamps || damage == .everything {
            shift = [shift, UInt32(truncatingIfNeeded: random.next()), shift &- 4800, shift &+ 9600][Int(random.next() % 4)]
          }
          hits.append(tick)
        }
        let header = RTPHeader(
          payloadType: 0, marker: false, sequence: SequenceNumber(raw: UInt16(truncatingIfNeeded: next)),
          timestamp: RTPTimestamp(raw: UInt32(truncatingIfNeeded: timestamp) &+ shift), ssrc: SSRC(raw: 1))
        _ = receiver.insert(header, payload: payload.span, at: now)
        (next, timestamp) = (next + 1, timestamp + duration)
      }
      var span = out.mutableSpan
      if receiver.pull(into: &span, at: now + .milliseconds(5)) == .silent { silent += 1 }
      heard += out
      if let rows, let rise = receiver.takeJudgedRise() {
        let loudest = source.loudest(before: tick * 4, 56)
        rows.write(rise, talker, ticksSinceHit: hits.last.map { tick - $0 } ?? .max, loudest)
      }
      tick += 1
    }
    outcome.hit = hits.count
    outcome.windows = tick
    outcome.damaged = receiver.statistics.damaged
    outcome.limited = receiver.statistics.limited
    outcome.heard = 1 - Double(silent) / Double(tick)
    if pattern == .never { outcome.clippings = try clippings(heard) }
    judge(Levels(heard), past: 40 + (damage.moves ? 240 : 16), hits, seed, &outcome)
    return outcome
  }

  /// What was heard of good packets beside what the decoder alone makes of them.
  private func clippings(_ heard: [Int16]) throws -> [Clipping] {
    let wanted = try Self.decoded(packets, encoding)
    var (result, begin, depth) = ([Clipping](), -1, 0.0)
    for start in stride(from: 0, through: min(wanted.count, heard.count) - 40, by: 40) {
      func power(_ samples: [Int16]) -> Double { samples[start..<start + 40].reduce(1e3) { $0 + Double($1) * Double($1) / 40 } }
      let loss = 10 * log10(power(wanted) / power(heard))
      if loss > 0.5 {
        (begin, depth) = (begin < 0 ? start : begin, max(depth, loss))
      } else if begin >= 0 {
        result.append(Clipping(tick: begin / 160, milliseconds: (start - begin) / 8, depth: depth))
        (begin, depth) = (-1, 0)
      }
    }
    return result
  }

  private static func decoded(_ packets: [[UInt8]], _ encoding: AudioEncoding) throws -> [Int16] {
    var decoder = try AudioDecoder(encoding: encoding)
    var (samples, room) = ([Int16](), [Int16](repeating: 0, count: 960))
    for packet in packets {
      var span = room.mutableSpan
      let count = decoder.decode(packet.span, into: &span)
      samples += room.prefix(count)
    }
    return samples
  }

  /// - Parameter past: how many windows of 5 ms the source is asked for: 200 ms, and what the jitter buffer may add.
  private func judge(_ heard: Levels, past: Int, _ hits: [Int], _ seed: UInt64, _ outcome: inout Outcome) {
    var last = -100
    for index in heard.powers.indices {
      let (power, peak) = source.loudest(before: index, past)
      let ratio = max(heard.powers[index] / power, heard.peaks[index] * heard.peaks[index] / (peak * peak))
      let above = 10 * log10(max(1e-9, ratio))
      outcome.worst = max(outcome.worst, above)
      guard above > 3 else { continue }
      if index - last > 8 {
        outcome.bursts += 1
        outcome.places.append(
          "seed \(seed), tick \(index / 4): \(format(above)) dB, root mean square \(format(heard.powers[index].squareRoot())) of "
            + "\(format(power.squareRoot())), peak \(heard.peaks[index]) of \(peak), hit \(hits.filter { abs($0 - index / 4) < 6 })"
        )
      }
      last = index
    }
  }
}

func format(_ value: Double) -> String { "\((value * 10).rounded() / 10)" }
