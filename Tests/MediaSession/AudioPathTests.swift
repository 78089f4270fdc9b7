import SpeechScore
import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

@testable import TrunklineMediaSession

@Suite struct AudioPathTests {
  @Test func `speech goes through both ways between PCMU and Opus`() throws {
    var bench = try Bench()
    bench.connect()
    let frames = min(400, speech.count)
    try bench.run(frames: frames, trunk: { speech[$0] }, app: { speech[$0] })
    try bench.run(frames: 10)
    let played = speech[..<frames].flatMap { $0 }
    for (side, heard) in [("app", bench.heardByApp), ("trunk", bench.heardByTrunk)] {
      let comparison = try #require(SpeechComparison(played: played, heard: heard), "\(side)")
      #expect(comparison.heardSpeech, "\(side): \(comparison)")
      #expect(comparison.clippedStartMilliseconds <= 20, "\(side): \(comparison)")
      #expect(comparison.longestGapMilliseconds <= 40, "\(side): \(comparison)")
    }
    #expect(bench.toApp.isContinuous && bench.toTrunk.isContinuous)
    #expect(Set(bench.toApp.map(\.header.ssrc.raw)) == [0xabcd_0001])
    #expect(bench.toApp.allSatisfy { $0.destination == Bench.appAddress })
    #expect(bench.toTrunk.allSatisfy { $0.destination == Bench.trunkAddress })
  }

  @Test(arguments: [false, true])
  func `G711 with Opus carries a tone at its level`(aLaw: Bool) throws {
    var bench = try Bench(trunk: aLaw ? .pcma : .pcmu)
    bench.connect()
    try bench.run(frames: 100, trunk: { tone($0) }, app: { tone($0, hertz: 700) })
    let there = level(tone(3))
    #expect(abs(level(bench.heardByApp.suffix(8_000)) / there - 1) < 0.25)
    #expect(abs(level(bench.heardByTrunk.suffix(8_000)) / there - 1) < 0.25)
  }

  @Test func `equal codecs are relayed packet by packet without delay`() throws {
    var bench = try Bench(app: .pcmu)
    bench.connect()
    for frame in 0..<50 {
      let before = bench.toApp.count
      bench.trunkSays(tone(frame))
      #expect(bench.toApp.count == before + 1)
      let beforeTrunk = bench.toTrunk.count
      try bench.appSays(tone(frame, hertz: 700))
      #expect(bench.toTrunk.count == beforeTrunk + 1)
      bench.tick()
    }
    #expect(bench.heardByApp.count == 8_000 && bench.heardByTrunk.count == 8_000)
    #expect(bench.toApp.isContinuous && bench.toTrunk.isContinuous)
    #expect(zip(bench.toApp, bench.toApp.dropFirst()).allSatisfy { $1.header.timestamp.raw == $0.header.timestamp.raw &+ 160 })
  }

  @Test func `relay keeps the source's loss and reordering and drops its duplicates`() throws {
    var bench = try Bench(app: .pcmu)
    bench.connect()
    for frame in 0..<10 { bench.trunkSays(tone(frame)) }
    bench.trunkSequence &+= 1  // one lost
    bench.trunkTimestamp &+= 160
    bench.trunkSays(tone(11))
    bench.trunkSequence &-= 1
    bench.trunkSays(tone(11))  // the same number again
    let numbers = bench.toApp.map { Int($0.header.sequence.raw &- bench.toApp[0].header.sequence.raw) }
    #expect(numbers == Array(0..<10) + [11])
  }

  @Test func `a leg switches between relay and transcoding without a jump`() throws {
    var bench = try Bench(app: .pcmu)
    bench.connect()
    try bench.run(frames: 20, app: { tone($0) })
    bench.command(.mute(Bench.id, true))
    try bench.run(frames: 20, app: { tone($0) })
    #expect(level(bench.heardByTrunk.suffix(1_600)) < 10)
    bench.command(.mute(Bench.id, false))
    try bench.run(frames: 20, app: { tone($0) })
    try bench.run(frames: 10, app: { _ in quiet })  // in the pause it goes back to relaying
    try bench.run(frames: 20, app: { tone($0) })
    #expect(bench.toTrunk.isContinuous)
    #expect(level(bench.heardByTrunk.suffix(1_600)) > 3_000)
    let steps = zip(bench.toTrunk, bench.toTrunk.dropFirst()).map { Int($1.header.timestamp.raw &- $0.header.timestamp.raw) }
    #expect(steps.allSatisfy { $0 >= 0 && $0 <= 800 }, "\(steps)")
  }

  @Test(arguments: [10, 20, 30, 40, 60])
  func `the trunk gets the packet time it asked for`(milliseconds: Int) throws {
    var bench = try Bench(packetTime: milliseconds)
    bench.connect()
    try bench.run(frames: 60, app: { tone($0) })
    #expect(bench.toTrunk.allSatisfy { $0.payload.count == milliseconds * 8 })
    #expect(abs(bench.toTrunk.count - 1_200 / milliseconds) <= 1)
    #expect(bench.toTrunk.isContinuous)
    #expect(
      zip(bench.toTrunk, bench.toTrunk.dropFirst()).allSatisfy {
        $1.header.timestamp.raw == $0.header.timestamp.raw &+ UInt32(milliseconds * 8)
      })
  }

  @Test func `a silent app leaves the trunk with silence and a continuous stream`() throws {
    for encoding in [AudioEncoding.opus, .pcmu] {
      var bench = try Bench(app: encoding)
      bench.connect()
      try bench.run(frames: 25, app: { tone($0) })
      try bench.run(frames: 100)
      try bench.run(frames: 25, app: { tone($0) })
      #expect(bench.toTrunk.count >= 130, "\(encoding)")
      #expect(bench.toTrunk.isContinuous, "\(encoding)")
      #expect(level(bench.heardByTrunk.suffix(1_600)) > 3_000, "\(encoding)")
    }
  }

  @Test func `a trunk that stops and starts again leaves a continuous sequence towards the app`() throws {
    var bench = try Bench(preferences: OpusPreferences(acceptsPauses: true))
    bench.connect()
    try bench.run(frames: 50, trunk: { tone($0) })
    try bench.run(frames: 100)
    let paused = bench.toApp.count
    #expect(paused < 90, "silence is not sent to an app that takes pauses: \(paused)")
    bench.trunkTimestamp &+= 100 * 160
    try bench.run(frames: 50, trunk: { tone($0) })
    #expect(bench.toApp.isContinuous)
    #expect(level(bench.heardByApp.suffix(1_600)) > 3_000)
    let whole = Int(bench.toApp[bench.toApp.count - 1].header.timestamp.raw &- bench.toApp[0].header.timestamp.raw)
    #expect(abs(whole - 199 * 960) < 20 * 960, "the timestamp ran on through the pause: \(whole / 960) frames")
  }

  @Test func `hold gives the trunk silence and the app nothing`() throws {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 50, trunk: { tone($0) }, app: { tone($0) })
    bench.command(.hold(Bench.id, true))
    let sent = (bench.toApp.count, bench.toTrunk.count)
    try bench.run(frames: 50, trunk: { tone($0) }, app: { tone($0) })
    #expect(bench.toApp.count == sent.0)
    #expect(bench.toTrunk.count == sent.1 + 50)
    #expect(level(bench.heardByTrunk.suffix(4_000)) < 10)
    bench.command(.hold(Bench.id, false))
    try bench.run(frames: 50, trunk: { tone($0) }, app: { tone($0) })
    #expect(level(bench.heardByApp.suffix(1_600)) > 3_000 && level(bench.heardByTrunk.suffix(1_600)) > 3_000)
    #expect(bench.toApp.isContinuous && bench.toTrunk.isContinuous)
  }
}
