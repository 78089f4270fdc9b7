import Testing
import TrunklineAudioCodecs

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// What a telephone's keypad sends, with what lines and telephones do to it.
struct Tone {
  var key: Character
  var milliseconds = 80.0
  /// dBov of the low tone alone.
  var level = -20.0
  /// dB by which the high tone is stronger.
  var twist = 0.0
  var lowOffset = 0.0
  var highOffset = 0.0

  private static let low = [697.0, 770, 852, 941]
  private static let high = [1_209.0, 1_336, 1_477, 1_633]
  private static let keys = Array("123A456B789C*0#D")

  var samples: [Double] {
    let index = Self.keys.firstIndex(of: key) ?? 0
    let (a, b) = (Self.low[index / 4] * (1 + lowOffset), Self.high[index % 4] * (1 + highOffset))
    // A sine of amplitude 1 has −3.01 dBov.
    let low = 32_768 * pow(10, (level + 3.01) / 20)
    let high = low * pow(10, twist / 20)
    return (0..<Int(milliseconds * 8)).map { k in
      let time = 2 * Double.pi * Double(k) / 8_000
      return low * sin(a * time + 0.4) + high * sin(b * time + 1.1)
    }
  }
}

/// Digits heard in samples after `lead` samples of silence, with noise of `noise` dBov over all.
func heard(_ pieces: [[Double]], noise: Double = -127, lead: Int = 800) -> [ReceivedDigit] {
  var generator = NoiseGenerator()
  var detector = ToneDetector()
  let clean = [Double](repeating: 0, count: lead) + pieces.flatMap { $0 } + [Double](repeating: 0, count: 1_600)
  var hiss = [Int16](repeating: 0, count: clean.count)
  var span = hiss.mutableSpan
  generator.fill(&span, level: noise)
  let samples = zip(clean, hiss).map { Int16(max(-32_768, min(32_767, $0 + Double($1)))) }
  var digits: [ReceivedDigit] = []
  for start in stride(from: 0, to: samples.count - 159, by: 160) {
    let tick = Array(samples[start..<start + 160])
    if let digit = detector.hear(tick.span) { digits.append(digit) }
  }
  return digits
}
func text(_ digits: [ReceivedDigit]) -> String { String(decoding: digits.map(\.digit), as: UTF8.self) }
func pause(_ milliseconds: Double) -> [Double] { [Double](repeating: 0, count: Int(milliseconds * 8)) }

@Suite struct ToneDetectorTests {
  @Test(arguments: [0, 37, 81, 133, 159]) func `every key is heard once with its length, wherever ticks fall`(shift: Int) {
    let keys = "1234567890*#ABCD"
    let digits = heard(keys.flatMap { [Tone(key: $0).samples, pause(80)] }, lead: 800 + shift)
    #expect(text(digits) == keys)
    #expect(digits.allSatisfy { abs($0.durationMilliseconds - 80) <= 12 }, "\(digits.map(\.durationMilliseconds))")
  }

  @Test(arguments: [-9.0, -8, -4, 0, 4, 5.5]) func `twist as lines make it`(twist: Double) {
    #expect(text(heard("159D".flatMap { [Tone(key: $0, twist: twist).samples, pause(80)] })) == "159D")
  }
  @Test(arguments: [-14.0, 10]) func `more twist than that is no digit`(twist: Double) {
    #expect(heard("159D".flatMap { [Tone(key: $0, twist: twist).samples, pause(80)] }).isEmpty)
  }

  @Test(arguments: [(0.015, 0.015), (-0.015, -0.015), (0.015, -0.015), (-0.015, 0.015)])
  func `frequencies within 1,5 per cent are taken`(low: Double, high: Double) {
    let keys = "1234567890*#ABCD"
    #expect(text(heard(keys.flatMap { [Tone(key: $0, lowOffset: low, highOffset: high).samples, pause(80)] })) == keys)
  }
  @Test(arguments: [(0.035, 0.0), (-0.035, 0), (0, 0.035), (0, -0.035), (0.05, 0.05)])
  func `frequencies beyond 3,5 per cent are refused`(low: Double, high: Double) {
    let keys = "1234567890*#ABCD"
    #expect(heard(keys.flatMap { [Tone(key: $0, lowOffset: low, highOffset: high).samples, pause(80)] }).isEmpty)
  }

  @Test(arguments: [0, 50, 99, 155]) func `40 ms are a digit, 23 are none`(shift: Int) {
    let keys = "1590D"
    #expect(text(heard(keys.flatMap { [Tone(key: $0, milliseconds: 40).samples, pause(40)] }, lead: 800 + shift)) == keys)
    #expect(heard(keys.flatMap { [Tone(key: $0, milliseconds: 23).samples, pause(77)] }, lead: 800 + shift).isEmpty)
  }

  @Test func `a break of 10 ms is bridged, one of 40 ms divides`() {
    let half = Tone(key: "5", milliseconds: 60).samples
    #expect(text(heard([half, pause(10), half])) == "5")
    #expect(text(heard([half, pause(40), half])) == "55")
    #expect(text(heard([half, Tone(key: "6", milliseconds: 60).samples])) == "56", "no pause at all between two keys")
  }

  @Test(arguments: [-6.0, -15, -30, -38]) func `levels of telephones`(level: Double) {
    #expect(text(heard("1590D".flatMap { [Tone(key: $0, level: level - 3).samples, pause(60)] })) == "1590D")
  }
  @Test func `what is too faint is none`() {
    #expect(heard("1590D".flatMap { [Tone(key: $0, level: -55).samples, pause(60)] }).isEmpty)
  }

  @Test(arguments: [24.0, 15, 10]) func `noise of that many decibels below`(ratio: Double) {
    let keys = "1234567890*#ABCD"
    #expect(text(heard(keys.flatMap { [Tone(key: $0).samples, pause(80)] }, noise: -17 - ratio)) == keys)
  }
  @Test func `noise alone, single tones and dial tone are no digits`() {
    #expect(heard([pause(20_000)], noise: -20).isEmpty)
    func sine(_ hertz: Double, _ sample: Int) -> Double { sin(2 * .pi * hertz * Double(sample) / 8_000) }
    for hertz in stride(from: 300.0, to: 3_400, by: 37) {
      let tone: [Double] = (0..<3_200).map { sample in 8_000 * sine(hertz, sample) }
      #expect(heard([tone]).isEmpty, "\(hertz)")
    }
    let dialTone: [Double] = (0..<8_000).map { sample in 5_000 * (sine(350, sample) + sine(440, sample)) }
    #expect(heard([dialTone]).isEmpty)
  }

  @Test func `a digit that never ended is told when nothing comes any more`() {
    var detector = ToneDetector()
    let samples = Tone(key: "7", milliseconds: 100).samples.map { Int16($0) }
    for start in stride(from: 0, to: samples.count - 159, by: 160) {
      let tick = Array(samples[start..<start + 160])
      #expect(detector.hear(tick.span) == nil)
    }
    var told: ReceivedDigit?
    for _ in 0..<4 { told = detector.absent() ?? told }
    #expect(told?.digit == UInt8(ascii: "7"))
    #expect(detector.absent() == nil)
  }
}
