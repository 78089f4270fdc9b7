import Testing
import TrunklineAudioCodecs

@Suite struct LevelTests {
  @Test func `levels are in dBov`() {
    let square = (0..<160).map { $0 % 2 == 0 ? Int16.max : -Int16.max }
    #expect(abs(level(square)) < 0.01)
    #expect(level([Int16](repeating: 0, count: 160)) == -127)
    #expect(abs(level(square.map { $0 / 10 }) + 20) < 0.01)
    #expect(level([]) == -127)
    #expect(level([.min]) == 0)
  }

  @Test func `the meter rises at once and falls slowly`() {
    var meter = LevelMeter()
    let loud = [Int16](repeating: 8000, count: 160)
    let silent = [Int16](repeating: 0, count: 160)
    measure(&meter, loud)
    let peak = meter.level
    for _ in 0..<5 { measure(&meter, silent) }
    #expect(meter.level < peak - 3 && meter.level > peak - 8)
  }
  func measure(_ meter: inout LevelMeter, _ samples: [Int16]) { meter.measure(samples.span) }
}
