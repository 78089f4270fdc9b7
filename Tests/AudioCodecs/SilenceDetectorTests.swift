import Foundation
import Testing
import TrunklineAudioCodecs

@Suite struct SilenceDetectorTests {
  /// Verdicts over 20 ms pieces.
  private func verdicts(_ samples: [Int16], _ detector: inout SilenceDetector) -> [Bool] {
    stride(from: 0, to: samples.count - 159, by: 160).map { start in
      let tick = Array(samples[start..<start + 160])
      return detector.isSilence(tick.span)
    }
  }
  private func noise(_ count: Int, level: Double, seed: Int = 0) -> [Int16] {
    var generator = NoiseGenerator()
    var skipped = [Int16](repeating: 0, count: seed + 1)
    var span = skipped.mutableSpan
    generator.fill(&span, level: level)
    var samples = [Int16](repeating: 0, count: count)
    var target = samples.mutableSpan
    generator.fill(&target, level: level)
    return samples
  }

  @Test(arguments: [-127.0, -75, -62, -55, -48]) func `steady noise of a room or a line becomes silence within two seconds`(
    level: Double
  ) {
    var detector = SilenceDetector()
    let said = verdicts(noise(8_000 * 6, level: level), &detector)
    #expect(said.dropFirst(115).allSatisfy { $0 }, "\(said.dropFirst(115).count { !$0 })")
    #expect(abs(detector.noiseLevel - max(-127, level)) < 3)
  }

  /// Tones of 8 s at a level, as G.711 brings them.
  private func chord(_ hertz: [Double], level: Double) -> [Int16] {
    let amplitude: Double = 32_768 * pow(10, level / 20) * (2 / Double(hertz.count)).squareRoot()
    let samples = (0..<64_000).map { index -> Int16 in
      var sum = 0.0
      for tone in hertz {
        let phase: Double = 2 * Double.pi * tone * Double(index) / 8_000
        sum += amplitude * sin(phase)
      }
      return Int16(sum.rounded())
    }
    var octets = [UInt8](repeating: 0, count: samples.count)
    var coded = octets.mutableSpan
    _ = G711.encode(samples.span, law: .mu, into: &coded)
    var decoded = [Int16](repeating: 0, count: samples.count)
    var span = decoded.mutableSpan
    _ = G711.decode(octets.span, law: .mu, into: &span)
    return decoded
  }

  @Test(arguments: [[440], [262, 330, 392], [110, 138, 165], [880, 1_108, 1_318]] as [[Double]], [-48.0, -55])
  func `a chord that is turned down is no silence, however steady`(_ hertz: [Double], _ level: Double) {
    var detector = SilenceDetector()
    let said = verdicts(chord(hertz, level: level), &detector)
    #expect(said.count { $0 } < said.count / 20, "\(said.count { $0 }) of \(said.count)")
  }

  @Test(arguments: [-70.0, -60]) func `an offset of one per cent is no energy`(_ level: Double) {
    var (plain, offset) = (SilenceDetector(), SilenceDetector())
    let samples = noise(8_000 * 4, level: level)
    let verdict = verdicts(samples, &plain)
    #expect(verdicts(samples.map { $0 + 327 }, &offset) == verdict)
    #expect(abs(offset.noiseLevel - plain.noiseLevel) < 0.5)
  }

  @Test(arguments: [-44.0, -20]) func `loud sound is never silence, however steady`(level: Double) {
    var detector = SilenceDetector()
    #expect(verdicts(noise(8_000 * 6, level: level), &detector).allSatisfy { !$0 })
  }

  @Test(arguments: [-75.0, -55]) func `a word 15 dB above the noise is speech from its second tick on, and its end is not cut`(
    level: Double
  ) {
    var detector = SilenceDetector()
    _ = verdicts(noise(8_000 * 3, level: level), &detector)
    let word = verdicts(noise(1_600, level: max(level + 15, -60), seed: 7), &detector)
    #expect(word.dropFirst().allSatisfy { !$0 })
    let after = verdicts(noise(8_000, level: level, seed: 3), &detector)
    #expect(after.prefix(10).allSatisfy { !$0 }, "the hang-over")
    #expect(after.dropFirst(14).allSatisfy { $0 })
  }

  @Test func `a weak hiss among low noise is heard by its high frequencies`() {
    var detector = SilenceDetector()
    // Low noise: white noise summed up, so that its energy lies below 300 Hz.
    var state = 0.0
    let rumble = noise(8_000 * 3, level: -60).map { sample -> Int16 in
      state = state * 0.95 + Double(sample)
      return Int16(state)
    }
    _ = verdicts(rumble, &detector)
    let hiss = noise(1_600, level: -57, seed: 5)
    let mixed = zip(rumble.suffix(1_600), hiss).map { $0 &+ $1 }
    #expect(verdicts(mixed, &detector).dropFirst().allSatisfy { !$0 })
  }

  @Test func `a click holds the line open for a moment only`() {
    var detector = SilenceDetector()
    _ = verdicts([Int16](repeating: 0, count: 8_000), &detector)
    var click = [Int16](repeating: 0, count: 160 * 20)
    click[80] = 20_000
    let said = verdicts(click, &detector)
    #expect(said[0] == false)
    #expect(said.count { !$0 } <= 5)
  }

  @Test func `levels of speech and noise are told apart`() throws {
    var detector = SilenceDetector()
    #expect(detector.speechLevel == nil)
    for _ in 0..<4 {
      _ = verdicts(noise(8_000, level: -25), &detector)
      _ = verdicts(noise(8_000, level: -58), &detector)
    }
    #expect(abs(try #require(detector.speechLevel) + 25) < 1)
    #expect(abs(detector.noiseLevel + 58) < 2)
  }

  @Test(arguments: [-30.0, -50, -60, -68]) func `made noise has its level`(level: Double) {
    let samples = noise(8_000, level: level)
    #expect(abs(LevelMeter.decibels(LevelMeter.meanSquare(samples.span)) - level) < 0.7)
    #expect(ComfortNoise.octet(level: level) == UInt8(-level))
    #expect(told([ComfortNoise.octet(level: level), 9, 9]) == level)
  }

  @Test func `comfort noise levels are bounded on the wire`() {
    #expect(ComfortNoise.octet(level: 3) == 0 && ComfortNoise.octet(level: -500) == 127)
    #expect(told([]) == nil)
    #expect(told([0xff]) == -127)
  }
  private func told(_ payload: [UInt8]) -> Double? { ComfortNoise.level(payload.span) }
}
