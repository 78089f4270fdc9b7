import SpeechScore
import Testing

@Suite struct ActiveLevelTests {
  /// Square waves have the level of their amplitude.
  func square(_ amplitude: Int16, _ count: Int) -> [Int16] { (0..<count).map { $0 / 10 % 2 == 0 ? amplitude : -amplitude } }

  @Test func `steady audio has its mean power`() {
    let level = ActiveLevel(square(3277, 80_000))
    #expect(abs(level.decibels + 20) < 0.2)
    #expect(level.activity > 0.98)
  }

  @Test func `long pauses do not lower the level of speech, and are told`() {
    let talk = square(3277, 16_000)
    let pause = [Int16](repeating: 0, count: 48_000)
    let level = ActiveLevel(talk + pause + talk + pause)
    // The hang-over of 200 ms belongs to each 2 s of talk.
    #expect(abs(level.decibels + 20.4) < 0.4)
    #expect(abs(level.activity - 0.28) < 0.04)
  }

  @Test func `a louder copy is louder by as much`() {
    let quiet = square(500, 16_000) + [Int16](repeating: 3, count: 16_000) + square(800, 8_000)
    let difference = ActiveLevel(quiet.map { $0 * 4 }).decibels - ActiveLevel(quiet).decibels
    #expect(abs(difference - 12.04) < 0.05)
  }

  @Test func `silence has no level`() {
    #expect(ActiveLevel([Int16](repeating: 0, count: 8_000)) == ActiveLevel([]))
    #expect(ActiveLevel([]).decibels == -127)
  }
}
