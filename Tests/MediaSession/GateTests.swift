import SpeechScore
import Testing
import TrunklineAudioCodecs
import TrunklineBytes

@testable import TrunklineMediaSession

@Suite struct GateTests {
  @Test func `nothing of the app is heard before the lock`() throws {
    var bench = try Bench()
    bench.prepare()
    try bench.run(frames: 50, app: { tone($0) })
    #expect(bench.toTrunk.isEmpty)
    bench.command(.lockWinner(Bench.id, Bench.leg))
    bench.command(.connect(Bench.id, Bench.leg, keepsFirstWords: false))
    try bench.run(frames: 50)
    #expect(level(bench.heardByTrunk) < 10, "what was said before the lock is gone")
    let dropped = bench.output.drainDrops(.beforeLock)
    #expect(dropped == 50)
  }

  @Test func `what the app says between lock and connect is kept, played from its start and caught up`() throws {
    var bench = try Bench()
    bench.prepare()
    bench.command(.lockWinner(Bench.id, Bench.leg))
    let start = speech.firstIndex { level($0) > 500 } ?? 0
    let talk = Array(speech[start..<min(speech.count, start + 250)])
    try bench.run(frames: 40, app: { talk[$0] })
    #expect(bench.toTrunk.isEmpty)
    bench.command(.connect(Bench.id, Bench.leg, keepsFirstWords: false))
    try bench.run(frames: talk.count - 40, app: { talk[$0 + 40] })
    let comparison = try #require(
      SpeechComparison(played: talk[..<60].flatMap { $0 }, heard: Array(bench.heardByTrunk.prefix(20_000))))
    #expect(comparison.clippedStartMilliseconds <= 20, "\(comparison)")
    let isCaughtUp = bench.session.uplink.firstWords.isEmpty
    #expect(isCaughtUp)
  }

  @Test func `trunk audio is kept until the device plays, at most 1500 ms, and caught up within 3 s`() throws {
    var bench = try Bench()
    bench.connect(keeps: true)
    let start = speech.firstIndex { level($0) > 500 } ?? 0
    let talk = Array(speech[start..<min(speech.count, start + 300)])
    try bench.run(frames: 30, trunk: { talk[$0] })
    #expect(bench.toApp.isEmpty)
    bench.command(.playoutActive(Bench.id))
    let began = bench.now
    var live: Instant?
    for frame in 30..<talk.count {
      bench.trunkSays(talk[frame])
      bench.tick()
      if live == nil, bench.session.downlink.firstWords.isEmpty { live = bench.now }
    }
    let caughtUp = try #require(live)
    #expect(caughtUp - began <= .milliseconds(3_040))
    let comparison = try #require(
      SpeechComparison(played: talk[..<50].flatMap { $0 }, heard: Array(bench.heardByApp.prefix(20_000))))
    #expect(comparison.clippedStartMilliseconds <= 20, "\(comparison)")
    #expect(bench.toApp.isContinuous)
  }

  @Test func `play-out is taken as running 10 s after the connect`() throws {
    var bench = try Bench()
    bench.connect(keeps: true)
    try bench.run(frames: 499, trunk: { tone($0) })
    #expect(bench.toApp.isEmpty)
    try bench.run(frames: 10, trunk: { tone($0 + 499) })
    #expect(!bench.toApp.isEmpty)
  }

  @Test func `a device that plays before the connect waits for nothing`() throws {
    var bench = try Bench()
    bench.prepare()
    bench.command(.lockWinner(Bench.id, Bench.leg))
    bench.command(.playoutActive(Bench.id))
    bench.command(.connect(Bench.id, Bench.leg, keepsFirstWords: true))
    try bench.run(frames: 20, trunk: { tone($0) })
    #expect(bench.toApp.count >= 15)
  }

  @Test func `early media is heard by the app and the app is not heard`() throws {
    var bench = try Bench()
    bench.prepare()
    bench.command(.openEarly(Bench.id, Bench.leg))
    try bench.run(frames: 50, trunk: { tone($0) }, app: { tone($0) })
    #expect(level(bench.heardByApp.suffix(1_600)) > 3_000)
    #expect(bench.toTrunk.isEmpty)
    bench.command(.connect(Bench.id, Bench.leg, keepsFirstWords: false))
    try bench.run(frames: 3)
    #expect(level(bench.heardByTrunk) < 10, "nothing was kept on an outgoing call")
    try bench.run(frames: 50, trunk: { tone($0) }, app: { tone($0) })
    #expect(level(bench.heardByTrunk.suffix(1_600)) > 3_000)
  }

  @Test func `another device's audio never reaches the trunk`() throws {
    var bench = try Bench()
    bench.prepare()
    let other = AppLegID(raw: 2)
    bench.command(.addAppLeg(Bench.id, other, AppLegLocal(ufrag: "gwu2", password: "gatewaypasswordgatewa2", ssrc: 2)))
    bench.command(.lockWinner(Bench.id, other))
    bench.command(.connect(Bench.id, other, keepsFirstWords: false))
    try bench.run(frames: 50, app: { tone($0) })
    #expect(level(bench.heardByTrunk) < 10)
    #expect(bench.toApp.isEmpty)
  }
}
