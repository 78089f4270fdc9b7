import AudioCodecs
import Bytes
import RTP
import SpeechScore
import Testing

@testable import MediaSession

@Suite struct SilenceTests {
  /// Line noise of about −66 dBov: the odd step of the law around zero.
  private func line(_ frame: Int) -> [Int16] { (0..<160).map { ($0 * 7 + frame * 13) % 5 == 0 ? 8 : -8 } }

  @Test func `silence of the trunk is described to the app, not encoded`() throws {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 50, trunk: { tone($0) })
    let before = bench.toApp.count
    try bench.run(frames: 500, trunk: { line($0) })
    let pause = bench.toApp[before...]
    // Ten seconds: the hang-over, then a refresh every 400 ms.
    #expect(pause.count <= 12 + 4 + 25, "\(pause.count)")
    #expect(pause.count >= 20)
    #expect(pause.allSatisfy { $0.payload.count > 2 }, "Opus packets of one or two octets need not be sent")
    #expect(pause.allSatisfy { !$0.header.marker })
    #expect(bench.toApp.isContinuous)
  }

  @Test func `a talkspurt begins with the marker, at its time, with the two frames before it`() throws {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 50, trunk: { tone($0) })
    try bench.run(frames: 107, trunk: { line($0) })
    let before = bench.toApp.count
    let last = bench.toApp[before - 1]
    try bench.run(frames: 40, trunk: { tone($0) })
    let spurt = Array(bench.toApp[before...])
    #expect(spurt.map(\.header.marker) == [true] + Array(repeating: false, count: spurt.count - 1))
    #expect(zip(spurt, spurt.dropFirst()).allSatisfy { $1.header.timestamp.raw == $0.header.timestamp.raw &+ 960 })
    #expect(spurt[0].at == spurt[2].at, "three at once")
    #expect(spurt[3].at > spurt[2].at)
    // The third packet lies as far behind the last refresh as ticks went by.
    let ticks = (spurt[2].at - last.at).nanoseconds / 20_000_000
    #expect(Int64(spurt[2].header.timestamp.raw &- last.header.timestamp.raw) == ticks * 960)
    #expect(bench.toApp.isContinuous)
  }

  @Test func `words with pauses between reach the app whole`() throws {
    var bench = try Bench()
    bench.connect()
    let frames = min(600, speech.count)
    try bench.run(frames: frames, trunk: { speech[$0] })
    try bench.run(frames: 20, trunk: { line($0) })
    // The app's own play-out: packets by their timestamps.
    let comparison = try #require(
      SpeechComparison(played: speech[..<frames].flatMap { $0 }, heard: try listen(bench.toApp)))
    #expect(comparison.heardSpeech && comparison.clippedStartMilliseconds <= 20, "\(comparison)")
    #expect(comparison.longestGapMilliseconds <= 40, "\(comparison)")
  }

  /// Decodes at the packets' times, pauses made up by the decoder.
  private func listen(_ packets: [Bench.Packet]) throws -> [Int16] {
    var decoder = try AudioDecoder(encoding: .opus)
    var heard: [Int16] = []
    guard let first = packets.first else { return [] }
    for packet in packets {
      let at = Int(packet.header.timestamp.raw &- first.header.timestamp.raw) / 6
      var frame = [Int16](repeating: 0, count: 960)
      while heard.count < at {
        var span = frame.mutableSpan
        let made = decoder.conceal(160, into: &span)
        heard += frame[..<made]
      }
      var span = frame.mutableSpan
      let length = decoder.decode(packet.payload.span, into: &span)
      heard += frame[..<length]
    }
    return heard
  }

  @Test func `an app that refuses pauses gets every frame`() throws {
    var bench = try Bench(wishes: OpusWishes(takesPauses: false))
    bench.connect()
    try bench.run(frames: 200, trunk: { line($0) })
    #expect(bench.toApp.count >= 195)
  }

  @Test func `music and a noisy street are sent whole`() throws {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 300, trunk: { tone($0, amplitude: 400) })
    #expect(bench.toApp.count >= 295)
  }

  @Test func `a trunk that sends nothing does not leave the app with a dead line`() throws {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 100)
    #expect(bench.toApp.count >= 5 && bench.toApp.count <= 6)
    #expect(level(bench.heardByApp) > 2)
  }

  @Test func `a trunk that took comfort noise is told of a pause and of the level in it`() throws {
    var bench = try Bench(comfortNoise: 13)
    bench.connect()
    try bench.run(frames: 50, app: { tone($0) })
    try bench.run(frames: 200, app: { line($0) })
    let noise = bench.toTrunk.filter { $0.header.payloadType == 13 }
    #expect(noise.count >= 8 && noise.count <= 11, "\(noise.count)")
    #expect(noise.allSatisfy { $0.payload.count == 1 && $0.payload[0] >= 50 && $0.payload[0] <= 73 && !$0.header.marker })
    let before = bench.toTrunk.count
    try bench.run(frames: 40, app: { tone($0) })
    let spurt = Array(bench.toTrunk[before...].drop { $0.header.payloadType == 13 })
    #expect(spurt.map(\.header.marker) == [true] + Array(repeating: false, count: spurt.count - 1))
    #expect(zip(spurt, spurt.dropFirst()).allSatisfy { $1.header.timestamp.raw == $0.header.timestamp.raw &+ 160 })
    #expect(bench.toTrunk.isContinuous)
    let whole = bench.toTrunk[bench.toTrunk.count - 1].header.timestamp.raw &- bench.toTrunk[0].header.timestamp.raw
    #expect(abs(Int(whole) - 289 * 160) <= 160)
  }

  @Test func `a muted call is a pause for a trunk with comfort noise`() throws {
    var bench = try Bench(comfortNoise: 13)
    bench.connect()
    bench.command(.mute(Bench.id, true))
    try bench.run(frames: 100, app: { tone($0) })
    #expect(bench.toTrunk.allSatisfy { $0.header.payloadType == 13 })
    #expect(bench.toTrunk.count == 5)
  }

  @Test func `a trunk without comfort noise gets samples of it, without a gap`() throws {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 50, app: { tone($0) })
    let before = bench.heardByTrunk.count
    try bench.run(frames: 200)
    #expect(bench.toTrunk.count >= 249)
    #expect(bench.toTrunk.isContinuous)
    #expect(bench.toTrunk.allSatisfy { $0.header.payloadType == 0 })
    let pause = level(bench.heardByTrunk[(before + 4_000)...])
    #expect(pause > 5 && pause < 105, "\(pause): audible as a line, not as a sound")
  }

  @Test func `comfort noise of a longer packet time keeps the clock`() throws {
    var bench = try Bench(packetTime: 60, comfortNoise: 13)
    bench.connect()
    for _ in 0..<3 {
      try bench.run(frames: 31, app: { tone($0) })
      try bench.run(frames: 53, app: { line($0) })
    }
    try bench.run(frames: 31, app: { tone($0) })
    #expect(bench.toTrunk.isContinuous)
    let audio = bench.toTrunk.filter { $0.header.payloadType == 0 }
    #expect(audio.allSatisfy { $0.payload.count == 480 })
    for (a, b) in zip(bench.toTrunk, bench.toTrunk.dropFirst()) {
      let ticks = Double((b.at - a.at).nanoseconds) / 20e6
      let frames = Double(Int32(bitPattern: b.header.timestamp.raw &- a.header.timestamp.raw)) / 160
      #expect(abs(ticks - frames) <= 5, "time and timestamp go together: \(ticks) \(frames)")
    }
  }
}
