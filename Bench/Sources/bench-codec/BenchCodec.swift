import BenchKit
import CTrunklineOpus
import Glibc
import SpeechScore
import TrunklineAudioCodecs
import TrunklineRTP

/// `bench-codec`: encodes, decodes and conceals 20 ms of speech. Opus through our types is compared with the same calls of
/// libopus, which must give the same octets and samples; G.711 and its concealment run alone.
@main struct BenchCodec {
  nonisolated static func main() {
    Bench.main("codec", about: "codecs, level and tone detectors, beside bare libopus.") { bench in
      for rate in [8_000, 16_000, 48_000] {
        let frames = frames(rate)
        for complexity in [0, 5, 8, 10] { try encode(bench, rate, complexity, frames) }
        try decode(bench, rate, frames)
        if rate > 8_000 { try decode(bench, rate, frames, to: .wideband) }
      }
      for band in AudioBand.allCases { try conceal(bench, band) }
      for law in [G711.Law.mu, .a] { try telephone(bench, law) }
      try wideband(bench)
      for band in AudioBand.allCases { try pitch(bench, band) }
      try tones(bench)
    }
  }

  /// The demo's speech in 20 ms frames at `rate`, by linear interpolation between its samples.
  private static func frames(_ rate: Int) -> [[Int16]] {
    let (times, source) = (rate / 8_000, Speech.samples())
    var samples: [Int16] = []
    samples.reserveCapacity(source.count * times)
    for (first, second) in zip(source, source.dropFirst()) {
      for step in 0..<times { samples.append(Int16((Int(first) * (times - step) + Int(second) * step) / times)) }
    }
    let length = rate / 50
    return stride(from: 0, to: samples.count - length + 1, by: length).map { Array(samples[$0..<($0 + length)]) }
  }

  private static func encode(_ bench: Bench, _ rate: Int, _ complexity: Int, _ frames: [[Int16]]) throws {
    try bench.compare(
      "Opus encode, \(rate / 1000) kHz, complexity \(complexity), FEC", operations: 200, rounds: 5,
      ours: BenchWork("ours") { loop in
        var encoder = try OpusEncoder(sampleRateHz: rate, complexity: complexity, expectedLossPercent: 10)
        var packet = [UInt8](repeating: 0, count: 1275)
        try loop.run { index in
          var span = packet.mutableSpan
          let frame = frames[index % frames.count]
          let count = try encoder.encode(frame.span, into: &span)
          return digest(packet, count)
        }
      },
      limit: BenchWork("bare libopus") { loop in
        let encoder = try BareEncoder(rate: rate, complexity: complexity)
        let louder = frames.map { BareEncoder.louder($0) }
        var packet = [UInt8](repeating: 0, count: 1275)
        loop.run { index in
          let count = encoder.encode(louder[index % louder.count], &packet)
          return digest(packet, count)
        }
      }, goal: .atMost(1.05, of: .limit), sameResult: true)
  }

  private static func decode(_ bench: Bench, _ rate: Int, _ frames: [[Int16]], to band: AudioBand = .narrowband) throws {
    let own = band.sampleRateHz
    let encoder = try BareEncoder(rate: rate, complexity: 5)
    let packets = frames.map { frame in
      var packet = [UInt8](repeating: 0, count: 1275)
      let count = encoder.encode(frame, &packet)
      return Array(packet[..<count])
    }
    try bench.compare(
      "Opus decode to \(own / 1000) kHz, sent at \(rate / 1000) kHz", operations: 2_000, rounds: 7,
      ours: BenchWork("ours") { loop in
        var decoder = try OpusDecoder(sampleRateHz: own)
        var samples = [Int16](repeating: 0, count: 960)
        try loop.run { index in
          var span = samples.mutableSpan
          let packet = packets[index % packets.count]
          let count = try decoder.decode(packet.span, into: &span)
          return digest(samples, count)
        }
      },
      limit: BenchWork("bare libopus") { loop in
        let decoder = try BareDecoder(rate: own)
        var samples = [Int16](repeating: 0, count: 960)
        loop.run { index in
          let count = decoder.decode(packets[index % packets.count], &samples)
          return digest(samples, count)
        }
      }, goal: .atMost(1.05, of: .limit), sameResult: true)
  }

  /// Every second packet is lost.
  private static func conceal(_ bench: Bench, _ band: AudioBand) throws {
    let (packets, rate, tick) = (try Speech.packets(.opus, band, count: 500), band.sampleRateHz, band.samplesPerTick)
    try bench.compare(
      "Opus decode and conceal in turns, \(rate / 1000) kHz", operations: 2_000, rounds: 7,
      ours: BenchWork("ours") { loop in
        var decoder = try OpusDecoder(sampleRateHz: rate)
        var samples = [Int16](repeating: 0, count: 960)
        try loop.run { index in
          var span = samples.mutableSpan
          let packet = packets[index % packets.count]
          let count = try index % 2 == 0 ? decoder.decode(packet.span, into: &span) : decoder.conceal(tick, into: &span)
          return digest(samples, count)
        }
      },
      limit: BenchWork("bare libopus") { loop in
        let decoder = try BareDecoder(rate: rate)
        var samples = [Int16](repeating: 0, count: 960)
        loop.run { index in
          let count = index % 2 == 0 ? decoder.decode(packets[index % packets.count], &samples) : decoder.conceal(&samples)
          return digest(samples, count)
        }
      }, goal: .atMost(1.05, of: .limit), sameResult: true)
  }

  private static func telephone(_ bench: Bench, _ law: G711.Law) throws {
    let (ticks, letter) = (Speech.ticks(), law == .mu ? "µ" : "A")
    let packets = ticks.map { tick in
      var octets = [UInt8](repeating: 0, count: 160)
      var span = octets.mutableSpan
      _ = G711.encode(tick.span, law: law, into: &span)
      return octets
    }
    try bench.compare(
      "G.711 \(letter)-law encode, 160 samples", operations: 100_000,
      ours: BenchWork("ours") { loop in
        var octets = [UInt8](repeating: 0, count: 160)
        loop.run { index in
          var span = octets.mutableSpan
          let tick = ticks[index % ticks.count]
          return UInt64(G711.encode(tick.span, law: law, into: &span)) &+ UInt64(octets[80])
        }
      })
    try bench.compare(
      "G.711 \(letter)-law decode, 160 samples", operations: 200_000,
      ours: BenchWork("ours") { loop in
        var samples = [Int16](repeating: 0, count: 160)
        loop.run { index in
          var span = samples.mutableSpan
          let packet = packets[index % packets.count]
          return UInt64(G711.decode(packet.span, law: law, into: &span)) &+ UInt64(bitPattern: Int64(samples[80]))
        }
      })
  }

  private static func wideband(_ bench: Bench) throws {
    let ticks = frames(16_000)
    var coder = G722Encoder(sampleRateHz: 16_000)
    let packets = ticks.map { tick in
      var octets = [UInt8](repeating: 0, count: 160)
      var span = octets.mutableSpan
      _ = coder.encode(tick.span, into: &span)
      return octets
    }
    try bench.compare(
      "G.722 encode, 320 samples", operations: 5_000,
      ours: BenchWork("ours") { loop in
        var encoder = G722Encoder(sampleRateHz: 16_000)
        var octets = [UInt8](repeating: 0, count: 160)
        loop.run { index in
          var span = octets.mutableSpan
          let tick = ticks[index % ticks.count]
          return UInt64(encoder.encode(tick.span, into: &span)) &+ UInt64(octets[80])
        }
      })
    try bench.compare(
      "G.722 decode, 320 samples", operations: 5_000,
      ours: BenchWork("ours") { loop in
        var decoder = G722Decoder(sampleRateHz: 16_000)
        var samples = [Int16](repeating: 0, count: 320)
        loop.run { index in
          var span = samples.mutableSpan
          let packet = packets[index % packets.count]
          return UInt64(decoder.decode(packet.span, into: &span)) &+ UInt64(bitPattern: Int64(samples[80]))
        }
      })
  }

  /// The additional cost of each received tick of a trunk without telephone-events.
  private static func tones(_ bench: Bench) throws {
    let digit = (0..<160).map { index in
      // Key 5: 770 and 1336 Hz, which both complete their cycles in 4,000 samples; the first 160 of them are used, repeated.
      Int16(6_000 * sin(2 * Double.pi * 770 * Double(index) / 8_000) + 6_000 * sin(2 * Double.pi * 1_336 * Double(index) / 8_000))
    }
    for (row, ticks) in [
      ("in-band digits heard for in speech, 160 samples", Speech.ticks()), ("in-band digit heard, 160 samples", [digit]),
    ] {
      try bench.compare(
        row, operations: 20_000,
        ours: BenchWork("ours") { loop in
          var detector = ToneDetector()
          loop.run { index in
            let tick = ticks[index % ticks.count]
            return UInt64(detector.hear(tick.span)?.digit ?? 0)
          }
        })
    }
  }

  /// The cost of every received tick, and of a lost one in twenty.
  private static func pitch(_ bench: Bench, _ band: AudioBand) throws {
    let (ticks, tick) = (Speech.ticks(band), band.samplesPerTick)
    let name = band == .wideband ? "G.722" : "G.711"
    for (row, every) in [("\(name) concealment, nothing lost", 0), ("\(name) concealment, every 20th tick lost", 20)] {
      try bench.compare(
        row, operations: 50_000,
        ours: BenchWork("ours") { loop in
          var concealer = PitchConcealer(band: band)
          var samples = [Int16](repeating: 0, count: tick)
          loop.run { index in
            var span = samples.mutableSpan
            if every > 0, index % every == every - 1 {
              concealer.conceal(tick, into: &span)
            } else {
              let received = ticks[index % ticks.count]
              for k in 0..<tick { span[k] = received[k] }
              concealer.received(&span, count: tick)
            }
            return UInt64(bitPattern: Int64(samples[80]))
          }
        })
    }
  }
}

/// A digest of the number of values and some of them.
@inline(__always) private func digest<T: FixedWidthInteger>(_ values: [T], _ count: Int) -> UInt64 {
  guard count > 0, count <= values.count else { return 0 }
  return UInt64(count) << 32 ^ UInt64(truncatingIfNeeded: values[count / 2]) ^ UInt64(truncatingIfNeeded: values[count - 1]) << 16
}
