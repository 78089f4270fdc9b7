import Testing
import TrunklineBytes
import TrunklineClient

@testable import Peers

/// What the load counts must be right before anything is said about the gateway.
@Suite struct LoadCountTests {
  private func at(_ milliseconds: Double) -> Instant { Instant(nanoseconds: 1_000_000_000 + Int64(milliseconds * 1e6)) }

  @Test func `a gap is a loss, a late packet is none, across the wrap of the sequence number`() {
    var stream = StreamCount(clockRateHz: 8000)
    let order = [65_533, 65_534, 0, 65_535, 1, 4, 3]  // 2 never comes
    for (index, sequence) in order.enumerated() {
      stream.receive(sequence: UInt16(sequence), timestamp: 0, at: at(Double(index)), counted: false)
    }
    #expect(stream.received == 7)
    #expect(stream.lost == 1)
    #expect(stream.reordered == 2)
  }

  @Test func `lateness is what a packet takes longer than the fastest of its call`() {
    var stream = StreamCount(clockRateHz: 8000)
    // The first packet only sets the origin; the second is 5 ms faster, the third 2 ms slower than the first.
    for (index, extra) in [0.0, -5, 2].enumerated() {
      stream.receive(sequence: UInt16(index), timestamp: UInt32(160 * index), at: at(20 * Double(index) + extra), counted: true)
    }
    var all = DelayCounts()
    all.addAboveSmallest(stream.delays)
    #expect(all.total == 2)
    #expect(all.quantile(0.5) == 0)
    #expect(abs(all.quantile(1) - 7) < 0.15)
  }

  @Test func `delays beyond the table count at its edge`() {
    var counts = DelayCounts()
    counts.count(.seconds(3))
    counts.count(.seconds(-3))
    #expect(counts.total == 2)
    #expect(counts.quantile(0.5) == -100)
    #expect(counts.quantile(1) > 299)
    #expect(DelayCounts().quantile(0.99) == 0)
  }

  @Test func `a network is three numbers that make sense`() {
    #expect(LoadOptions.Network("2,30,1.5")?.reorderPercent == 1.5)
    for bad in ["", "1,2", "1,2,3,4", "a,0,0", "-1,0,0", "1,,2"] { #expect(LoadOptions.Network(bad) == nil, "\(bad)") }
  }

  @Test func `a call is known again by the number that was dialled, other numbers are nobody's`() throws {
    #expect(LoadCall.number(dialled: "+17771000042") == 42)
    for bad in ["+1777", "+17770000042", "+15551000042", "x", "+1777100004x"] {
      #expect(LoadCall.number(dialled: bad) == nil, "\(bad)")
    }
  }

  @Test func `speech is coded in whole frames of 20 ms, which decode to the sentence`() throws {
    let speech = try CodedSpeech()
    #expect(speech.telephoneFrames.allSatisfy { $0.count == 160 })
    #expect(speech.telephoneFrames.count * 160 == speech.telephone.count)
    #expect(speech.appFrames.count * 160 == speech.app.count)
    let score = try #require(
      heard(speech.appFrames, units: 960, frames: speech.appFrames.count, lost: 0..<0).compare(with: speech.app, encoding: .opus))
    #expect(score.heardSpeech && abs(score.delayMilliseconds - 36) < 8, "\(score)")
  }

  /// A call of so many frames that are said, of which some do not arrive.
  private func heard(_ sentence: [[UInt8]], units: Int, frames: Int, lost: Range<Int>) -> SampledAudio {
    var audio = SampledAudio()
    for index in 0..<frames {
      audio.spoke(at: at(20 * Double(index)))
      guard !lost.contains(index) else { continue }
      audio.received(
        .init(raw: UInt32(units * index)), sentence[index % sentence.count], at: at(20 * Double(index) + 30))
    }
    audio.callEnds()
    // The speaker has not heard of the end yet.
    for index in 0..<20 { audio.spoke(at: at(20 * Double(frames + index))) }
    return audio
  }

  @Test func `a call that ends within the sentence is judged by what was said in it`() throws {
    let speech = try CodedSpeech(relayed: true)
    for (sentence, frames, length) in [
      (speech.telephone, speech.telephoneFrames, 200), (speech.telephone, speech.telephoneFrames, 335),
      (speech.app, speech.appFrames, 250),
    ] {
      let audio = heard(frames, units: 160, frames: length, lost: 0..<0)
      let score = try #require(audio.compare(with: sentence, encoding: .pcmu))
      #expect(score.heardSpeech && score.heardShare > 0.99 && score.clippedStartMilliseconds == 0, "\(length): \(score)")
    }
  }

  @Test func `a call too short for a sentence's beginning is not judged`() throws {
    let speech = try CodedSpeech(relayed: true)
    #expect(heard(speech.appFrames, units: 160, frames: 174, lost: 0..<0).compare(with: speech.app, encoding: .pcmu) == nil)
    #expect(heard(speech.appFrames, units: 160, frames: 174, lost: 0..<0).expected(of: 100_000) == nil)
    #expect(heard(speech.appFrames, units: 160, frames: 175, lost: 0..<0).expected(of: 100_000) == 24_000)
  }

  @Test func `what a gateway clips or swallows is counted, however long the call`() throws {
    let speech = try CodedSpeech(relayed: true)
    let first = try #require(speech.telephoneFrames.firstIndex { frame in frame.contains { ~$0 & 0x70 >= 0x30 } })
    for length in [200, 335, 500] {
      let clipped = heard(speech.telephoneFrames, units: 160, frames: length, lost: 0..<first + 10)
      let score = try #require(clipped.compare(with: speech.telephone, encoding: .pcmu))
      #expect(score.clippedStartMilliseconds > LoadResult.Score.clippedLimitMilliseconds, "\(length): \(score)")
      let swallowed = heard(speech.telephoneFrames, units: 160, frames: length, lost: 60..<110)
      let other = try #require(swallowed.compare(with: speech.telephone, encoding: .pcmu))
      #expect(!other.heardSpeech || length > 335, "\(length): \(other)")
      #expect(other.heardShare < 0.95, "\(length): \(other)")
    }
  }

  @Test func `an endpoint is a ws or wss address`() throws {
    #expect(try WebSocketPool.Endpoint(url: "wss://a.example/v1", isInsecure: false).port == 443)
    #expect(throws: WebSocketPool.AddressError.self) { try WebSocketPool.Endpoint(url: "http://a.example/", isInsecure: false) }
  }
}
