import SpeechScore
import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

@testable import TrunklineMediaSession

/// A trunk of linear PCM (L16/8000): twice the octets of G.711, transcoded to Opus and back.
@Suite struct LinearTrunkTests {
  @Test(arguments: [10, 20, 30, 60])
  func `speech goes between an L16 trunk and an Opus app, in packets as long as the trunk wants`(_ packetTime: Int) throws {
    var bench = try Bench(app: .opus, trunk: .l16, packetTime: packetTime)
    bench.connect()
    let frames = min(380, speech.count)
    try bench.run(frames: frames, trunk: { speech[$0] }, app: { speech[$0] })
    try bench.run(frames: 10)
    let played = speech[..<frames].flatMap { $0 }
    for (side, heard) in [("app", bench.heardByApp), ("trunk", bench.heardByTrunk)] {
      let comparison = try #require(SpeechComparison(played: played, heard: heard), "\(side)")
      #expect(
        comparison.heardSpeech && comparison.clippedStartMilliseconds <= 20 + packetTime
          && comparison.longestGapMilliseconds <= 40, "\(side): \(comparison)")
    }
    let packets = bench.toTrunk
    #expect(packets.allSatisfy { $0.payload.count == packetTime * 16 && $0.header.payloadType == 97 })
    #expect(
      zip(packets, packets.dropFirst()).allSatisfy {
        $1.header.timestamp.raw &- $0.header.timestamp.raw == UInt32(packetTime * 8)
      })
    #expect(!bench.session.uplink.relay.isOn && !bench.session.downlink.relay.isOn)
  }

  @Test func `a held-up second of 20 ms packets is kept whole`() throws {
    var receiver = try AudioReceiver(encoding: .l16)
    for number in 0..<60 {
      let header = RTPHeader(
        payloadType: 97, marker: false, sequence: SequenceNumber(raw: UInt16(number)),
        timestamp: RTPTimestamp(raw: UInt32(number * 160)), ssrc: SSRC(raw: 1))
      let payload = [UInt8](repeating: 1, count: 320)
      let insertion = receiver.insert(header, payload: payload.span, at: .zero + .milliseconds(5))
      #expect(insertion == .stored, "\(number)")
    }
  }

  @Test func `half a sample at the end makes a payload undecodable, and the call goes on`() throws {
    var bench = try Bench(app: .opus, trunk: .l16)
    bench.connect()
    try bench.run(frames: 20, trunk: { tone($0) })
    bench.trunkSends([UInt8](repeating: 1, count: 321), payloadType: 97)
    bench.trunkTimestamp &+= 160
    let before = bench.heardByApp.count
    try bench.run(frames: 20, trunk: { tone($0) })
    #expect(bench.session.downlink.receiver.statistics.damaged == 1)
    #expect(level(bench.heardByApp.suffix(from: before + 1_600)) > 0.5 * level(tone(0)))
  }
}
