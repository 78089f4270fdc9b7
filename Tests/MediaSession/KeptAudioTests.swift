import SpeechScore
import Testing
import TrunklineAudioCodecs
import TrunklineBytes

@testable import TrunklineMediaSession

@Suite struct KeptAudioTests {
  /// Ticks of a voice-like signal, numbered by their strength so that the order can be seen; `quiet` ticks are pauses.
  static func tick(_ number: Int, quiet: Bool = false) -> [Int16] {
    (0..<160).map { sample in
      let index = number * 160 + sample
      let phase = Double(index % 40) / 40
      return quiet ? Int16(index % 3) : Int16(9000 * (1 - 2 * phase) * (1 - phase))
    }
  }

  /// A store driven as a session drives it: the live frame in, the next one out, 20 ms apart.
  final class Store {
    var kept = KeptAudio(.narrowband)
    func keep(_ tick: [Int16]) { tick.withUnsafeBufferPointer { kept.push($0.baseAddress!) } }
    /// What is heard instead of the live frame; behind: not yet live.
    func exchange(_ tick: [Int16]) -> (samples: [Int16], behind: Bool) {
      kept.release()
      guard !kept.isFinished else { return (tick, false) }
      keep(tick)
      var samples = tick
      let played = samples.withUnsafeMutableBufferPointer { kept.pull(into: $0.baseAddress!) }
      return (played ? samples : [Int16](repeating: 0, count: 160), !kept.isFinished)
    }
    var backlog: Int { kept.count / 8 }
  }

  @Test func `nothing kept, nothing changed`() {
    let store = Store()
    let out = store.exchange(Self.tick(3))
    #expect(!out.behind && out.samples == Self.tick(3))
  }

  @Test func `the first kept tick is the first heard`() {
    let store = Store()
    for number in 0..<10 { store.keep(Self.tick(number)) }
    #expect(store.backlog == 200)
    let out = store.exchange(Self.tick(10))
    #expect(out.behind)
    #expect(Array(out.samples[..<80]) == Array(Self.tick(0)[..<80]))
  }

  @Test(arguments: [5, 20, 37, 75])
  func `speech kept is caught up at no more than 1.25 times speed, without leaving anything out`(_ kept: Int) {
    let store = Store()
    for number in 0..<kept { store.keep(Self.tick(number)) }
    var live = kept
    var ticks = 0
    while true {
      let out = store.exchange(Self.tick(live))
      ticks += 1
      live += 1
      #expect(LevelMeter.decibels(LevelMeter.meanSquare(out.samples.span)) > -25)
      guard out.behind, ticks < 400 else { break }
    }
    // 20 ms are gained in 80 ms at best; periods of 5 ms make it a little slower.
    #expect(ticks >= kept * 4 - 4)
    #expect(ticks <= kept * 4 + 3)
    #expect(store.kept.dropped == 0)
  }

  /// 1.5 s at 1.25 times the speed take 6 s.
  @Test(arguments: [0, 1_000, 3_000])
  func `a full store of speech is caught up within 6 s, and only pauses are left out`(_ start: Int) {
    let speech = (0..<DemoSpeech.telephone.count / 160).map { tick in
      var samples = [Int16](repeating: 0, count: 160)
      var span = samples.mutableSpan
      _ = G711.decode(DemoSpeech.telephone[tick * 160..<tick * 160 + 160].span, law: .mu, into: &span)
      return samples
    }
    let store = Store()
    var number = start / 20
    while store.backlog < 1_500 {
      store.keep(speech[number])
      number += 1
    }
    var ticks = 0
    while store.exchange(speech[number + ticks]).behind, ticks < 400 { ticks += 1 }
    #expect(ticks <= 301, "\(ticks)")
    #expect(store.backlog == 0)
  }

  @Test func `pauses go before words when the store is full`() {
    let store = Store()
    // 0.4 s of speech, a second of pause, 1 s of speech: 2.4 s.
    for number in 0..<20 { store.keep(Self.tick(number)) }
    for number in 20..<70 { store.keep(Self.tick(number, quiet: true)) }
    for number in 70..<120 { store.keep(Self.tick(number)) }
    #expect(store.backlog == 1500)
    let out = store.exchange(Self.tick(120))
    #expect(Array(out.samples[..<80]) == Array(Self.tick(0)[..<80]))
  }

  @Test func `silence before the first word is not kept`() {
    let store = Store()
    for number in 0..<60 { store.keep(Self.tick(number, quiet: true)) }
    #expect(store.backlog <= 40)
    store.keep(Self.tick(60))
    #expect(store.backlog <= 60)
  }

  @Test func `a pause in what was kept is cut, so that catching up is quick`() {
    let store = Store()
    for number in 0..<10 { store.keep(Self.tick(number)) }
    for number in 10..<40 { store.keep(Self.tick(number, quiet: true)) }
    for number in 40..<50 { store.keep(Self.tick(number)) }
    var ticks = 0
    while store.exchange(Self.tick(50 + ticks)).behind, ticks < 400 { ticks += 1 }
    // 0.4 s of words at 0.25 per second of gain, the pause for nothing.
    #expect(ticks <= 110)
  }
}
