import AudioCodecs
import Testing

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

  @Test func `the active level leaves pauses out`() {
    let talk = voice(8000, pauses: false)
    let withPauses = talk + [Int16](repeating: 0, count: 8000)
    #expect(abs(LevelMeter.activeLevel(withPauses.span) - LevelMeter.activeLevel(talk.span)) < 0.1)
    #expect(abs(LevelMeter.activeLevel(talk.span) - level(talk)) < 1)
    #expect(LevelMeter.activeLevel([Int16](repeating: 0, count: 800).span) == -127)
  }

  @Test func `muting fades over a tick, then silence; unity changes nothing`() {
    var gain = Gain()
    let loud = [Int16](repeating: 10_000, count: 160)
    #expect(apply(&gain, loud) == loud)
    gain.isMuted = true
    let fading = apply(&gain, loud)
    #expect(Array(fading[..<4]) == [9938, 9875, 9814, 9750])
    #expect(fading.last == 0)
    #expect(zip(fading, fading.dropFirst()).allSatisfy { $0 >= $1 && $0 - $1 < 100 })
    #expect(apply(&gain, loud).allSatisfy { $0 == 0 })
    gain.isMuted = false
    _ = apply(&gain, loud)
    #expect(apply(&gain, loud) == loud)
    gain.target = 4 * Gain.unity
    _ = apply(&gain, loud)
    #expect(apply(&gain, loud).allSatisfy { $0 == .max })
  }
  func apply(_ gain: inout Gain, _ samples: [Int16]) -> [Int16] {
    var samples = samples
    var span = samples.mutableSpan
    gain.apply(to: &span)
    return samples
  }
}
