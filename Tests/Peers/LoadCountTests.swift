import Bytes
import Testing

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
    var audio = SampledAudio()
    audio.spoke(frame: 0, at: at(0))
    for (index, frame) in speech.appFrames.prefix(SampledAudio.frames).enumerated() {
      audio.heard(.init(raw: UInt32(960 * index)), frame, at: at(20 * Double(index) + 30))
    }
    let score = try #require(audio.compare(with: speech.app, encoding: .opus))
    #expect(score.heardSpeech && abs(score.delayMilliseconds - 36) < 8, "\(score)")
  }

  @Test func `an endpoint is a ws or wss address`() {
    #expect(WebSocketClient.Endpoint(url: "wss://a.example/v1", subprotocol: "x")?.port == 443)
    #expect(WebSocketClient.Endpoint(url: "http://a.example/", subprotocol: "x") == nil)
  }
}
