import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

@testable import TrunklineMediaSession

/// A measure counts played audio, and stops where its stream stops: whatever carriers, apps and people do in a call whose every
/// word is whole, no poor connection is reported.
@Suite struct MeasureTests {
  enum Habit: String, CaseIterable {
    case talksAllTheTime, pausesWithClock, pausesWithoutClock, comfortNoise, trunkFallsSilent, appFallsSilent, bothPause
    case holdOfTheApp, muteOfTheApp, jumpOfStamps, jumpOfNumbers, newSource
  }

  /// What both ends do in frame `index`, of 1,500.
  private func frame(_ habit: Habit, _ index: Int, _ bench: inout Bench) throws {
    // words of 1.2 s, pauses of 3 s
    let position = index % 210
    let (isWord, isResuming) = (position < 60, position == 0 && index > 0)
    var (trunkTalks, appTalks) = (true, true)
    switch habit {
    case .talksAllTheTime, .muteOfTheApp: break
    case .pausesWithClock, .pausesWithoutClock, .comfortNoise: trunkTalks = isWord
    case .trunkFallsSilent: trunkTalks = index < 60
    case .appFallsSilent: appTalks = index < 60
    case .bothPause: (trunkTalks, appTalks) = (isWord, isWord)
    case .holdOfTheApp: if (200..<1_200).contains(index) { (trunkTalks, appTalks) = (false, false) }
    case .jumpOfStamps: if isResuming { bench.trunkTimestamp &+= 3_000_000 }
    case .jumpOfNumbers: if isResuming { bench.trunkSequence &+= 20_000 }
    case .newSource: break
    }
    if habit == .holdOfTheApp, index == 200 || index == 1_200 { bench.command(.hold(Bench.id, index == 200)) }
    if habit == .muteOfTheApp, index == 300 || index == 900 { bench.command(.mute(Bench.id, index == 300)) }
    if trunkTalks, habit == .newSource {
      var octets = [UInt8](repeating: 0, count: 160)
      var span = octets.mutableSpan
      let said = speech[index % speech.count]
      _ = bench.trunk.encoding.encodeSamples(said.span, into: &span)
      bench.trunkSends(octets, payloadType: bench.trunk.payloadType, ssrc: UInt32(0x1234 + index / 210))
      bench.trunkTimestamp &+= 160
    } else if trunkTalks {
      bench.trunkSays(speech[index % speech.count])
    } else {
      if habit == .comfortNoise, position == 60 { bench.trunkSends([60], payloadType: 13) }
      if habit != .pausesWithoutClock { bench.trunkTimestamp &+= 160 }
    }
    if appTalks { try bench.appSays(speech[index % speech.count]) } else { bench.appTimestamp &+= 960 }
    bench.tick()
  }

  @Test(arguments: Habit.allCases)
  func `whole words are a good connection in both directions`(habit: Habit) throws {
    var bench = try Bench()
    bench.connect()
    for index in 0..<1_500 { try frame(habit, index, &bench) }
    bench.command(.close(Bench.id))
    let closed = bench.events.compactMap { event in if case .closed(_, let statistics) = event { statistics } else { nil } }
    let statistics = try #require(closed.last)
    for (name, stream) in [("trunk", statistics.fromTrunk), ("app", statistics.fromApp)] {
      #expect(stream.playout.bufferDelayMilliseconds < 60, "\(name): \(stream.playout.bufferDelayMilliseconds) ms of delay")
      #expect(stream.playout.concealedMilliseconds <= 60, "\(name): \(stream.playout.concealedMilliseconds) ms made up")
      #expect(stream.meanOpinionScore ?? 0 > 4, "\(name): MOS \(stream.meanOpinionScore ?? 0)")
    }
  }
}
