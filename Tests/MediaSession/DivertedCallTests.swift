import Foundation
import SpeechScore
import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

@testable import TrunklineMediaSession

/// Two sessions of one diverted call, each with a trunk: what one hears, the other sends.
private struct Halves: ~Copyable {
  static let second = MediaSessionID(raw: 8)
  var caller: Bench
  var called: Bench

  init(_ first: AudioEncoding, _ second: AudioEncoding) throws {
    let caller = try Bench(trunk: first, band: first.band)
    let called = try Bench(trunk: second, band: second.band, id: Self.second)
    self.caller = caller
    self.called = called
    self.caller.command(.setTrunk(Bench.id, self.caller.trunk))
    self.called.command(.setTrunk(Self.second, self.called.trunk))
  }

  mutating func connect() {
    caller.command(.bridge(Bench.id, to: Self.second, connects: true))
    called.command(.bridge(Self.second, to: Bench.id, connects: true))
  }

  /// What the media thread does with both, every 20 ms.
  mutating func run(
    frames: Int, caller callerSays: (Int) -> [Int16]? = { _ in nil }, called calledSays: (Int) -> [Int16]? = { _ in nil }
  ) {
    for frame in 0..<frames {
      if let samples = callerSays(frame) { caller.trunkSays(samples) }
      if let samples = calledSays(frame) { called.trunkSays(samples) }
      caller.session.tick(.trunkToApp, at: caller.now, into: &caller.output)
      if caller.session.bridgeTarget == Self.second {
        called.session.playBridged(caller.session.bridgedFrame, at: caller.now, into: &called.output)
      }
      called.session.tick(.trunkToApp, at: called.now, into: &called.output)
      if called.session.bridgeTarget == Bench.id {
        caller.session.playBridged(called.session.bridgedFrame, at: called.now, into: &caller.output)
      }
      caller.session.tick(.appToTrunk, at: caller.now, into: &caller.output)
      called.session.tick(.appToTrunk, at: called.now, into: &called.output)
      caller.collect()
      called.collect()
      caller.now = caller.now + .milliseconds(20)
      called.now = called.now + .milliseconds(20)
    }
  }
}

@Suite struct DivertedCallTests {
  @Test func `SRV-7: speech goes from trunk to trunk both ways, of one codec`() throws { try converse(.pcmu, .pcmu) }
  @Test func `SRV-7: speech goes from trunk to trunk both ways, of two codecs`() throws { try converse(.pcmu, .pcma) }
  @Test func `speech goes between a trunk of L16 and one of G.711 both ways`() throws { try converse(.l16, .pcma) }

  @Test(arguments: [(AudioEncoding.g722, AudioEncoding.g722), (.g722, .opus), (.opus, .g722), (.g722, .pcmu), (.pcma, .opus)])
  func `two wide trunks hear each other above 4 kHz, and a narrow one makes both narrow`(
    _ first: AudioEncoding, _ second: AudioEncoding
  ) throws {
    let band = min(first.band, second.band)
    var halves = try Halves(first, second)
    halves.connect()
    func say(_ frame: Int, _ band: AudioBand) -> [Int16] {
      let length = band.samplesPerTick
      return (0..<length).map { k in
        let time = Double(frame * length + k) / Double(band.sampleRateHz)
        return Int16(3_000 * sin(2 * .pi * 1_000 * time) + (band == .wideband ? 3_000 * sin(2 * .pi * 5_000 * time) : 0))
      }
    }
    halves.run(frames: 150, caller: { say($0, first.band) }, called: { say($0, second.band) })
    #expect(halves.caller.session.band == band && halves.called.session.band == band)
    for (heard, own) in [(halves.called.heardByTrunk, second.band), (halves.caller.heardByTrunk, first.band)] {
      #expect(heard.count > 140 * own.samplesPerTick)
      let part = Array(heard.suffix(own.sampleRateHz))
      let (low, high) = (amplitude(part, 1_000, own), own == .wideband ? amplitude(part, 5_000, own) : 0)
      #expect(low > 2_400 && low < 3_600 && (band == .wideband ? high > 2_400 : high < 60), "\(own): \(low) and \(high)")
    }
    #expect(halves.caller.toTrunk.isContinuous && halves.called.toTrunk.isContinuous)
  }

  private func amplitude(_ samples: [Int16], _ hertz: Double, _ band: AudioBand) -> Double {
    var (re, im) = (0.0, 0.0)
    for (index, sample) in samples.enumerated() {
      let turn = 2 * .pi * hertz * Double(index) / Double(band.sampleRateHz)
      re += Double(sample) * cos(turn)
      im += Double(sample) * sin(turn)
    }
    return 2 * (re * re + im * im).squareRoot() / Double(max(1, samples.count))
  }

  private func converse(_ first: AudioEncoding, _ second: AudioEncoding) throws {
    var halves = try Halves(first, second)
    halves.connect()
    let frames = min(400, speech.count)
    halves.run(frames: frames, caller: { speech[$0] }, called: { speech[$0] })
    halves.run(frames: 10)
    let played = speech[..<frames].flatMap { $0 }
    for (side, heard) in [("called", halves.called.heardByTrunk), ("caller", halves.caller.heardByTrunk)] {
      let comparison = try #require(SpeechComparison(played: played, heard: heard), "\(side)")
      #expect(
        comparison.heardSpeech && comparison.clippedStartMilliseconds <= 20 && comparison.longestGapMilliseconds <= 40,
        "\(side): \(comparison)")
    }
    #expect(halves.caller.toTrunk.isContinuous && halves.called.toTrunk.isContinuous)
    #expect(Set(halves.called.toTrunk.map(\.header.ssrc)).count == 1)
  }

  @Test func `early audio of the second leg is heard by the caller, and nothing of the caller by it`() throws {
    var halves = try Halves(.pcmu, .pcma)
    halves.called.command(.bridge(Halves.second, to: Bench.id, connects: false))
    halves.run(frames: 100, caller: { tone($0) }, called: { tone($0, hertz: 700) })
    #expect(abs(level(halves.caller.heardByTrunk.suffix(8_000)) / level(tone(3)) - 1) < 0.25)
    #expect(halves.called.toTrunk.isEmpty)
    halves.connect()
    halves.run(frames: 60, caller: { tone($0) }, called: { tone($0, hertz: 700) })
    #expect(abs(level(halves.called.heardByTrunk.suffix(4_000)) / level(tone(3)) - 1) < 0.25)
    #expect(halves.caller.toTrunk.isContinuous)
  }

  @Test func `a side that falls silent still gets its stream, and silence for 20 s is told`() throws {
    var halves = try Halves(.pcmu, .pcmu)
    halves.connect()
    halves.run(frames: 50, caller: { tone($0) }, called: { tone($0) })
    let before = halves.called.toTrunk.count
    halves.run(frames: 1_050, called: { tone($0) })
    #expect(halves.called.toTrunk.count - before == 1_050)
    #expect(halves.caller.events.contains { if case .trunkSilent = $0 { true } else { false } })
    #expect(!halves.called.events.contains { if case .trunkSilent = $0 { true } else { false } })
  }

  @Test func `digits of one trunk are told, and are sent to the other on command`() throws {
    var halves = try Halves(.pcmu, .pcmu)
    halves.connect()
    halves.run(frames: 10, caller: { tone($0) }, called: { tone($0) })
    halves.called.command(.sendDigits(Halves.second, DigitRequest(digits: "5")))
    halves.run(frames: 30, caller: { tone($0) }, called: { tone($0) })
    #expect(halves.called.toTrunk.contains { $0.header.payloadType == 101 })
    #expect(!halves.caller.toTrunk.contains { $0.header.payloadType == 101 })
  }

  @Test func `an announcement plays once from its beginning, then its end is told`() throws {
    var bench = try Bench()
    bench.command(.setTrunk(Bench.id, bench.trunk))
    let samples = (0..<50).flatMap { tone($0) } + Array(repeating: Int16(0), count: 70)
    bench.command(.play(Bench.id, Announcement(Recording(samples))))
    try bench.run(frames: 51, trunk: { tone($0, hertz: 900) })
    #expect(bench.heardByTrunk.count == 51 * 160 && bench.toTrunk.isContinuous)
    #expect(abs(level(bench.heardByTrunk.prefix(8_000)) / level(tone(3)) - 1) < 0.05)
    func over() -> Bool { bench.events.contains { if case .played = $0 { true } else { false } } }
    #expect(!over())
    try bench.run(frames: 1)
    #expect(over())
    #expect(bench.toTrunk.count == 51)
  }

  @Test(arguments: [AudioEncoding.pcmu, .opus])
  func `in a call an announcement replaces the app, and the app is heard again`(
    encoding: AudioEncoding
  ) throws {
    var bench = try Bench(app: encoding)
    bench.connect()
    try bench.run(frames: 50, app: { tone($0, hertz: 400) })
    bench.command(.play(Bench.id, Announcement(Recording([Int16](repeating: 0, count: 50 * 160)))))
    let before = bench.heardByTrunk.count
    try bench.run(frames: 51, app: { tone($0, hertz: 400) })
    let during = bench.heardByTrunk.dropFirst(before + 320).prefix(45 * 160)
    #expect(level(during) < 20 && bench.toTrunk.isContinuous)
    try bench.run(frames: 50, app: { tone($0, hertz: 400) })
    #expect(level(bench.heardByTrunk.suffix(20 * 160)) > 1_000 && bench.toTrunk.isContinuous)
    #expect(bench.toTrunk.count == 151, "one packet for each tick, and the app's in that of the end")
  }

  @Test(arguments: [AudioEncoding.pcmu, .opus]) func `the app is heard in the tick behind the last of an announcement`(
    encoding: AudioEncoding
  ) throws {
    var bench = try Bench(app: encoding)
    bench.connect()
    try bench.run(frames: 50, app: { tone($0, hertz: 400) })
    bench.command(.play(Bench.id, Announcement(Recording([Int16](repeating: 0, count: 50 * 160)))))
    try bench.run(frames: 50, app: { tone($0, hertz: 400) })
    #expect(level(bench.heardByTrunk.suffix(160)) < 20)
    let before = bench.toTrunk.count
    try bench.run(frames: 1, app: { tone($0, hertz: 400) })
    #expect(bench.events.contains { if case .played = $0 { true } else { false } })
    #expect(bench.toTrunk.count == before + 1 && level(bench.heardByTrunk.suffix(160)) > 1_000)
  }

  @Test(arguments: [AudioEncoding.pcmu, .opus]) func `an announcement that is stopped ends at once, without a word of its end`(
    encoding: AudioEncoding
  ) throws {
    var bench = try Bench(app: encoding)
    bench.connect()
    try bench.run(frames: 50, app: { tone($0, hertz: 400) })
    bench.command(.play(Bench.id, nil))
    try bench.run(frames: 5, app: { tone($0, hertz: 400) })
    bench.command(.play(Bench.id, Announcement(Recording([Int16](repeating: 0, count: 50 * 160)))))
    try bench.run(frames: 10, app: { tone($0, hertz: 400) })
    #expect(level(bench.heardByTrunk.suffix(160)) < 20)
    bench.command(.play(Bench.id, nil))
    try bench.run(frames: 2, app: { tone($0, hertz: 400) })
    #expect(level(bench.heardByTrunk.suffix(160)) > 1_000 && bench.toTrunk.isContinuous && bench.toTrunk.count == 67)
    #expect(!bench.events.contains { if case .played = $0 { true } else { false } })
  }

  @Test func `an announcement waits for the trunk's description, and an empty one is over at once`() throws {
    var bench = try Bench()
    bench.command(.play(Bench.id, Announcement(Recording((0..<5).flatMap { tone($0) }))))
    try bench.run(frames: 20)
    #expect(bench.toTrunk.isEmpty && bench.events.isEmpty)
    bench.command(.setTrunk(Bench.id, bench.trunk))
    try bench.run(frames: 6)
    #expect(bench.toTrunk.count == 5 && bench.events.count == 1)
    bench.command(.play(Bench.id, Announcement(Recording([]))))
    try bench.run(frames: 1)
    #expect(bench.events.count == 2)
  }
}
