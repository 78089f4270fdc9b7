import SpeechScore
import Testing
import TrunklineAudioCodecs
import TrunklineBytes

/// Bursts of noise with a moving tone: an envelope and a waveform that cannot be mistaken for a shifted copy of themselves.
private func speechLike(seconds: Double, seed: UInt64) -> [Int16] {
  var random = SplitMix64(seed: seed)
  var (phase, step, loudness, left) = (0.0, 0.0, 0.0, 0)
  return (0..<Int(seconds * 8000)).map { _ in
    if left == 0 {
      left = Int.random(in: 600...2400, using: &random)
      loudness = Bool.random(using: &random) ? Double.random(in: 3000...9000, using: &random) : 0
      step = Double.random(in: 0.05...0.4, using: &random)
    }
    left -= 1
    phase += step
    let wave = phase.truncatingRemainder(dividingBy: 2) - 1
    return Int16(loudness * (0.7 * wave + 0.3 * Double.random(in: -1...1, using: &random)))
  }
}

@Suite struct SpeechComparisonTests {
  @Test(arguments: [0, 37, 240, 1300])
  func `delay and level of an unharmed copy are found`(_ delay: Int) throws {
    let played = speechLike(seconds: 4, seed: 7)
    let heard = [Int16](repeating: 0, count: delay * 8) + played.map { $0 / 2 } + [Int16](repeating: 0, count: 4000)
    let result = try #require(SpeechComparison(played: played, heard: heard))
    #expect(abs(result.delayMilliseconds - Double(delay)) < 0.5)
    #expect(abs(result.levelDifferenceDecibels + 6) < 0.2)
    #expect(result.heardShare > 0.99 && result.clippedStartMilliseconds == 0 && result.similarity > 0.98)
  }

  @Test func `a clipped start and a gap are measured`() throws {
    let played = speechLike(seconds: 4, seed: 7).drop { $0 == 0 }.map { $0 }
    var heard = played
    for index in 0..<1600 { heard[index] = 0 }
    let result = try #require(SpeechComparison(played: played, heard: heard))
    #expect((160...220).contains(result.clippedStartMilliseconds))
    #expect(result.longestGapMilliseconds >= 150)
  }

  /// What kept first words do: the trunk's pauses are dropped until the listener has caught up.
  @Test(arguments: [(1, 90), (3, 200), (2, 290)])
  func `speech whose pauses were shortened is heard all the same`(_ cuts: Int, _ milliseconds: Int) throws {
    let played = speechLike(seconds: 8, seed: 7).map { $0 }
    var heard = played
    var done = 0
    var at = 4000
    while done < cuts, at + milliseconds * 8 < heard.count {
      let end = at + milliseconds * 8
      if heard[at..<end].allSatisfy({ $0 == 0 }) {
        heard.removeSubrange(at..<end)
        (done, at) = (done + 1, at + 8_000)
      } else {
        at += 80
      }
    }
    #expect(done == cuts)
    let result = try #require(SpeechComparison(played: played, heard: heard))
    #expect(result.heardSpeech && result.heardShare > 0.97 && result.similarity > 0.9, "\(result)")
  }

  /// The delay differs before and after the cut. Where a single vowel decided, the search went seconds away here.
  @Test(arguments: [60, 200, 600, 900])
  func `speech of which a part is missing is followed before and after it`(_ milliseconds: Int) throws {
    let coded = DemoSpeech.telephone
    var played = [Int16](repeating: 0, count: coded.count)
    var room = played.mutableSpan
    _ = G711.decode(coded.span, law: .mu, into: &room)
    for tenths in [6, 14, 26] {
      let cut = tenths * 800..<tenths * 800 + milliseconds * 8
      let heard = Array(played[..<cut.lowerBound]) + played[cut.upperBound...] + [Int16](repeating: 0, count: 4_000)
      let result = try #require(SpeechComparison(played: played, heard: heard))
      let missing = Double(milliseconds) / 10 / Double(result.activeFrames * 2)
      #expect(result.similarity > 0.95 - missing, "\(tenths) tenths: \(result)")
    }
  }

  @Test func `other speech and silence are not taken for the speech`() throws {
    let played = speechLike(seconds: 4, seed: 7)
    let other = try #require(SpeechComparison(played: played, heard: speechLike(seconds: 4, seed: 8)))
    #expect(!other.heardSpeech)
    let silence = try #require(SpeechComparison(played: played, heard: [Int16](repeating: 0, count: 32000)))
    #expect(!silence.heardSpeech && silence.heardShare == 0)
    #expect(SpeechComparison(played: [Int16](repeating: 0, count: 8000), heard: played) == nil)
  }
}
