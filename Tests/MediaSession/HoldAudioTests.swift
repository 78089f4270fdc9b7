import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

@testable import TrunklineMediaSession

@Suite struct HoldAudioTests {
  /// 450 ms, not a whole number of frames: the seam lies inside one.
  private static let clip = AudioClip(Recording((0..<3_600).map { k in tone(k / 160, hertz: 300, amplitude: 6_000)[k % 160] }))

  private func bench(_ audio: HoldAudio, app: AudioEncoding = .opus) throws -> Bench {
    var bench = try Bench(app: app, adjust: { $0.holdAudio = audio })
    bench.connect()
    return bench
  }

  /// The largest step from one sample to the next: a tone of 300 Hz at 6,000 makes 1,420, of 440 Hz at 8,000 2,760.
  private func largestStep(_ samples: some Collection<Int16>) -> Int {
    zip(samples, samples.dropFirst()).map { abs(Int($0) - Int($1)) }.max() ?? 0
  }

  @Test func `a held trunk hears the clip over and over, from its beginning, and no click`() throws {
    let clip = try #require(Self.clip)
    var bench = try bench(.clip(clip))
    for _ in 0..<2 {
      try bench.run(frames: 40, trunk: { tone($0) }, app: { tone($0) })
      bench.command(.hold(Bench.id, true))
      let before = (bench.heardByTrunk.count, bench.toApp.count)
      try bench.run(frames: 100, trunk: { tone($0) }, app: { tone($0) })
      #expect(bench.toApp.count == before.1, "the app hears nothing of it")
      let heard = bench.heardByTrunk.dropFirst(before.0)
      #expect(heard.count == 16_000)
      // the clip loops: these samples equal those of a clip earlier
      let late = Array(heard.dropFirst(8_000))
      let same = zip(late, late.dropFirst(3_600)).count { abs(Int($0) - Int($1)) < 400 }
      #expect(same > 4_300, "\(same)")
      #expect(level(late) > 3_000 && largestStep(late) < 2_000)
      bench.command(.hold(Bench.id, false))
    }
    try bench.run(frames: 40, trunk: { tone($0) }, app: { tone($0) })
    #expect(level(bench.heardByTrunk.suffix(1_600)) > 4_000)
    #expect(largestStep(bench.heardByTrunk.dropFirst(1_600)) < 4_500, "no click")
    #expect(bench.toTrunk.isContinuous)
  }

  @Test func `a relayed call is relayed again after the clip, at the next pause`() throws {
    var bench = try bench(.clip(try #require(Self.clip)), app: .pcmu)
    try bench.run(frames: 20, app: { tone($0) })
    bench.command(.hold(Bench.id, true))
    try bench.run(frames: 20, app: { tone($0) })
    bench.command(.hold(Bench.id, false))
    try bench.run(frames: 20, app: { tone($0) })
    try bench.run(frames: 20, app: { _ in quiet })
    let before = bench.toTrunk.count
    try bench.appSays(tone(0))
    #expect(bench.toTrunk.count == before + 1, "relayed: no tick was needed")
    #expect(bench.toTrunk.isContinuous)
  }

  @Test func `a held trunk hears noise or silence where it is told so`() throws {
    for (audio, range) in [(HoldAudio.noise, 1.0...200.0), (.silence, 0.0...10.0)] {
      var bench = try bench(audio)
      try bench.run(frames: 40, app: { tone($0) })
      bench.command(.hold(Bench.id, true))
      try bench.run(frames: 50, app: { tone($0) })
      #expect(range.contains(level(bench.heardByTrunk.suffix(6_400))))
    }
  }

  @Test func `a trunk that holds us gets nothing, even if we hold too`() throws {
    var bench = try bench(.clip(try #require(Self.clip)))
    try bench.run(frames: 20, app: { tone($0) })
    var held = bench.trunk
    held.sends = false
    bench.command(.setTrunk(Bench.id, held))
    bench.command(.hold(Bench.id, true))
    let before = bench.toTrunk.count
    try bench.run(frames: 20, app: { tone($0) })
    #expect(bench.toTrunk.count == before)
  }

  @Test(arguments: [AudioEncoding.pcmu, .pcma])
  func `after a hold of the trunk's the timestamp has passed over it, and a talkspurt begins (RFC 3550 §5.1)`(
    _ encoding: AudioEncoding
  )
    throws
  {
    var bench = try Bench(app: .opus, trunk: encoding)
    bench.connect()
    try bench.run(frames: 20, app: { tone($0) })
    var held = bench.trunk
    held.sends = false
    bench.command(.setTrunk(Bench.id, held))
    try bench.run(frames: 60, app: { tone($0) })
    let before = try #require(bench.toTrunk.last)
    let count = bench.toTrunk.count
    held.sends = true
    bench.command(.setTrunk(Bench.id, held))
    try bench.run(frames: 5, app: { tone($0) })
    let after = bench.toTrunk[count]
    #expect(after.header.sequence.raw == before.header.sequence.raw &+ 1 && after.header.marker)
    let frames = (after.header.timestamp.raw &- before.header.timestamp.raw) / 160
    #expect((60...62).contains(frames), "\(frames) frames")
  }

  @Test func `a clip that is too short is refused, one that is too long is cut`() {
    #expect(AudioClip(Recording([Int16](repeating: 1, count: 319))) == nil)
    #expect(AudioClip(Recording([Int16](repeating: 1, count: 1_000_000)))?.count == 960_000)
  }
}
