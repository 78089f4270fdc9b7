import SpeechScore
import Testing
import TrunklineAudioCodecs
import TrunklineBytes

@testable import TrunklineMediaSession

/// What a number hears that a program called before its user.
@Suite struct RingbackTests {
  @Test func `ringback is 425 Hz for a second, and silence for four`() {
    let samples = Announcement.ringback.recording.samples(.narrowband)
    #expect(Announcement.ringback.milliseconds == 5_000 && samples.count == 40_000)
    let (tone, pause) = (samples[..<8_000], samples[8_000...])
    let crossings = zip(tone, tone.dropFirst()).count { $0 < 0 && $1 >= 0 }
    #expect((423...426).contains(crossings) && level(tone) > 2_500 && level(pause) == 0)
    #expect(abs(Int(tone.first ?? 1)) == 0 && abs(Int(tone.last ?? 100)) < 100, "nothing clicks")
  }

  @Test func `what the app says between lock and connect is kept while the number hears ringback, and follows it`() throws {
    var bench = try Bench()
    bench.prepare()
    bench.command(.play(Bench.id, .ringback))
    try bench.run(frames: 10)
    #expect(bench.toTrunk.count == 10 && level(bench.heardByTrunk.suffix(800)) > 2_500)
    bench.command(.lockWinner(Bench.id, Bench.leg))
    let start = speech.firstIndex { level($0) > 500 } ?? 0
    let talk = Array(speech[start..<min(speech.count, start + 250)])
    try bench.run(frames: 40, app: { talk[$0] })
    #expect(bench.toTrunk.count == 50 && bench.toTrunk.isContinuous)
    bench.command(.play(Bench.id, nil))
    bench.command(.connect(Bench.id, Bench.leg, keepsFirstWords: false))
    let before = bench.heardByTrunk.count
    try bench.run(frames: talk.count - 40, app: { talk[$0 + 40] })
    let heard = Array(bench.heardByTrunk.dropFirst(before).prefix(20_000))
    let comparison = try #require(SpeechComparison(played: talk[..<60].flatMap { $0 }, heard: heard))
    #expect(comparison.clippedStartMilliseconds <= 20, "\(comparison)")
    #expect(bench.toTrunk.isContinuous)
  }
}
