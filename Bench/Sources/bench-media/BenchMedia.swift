import AudioCodecs
import BenchKit
import Bytes
import Glibc
import JitterBuffer
import MediaSession
import RTP

/// `bench-media [--json]`: CPU time and allocations per packet of the parts a media thread runs. Status 1 if a row that must not
/// allocate does.
@main struct BenchMedia {
  nonisolated static func main() throws {
    var table = Table(json: CommandLine.arguments.contains("--json"))
    table.add(try headerRow())
    for row in try codecRows() { table.add(row) }
    table.add(jitterRow())
    for encoding in [AudioEncoding.pcmu, .opus] {
      table.add(try receiverRow("receive path \(encoding.name), clean", encoding, Network.clean))
      table.add(try receiverRow("receive path \(encoding.name), 3 % loss, jitter", encoding, Network.lossy))
    }
    for row in try SessionBench.rows() { table.add(row) }
    exit(table.finish())
  }

  static func header(_ sequence: Int, unitsPerPacket: Int) -> RTPHeader {
    RTPHeader(
      payloadType: 0, marker: false, sequence: SequenceNumber(raw: UInt16(truncatingIfNeeded: sequence)),
      timestamp: RTPTimestamp(raw: UInt32(truncatingIfNeeded: sequence &* unitsPerPacket)), ssrc: SSRC(raw: 7))
  }

  static func headerRow() throws -> Measurement {
    var packet = [UInt8](repeating: 0, count: 172)
    return Measurement.run("RTP header, write and read", operations: 200_000) { index in
      var span = packet.mutableSpan
      _ = header(index, unitsPerPacket: 160).write(into: &span)
      guard let read = try? RTPHeader(parsing: packet.span) else { return 0 }
      return UInt64(read.sequence.raw) &+ UInt64(read.payloadLength)
    }
  }

  static func codecRows() throws -> [Measurement] {
    let ticks = Speech.ticks()
    let mu = try Speech.packets(.pcmu, count: ticks.count)
    let opus = try Speech.packets(.opus, count: ticks.count)
    var samples = [Int16](repeating: 0, count: 960)
    var octets = [UInt8](repeating: 0, count: 1275)
    var encoder = try OpusEncoder(expectedLossPercent: 10)
    var decoder = try OpusDecoder()
    var rows: [Measurement] = []
    for law in [G711.Law.mu, .a] {
      rows.append(
        Measurement.run("G.711 \(law == .mu ? "µ" : "A")-law decode, 160", operations: 100_000) { index in
          var span = samples.mutableSpan
          let payload = mu[index % mu.count]
          return UInt64(G711.decode(payload.span, law: law, into: &span)) &+ UInt64(bitPattern: Int64(samples[80]))
        })
      rows.append(
        Measurement.run("G.711 \(law == .mu ? "µ" : "A")-law encode, 160", operations: 100_000) { index in
          var span = octets.mutableSpan
          let tick = ticks[index % ticks.count]
          return UInt64(G711.encode(tick.span, law: law, into: &span)) &+ UInt64(octets[80])
        })
    }
    rows.append(
      Measurement.run("Opus encode, 8 kHz, complexity 5, FEC", operations: 1500) { index in
        var span = octets.mutableSpan
        let tick = ticks[index % ticks.count]
        return UInt64((try? encoder.encode(tick.span, into: &span)) ?? 0)
      })
    rows.append(
      Measurement.run("Opus decode, 8 kHz", operations: 5000) { index in
        var span = samples.mutableSpan
        let packet = opus[index % opus.count]
        return UInt64((try? decoder.decode(packet.span, into: &span)) ?? 0)
      })
    return rows
  }

  static func jitterRow() -> Measurement {
    var buffer = PlayoutBuffer(clockRateHz: 8000, carriesRepair: false)
    let payload = [UInt8](repeating: 0x55, count: 160)
    var number = 0
    return Measurement.run("jitter buffer put + decide + get", operations: 200_000) { _ in
      let now = Instant(nanoseconds: Int64(number) * 20_000_000)
      _ = buffer.insert(header(number, unitsPerPacket: 160), payload: payload.span, duration: 160, at: now)
      number += 1
      _ = buffer.adjustment(at: now, pending: 0, tick: 160)
      guard case .packet(let packet) = buffer.fetch(at: now) else { return 0 }
      return UInt64(packet.duration) &+ UInt64(buffer.payload(of: packet)[0])
    }
  }

  enum Network { case clean, lossy }

  /// One packet in (or lost) and one tick out per operation; packets come up to 40 ms late on the lossy network.
  static func receiverRow(_ name: String, _ encoding: AudioEncoding, _ network: Network) throws -> Measurement {
    let packets = try Speech.packets(encoding, count: 400)
    var receiver = try AudioReceiver(encoding: encoding)
    var random = SplitMix64(seed: 3)
    let units = Int(encoding.clockRateHz) / 50
    var number = 0
    var output = [Int16](repeating: 0, count: 160)
    return Measurement.run(name, operations: encoding == .opus ? 4000 : 40_000) { _ in
      // One packet and its successor change places now and then; a 20 ms hiccup follows a 30 ms one.
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
      number += 1
      return UInt64(result.rawValue) &+ UInt64(bitPattern: Int64(output[80]))
    }
  }
}
