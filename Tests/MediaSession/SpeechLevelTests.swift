import SpeechScore
import Testing
import TrunklineAudioCodecs

@testable import TrunklineMediaSession

/// The level stays the same on the way: active level by ITU-T P.56 on both sides of a whole session.
@Suite struct SpeechLevelTests {
  /// What each side heard of the same speech.
  func run(app: Encoding, trunk: Encoding) throws -> (played: Double, byApp: Double, byTrunk: Double) {
    var bench = try Bench(app: app, trunk: trunk)
    bench.connect()
    let frames = min(380, speech.count)
    try bench.run(frames: frames, trunk: { speech[$0] }, app: { speech[$0] })
    try bench.run(frames: 10)
    let played = ActiveLevel(speech[..<frames].flatMap { $0 }).decibels
    return (played, ActiveLevel(bench.heardByApp).decibels, ActiveLevel(bench.heardByTrunk).decibels)
  }

  @Test func `between PCMU and PCMA the level stays within 0,1 dB`() throws {
    for (app, trunk) in [(Encoding.pcmu, Encoding.pcma), (.pcma, .pcmu)] {
      let levels = try run(app: app, trunk: trunk)
      #expect(abs(levels.byApp - levels.played) < 0.1, "\(app) \(trunk) \(levels)")
      #expect(abs(levels.byTrunk - levels.played) < 0.1, "\(app) \(trunk) \(levels)")
    }
  }

  @Test func `through Opus the level stays within 0,3 dB`() throws {
    for trunk in [Encoding.pcmu, .pcma, .l16] {
      let levels = try run(app: .opus, trunk: trunk)
      #expect(abs(levels.byApp - levels.played) < 0.3, "\(trunk) \(levels)")
      #expect(abs(levels.byTrunk - levels.played) < 0.3, "\(trunk) \(levels)")
    }
  }
}
