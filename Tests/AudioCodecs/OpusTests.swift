import Testing
import TrunklineAudioCodecs
import TrunklineBytes

/// A voice-like test signal at 8 kHz: glottal-like periods with some vibrato in syllables of 200 ms with pauses of 100 ms
/// between, so that codecs take it for speech: of every 15 ticks the first ten speak.
func voice(_ count: Int, period: Int = 50, from start: Int = 0, pauses: Bool = true) -> [Int16] {
  (start..<start + count).map { index in
    let phase = Double(index % period) / Double(period)
    let syllable = Double(index % 2400) / 2400
    let strength = syllable < 0.65 || !pauses ? 7000 + 3000 * syllable : 30
    return Int16(strength * (1 - 2 * phase) * (1 - phase))
  }
}

final class OpusPair {
  var encoder: OpusEncoder
  var decoder: OpusDecoder
  init(expectedLossPercent: Int = 20) throws {
    encoder = try OpusEncoder(expectedLossPercent: expectedLossPercent)
    decoder = try OpusDecoder()
  }

  func encode(_ samples: [Int16]) throws -> [UInt8] {
    var packet = [UInt8](repeating: 0, count: 1275)
    var span = packet.mutableSpan
    let length = try encoder.encode(samples.span, into: &span)
    return Array(packet[..<length])
  }
  func decode(_ packet: [UInt8]) throws -> [Int16] {
    try samples { span throws(OpusError) in try self.decoder.decode(packet.span, into: &span) }
  }
  func samples(_ body: (inout MutableSpan<Int16>) throws(OpusError) -> Int) throws(OpusError) -> [Int16] {
    var output = [Int16](repeating: 0, count: 960)
    var span = output.mutableSpan
    let count = try body(&span)
    return Array(output[..<count])
  }
}

/// Spans cannot stand in `#expect`.
func duration(_ packet: [UInt8]) -> Int? { OpusPacket.duration(packet.span) }
func carriesRepair(_ packet: [UInt8]) -> Bool { OpusPacket.carriesRepair(packet.span) }

func level(_ samples: [Int16]) -> Double { LevelMeter.decibels(LevelMeter.meanSquare(samples.span)) }

@Suite struct OpusTests {
  @Test func `twenty milliseconds in, twenty out, at the same level`() throws {
    let pair = try OpusPair()
    var heard: [Int16] = []
    for frame in 0..<100 {
      let packet = try pair.encode(voice(160, from: frame * 160))
      #expect(duration(packet) == 960)
      let samples = try pair.decode(packet)
      #expect(samples.count == 160)
      heard += samples
    }
    #expect(abs(level(Array(heard[1600...])) - level(voice(14_400, from: 1600))) < 2)
  }

  @Test func `an empty packet is refused, not taken for a loss`() throws {
    let pair = try OpusPair()
    #expect(throws: OpusError.self) { try pair.decode([]) }
    #expect(throws: OpusError.self) {
      try pair.samples { span throws(OpusError) in
        let none: [UInt8] = []
        return try pair.decoder.repair(160, from: none.span, into: &span)
      }
    }
    #expect(duration([]) == nil)
  }

  @Test func `a lost frame comes back from the packet after it`() throws {
    let pair = try OpusPair()
    var repairable = 0
    for frame in 0..<60 {
      let packet = try pair.encode(voice(160, from: frame * 160))
      if frame % 15 == 5 { continue }
      if frame % 15 == 6, frame > 15 {
        #expect(carriesRepair(packet))
        repairable += 1
        let repaired = try pair.samples { span throws(OpusError) in try pair.decoder.repair(160, from: packet.span, into: &span) }
        #expect(repaired.count == 160)
        #expect(abs(level(repaired) - level(voice(160, from: (frame - 1) * 160))) < 6)
      }
      _ = try pair.decode(packet)
    }
    #expect(repairable == 3)
  }

  @Test func `without expected loss packets carry no copy`() throws {
    let pair = try OpusPair(expectedLossPercent: 0)
    for frame in 0..<20 { #expect(!carriesRepair(try pair.encode(voice(160, from: frame * 160)))) }
  }

  @Test func `concealment fades by itself and takes steps of 2.5 ms only`() throws {
    let pair = try OpusPair()
    for frame in 0..<35 { _ = try pair.decode(try pair.encode(voice(160, from: frame * 160))) }
    let made = try (0..<20).map { _ in
      level(try pair.samples { span throws(OpusError) in try pair.decoder.conceal(160, into: &span) })
    }
    #expect(made[0] > -30)
    #expect(made[19] < made[0] - 6)
    #expect(throws: OpusError.self) {
      try pair.samples { span throws(OpusError) in try pair.decoder.conceal(150, into: &span) }
    }
  }

  @Test func `random packets give audio or an error, never more than fits`() throws {
    let pair = try OpusPair()
    var random = SplitMix64(seed: 7)
    for _ in 0..<3000 {
      let packet = (0..<Int(random.next() % 60)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      _ = OpusPacket.carriesRepair(packet.span)
      let samples = (try? pair.decode(packet)) ?? []
      #expect(samples.count <= 960)
      if let units = OpusPacket.duration(packet.span), !samples.isEmpty { #expect(samples.count == units / 6) }
    }
  }

  @Test func `stereo and wide-band packets decode to the same 8 kHz mono`() throws {
    // The table of contents alone, with an empty frame: 20 ms of SILK wide band in stereo, of CELT full band.
    for contents in [0x4c, 0xfc] as [UInt8] {
      let pair = try OpusPair()
      #expect(try pair.decode([contents]).count == 160)
    }
  }
}
