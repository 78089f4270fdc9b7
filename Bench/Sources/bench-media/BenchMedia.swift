import BenchKit
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineJitterBuffer
import TrunklineMediaSession
import TrunklineRTP

/// `bench-media`: CPU time, instructions and allocations per packet of the parts a media thread runs. Status 1 if one allocates.
@main struct BenchMedia {
  nonisolated static func main() {
    Bench.main("media", about: "the parts of a media session and a whole call without sockets, beside bare libopus.") { bench in
      try headerRow(bench)
      try codecRows(bench)
      for encoding in [AudioEncoding.pcmu, .opus] {
        try receiverRow(bench, "receive path \(encoding.name), clean", encoding, .clean)
        try receiverRow(bench, "receive path \(encoding.name), 3 % loss, jitter", encoding, .lossy)
      }
      for encoding in [AudioEncoding.g722, .opus] {
        try receiverRow(bench, "receive path \(encoding.name), wideband, clean", encoding, .clean, .wideband)
        try receiverRow(bench, "receive path \(encoding.name), wideband, 3 % loss, jitter", encoding, .lossy, .wideband)
      }
      try CallRows.add(to: bench)
      try GroupRows.add(to: bench)
    }
  }

  static func header(_ sequence: Int, unitsPerPacket: Int) -> RTPHeader {
    RTPHeader(
      payloadType: 0, marker: false, sequence: SequenceNumber(raw: UInt16(truncatingIfNeeded: sequence)),
      timestamp: RTPTimestamp(raw: UInt32(truncatingIfNeeded: sequence &* unitsPerPacket)), ssrc: SSRC(raw: 7))
  }

  static func headerRow(_ bench: Bench) throws {
    let work = BenchWork("ours") { loop in
      var packet = [UInt8](repeating: 0, count: 172)
      loop.run { index in
        var span = packet.mutableSpan
        _ = header(index, unitsPerPacket: 160).write(into: &span)
        guard let read = try? RTPHeader(parsing: packet.span) else { return 0 }
        return UInt64(read.sequence.raw) &+ UInt64(read.payloadLength)
      }
    }
    try bench.compare("RTP header, write and read", operations: 200_000, ours: work)
  }

  static func codecRows(_ bench: Bench) throws {
    let ticks = Speech.ticks()
    let mu = try Speech.packets(.pcmu, count: ticks.count)
    let opus = try Speech.packets(.opus, count: ticks.count)
    for law in [G711.Law.mu, .a] {
      let letter = law == .mu ? "µ" : "A"
      let decode = BenchWork("ours") { loop in
        var samples = [Int16](repeating: 0, count: 960)
        loop.run { index in
          var span = samples.mutableSpan
          let payload = mu[index % mu.count]
          return UInt64(G711.decode(payload.span, law: law, into: &span)) &+ UInt64(bitPattern: Int64(samples[80]))
        }
      }
      try bench.compare("G.711 \(letter)-law decode, 160", operations: 100_000, ours: decode)
      let encode = BenchWork("ours") { loop in
        var octets = [UInt8](repeating: 0, count: 1275)
        loop.run { index in
          var span = octets.mutableSpan
          let tick = ticks[index % ticks.count]
          return UInt64(G711.encode(tick.span, law: law, into: &span)) &+ UInt64(octets[80])
        }
      }
      try bench.compare("G.711 \(letter)-law encode, 160", operations: 100_000, ours: encode)
    }
    let encode = BenchWork("ours") { loop in
      var encoder = try OpusEncoder(expectedLossPercent: 10)
      var octets = [UInt8](repeating: 0, count: 1275)
      loop.run { index in
        var span = octets.mutableSpan
        let tick = ticks[index % ticks.count]
        return UInt64((try? encoder.encode(tick.span, into: &span)) ?? 0)
      }
    }
    try bench.compare("Opus encode, 8 kHz, complexity 5, FEC", operations: 500, ours: encode)
    let decode = BenchWork("ours") { loop in
      var decoder = try OpusDecoder()
      var samples = [Int16](repeating: 0, count: 960)
      loop.run { index in
        var span = samples.mutableSpan
        let packet = opus[index % opus.count]
        return UInt64((try? decoder.decode(packet.span, into: &span)) ?? 0)
      }
    }
    try bench.compare("Opus decode, 8 kHz", operations: 3000, ours: decode)
  }

  enum Network { case clean, lossy }

  /// One packet in (or lost) and one tick out per operation; packets come up to 15 ms late on the lossy network, some out of order.
  static func receiverRow(
    _ bench: Bench, _ name: String, _ encoding: AudioEncoding, _ network: Network, _ band: AudioBand = .narrowband
  ) throws {
    let packets = try Speech.packets(encoding, band, count: 400)
    let units = Int(encoding.clockRateHz) / 50
    let work = BenchWork("ours") { loop in
      var receiver = try AudioReceiver(encoding: encoding, band: band)
      var random = SplitMix64(seed: 3)
      var output = [Int16](repeating: 0, count: band.samplesPerTick)
      loop.run { number in
        // One packet and its successor are swapped now and then.
        let late = network == .lossy && random.next() % 50 == 0
        let sequence = late ? number + 1 : number
        if network == .clean || random.next() % 100 >= 3 {
          let jitter = network == .clean ? 0 : Int64(random.next() % 15) * 1_000_000
          let now = Instant(nanoseconds: Int64(number) * 20_000_000 + jitter)
          let payload = packets[sequence % packets.count]
          _ = receiver.insert(header(sequence, unitsPerPacket: units), payload: payload.span, at: now)
        }
        var span = output.mutableSpan
        let result = receiver.pull(into: &span, at: Instant(nanoseconds: Int64(number) * 20_000_000 + 16_000_000))
        return UInt64(result.rawValue) &+ UInt64(bitPattern: Int64(output[80]))
      }
    }
    try bench.compare(name, operations: encoding == .opus ? 2000 : 20_000, ours: work)
  }
}
