import SpeechScore
import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

@testable import TrunklineMediaSession

@Suite struct SilenceTests {
  /// Line noise of about −66 dBov: the odd step of the law around zero.
  private func line(_ frame: Int) -> [Int16] { (0..<160).map { ($0 * 7 + frame * 13) % 5 == 0 ? 8 : -8 } }

  private let pausing = OpusPreferences(acceptsPauses: true)

  /// How much later than their timestamps say packets were sent, in milliseconds: the worst of them all.
  private func lateness(_ packets: [Bench.Packet], clockRateHz: Double = 48_000) -> Double {
    guard let first = packets.first else { return 0 }
    return packets.map { packet in
      let said = Double(Int32(bitPattern: packet.header.timestamp.raw &- first.header.timestamp.raw)) / clockRateHz * 1_000
      return (packet.at - first.at).inSeconds * 1_000 - said
    }.max() ?? 0
  }

  @Test func `silence of the trunk is described to an app that asked for usedtx, not encoded`() throws {
    var bench = try Bench(preferences: pausing)
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

  @Test func `a talkspurt begins with the marker, at its time, and nothing is sent after its time`() throws {
    var bench = try Bench(preferences: pausing)
    bench.connect()
    try bench.run(frames: 50, trunk: { tone($0) })
    try bench.run(frames: 107, trunk: { line($0) })
    let before = bench.toApp.count
    try bench.run(frames: 40, trunk: { tone($0) })
    let spurt = Array(bench.toApp[before...])
    #expect(spurt.map(\.header.marker) == [true] + Array(repeating: false, count: 39))
    #expect(zip(spurt, spurt.dropFirst()).allSatisfy { $1.header.timestamp.raw == $0.header.timestamp.raw &+ 960 })
    #expect(zip(spurt, spurt.dropFirst()).allSatisfy { $1.at - $0.at == .milliseconds(20) })
    #expect(lateness(bench.toApp) == 0)
    #expect(bench.toApp.isContinuous)
  }

  /// RFC 7587 §6.1: usedtx is 0 where it is not said.
  @Test func `an app that says nothing of pauses gets a stream without gaps, and pauses are not encoded anew`() throws {
    var bench = try Bench()
    bench.connect()
    for _ in 0..<3 {
      try bench.run(frames: 50, trunk: { tone($0) })
      let before = bench.toApp.count
      try bench.run(frames: 200, trunk: { line($0) })
      let pause = bench.toApp[before...].map(\.payload)
      #expect(pause.count == 200)
      // After the hang-over of 12 frames nothing is new.
      let later = pause.dropFirst(20)
      #expect(Set(later).count <= 8 && Set(later).count > 4, "\(Set(later).count)")
      #expect(zip(later, later.dropFirst()).allSatisfy { $0 != $1 }, "the same twice in a row is a buzz")
      #expect(later.allSatisfy { !OpusPacket.carriesRepair($0.span) })
    }
    #expect(bench.toApp.count == 750 && bench.toApp.isContinuous && lateness(bench.toApp) == 0)
    #expect(zip(bench.toApp, bench.toApp.dropFirst()).allSatisfy { $1.header.timestamp.raw == $0.header.timestamp.raw &+ 960 })
    #expect(bench.toApp.dropFirst().allSatisfy { !$0.header.marker })
  }

  @Test func `the noise of a pause is as loud as the line's, also where it is sent over and over`() throws {
    var random = SplitMix64(seed: 2)
    let noise = (0..<300).map { _ in (0..<160).map { _ in Int16(truncatingIfNeeded: Int(random.next() % 65) - 32) } }
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 50, trunk: { tone($0) })
    let before = bench.heardByApp.count
    try bench.run(frames: 300, trunk: { noise[$0] })
    let said = level(noise.joined())
    for part in 0..<5 {
      let start = before + (50 + 50 * part) * 160
      let heard = level(bench.heardByApp[start..<start + 50 * 160])
      #expect(heard > said / 2 && heard < said * 1.5, "\(heard) of \(said)")
    }
  }

  @Test func `in a pause of minutes its packets are made anew every ten seconds`() throws {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 1_200, trunk: { line($0) })
    #expect(bench.toApp.count >= 1_195)
    #expect(Set(bench.toApp.dropFirst(100).map(\.payload)).count > 8)
  }

  @Test(arguments: [false, true]) func `words with pauses between reach the app whole`(takesPauses: Bool) throws {
    var bench = try Bench(preferences: OpusPreferences(acceptsPauses: takesPauses))
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
    #expect(bench.toApp.count == 100)
    #expect(level(bench.heardByApp) > 2)
    bench = try Bench(preferences: pausing)
    bench.connect()
    try bench.run(frames: 100)
    #expect(bench.toApp.count >= 5 && bench.toApp.count <= 6)
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
    #expect(bench.toTrunk.isContinuous && lateness(bench.toTrunk, clockRateHz: 8_000) == 0)
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
