import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

@testable import TrunklineMediaSession

/// A ring of frames between two threads.
@Suite struct AudioTapTests {
  private func frame(_ number: Int) -> TappedFrame {
    TappedFrame(.trunkToApp, .narrowband, at: Instant(nanoseconds: Int64(number)))
  }

  @Test func `frames come out in order; a full tap drops and counts frames, and the writer continues`() {
    let tap = AudioTap(frames: 8)
    let samples = [Int16](repeating: 7, count: 320)
    var fitted = 0
    for number in 0..<20 { if tap.put(frame(number), samples) { fitted += 1 } }
    #expect(fitted == 8 && tap.dropped == 12 && tap.count == 8)
    var seen: [Int64] = []
    while tap.pop({ head, _ in seen.append(head.at.nanoseconds) }) {}
    #expect(seen == Array(0..<8) && tap.count == 0)
    let again = tap.put(frame(99), samples)
    #expect(again && tap.count == 1)
  }

  @Test func `a writer and a reader on two threads lose nothing that is not counted, and no frame is torn`() async {
    let tap = AudioTap(frames: 16)
    let most = 20_000
    let writer = Task.detached {
      for number in 1...most {
        let samples = [Int16](repeating: Int16(truncatingIfNeeded: number), count: 320)
        tap.put(TappedFrame(.appToTrunk, .wideband, at: Instant(nanoseconds: Int64(number))), samples)
      }
    }
    let reader = Task.detached { () -> (count: Int, torn: Int, last: Int64) in
      var (count, torn, last) = (0, 0, Int64(0))
      while count + tap.dropped < most {
        tap.pop { head, samples in
          let wanted = Int16(truncatingIfNeeded: head.at.nanoseconds)
          if (0..<320).contains(where: { samples[$0] != wanted }) || head.at.nanoseconds <= last { torn += 1 }
          last = head.at.nanoseconds
          count += 1
        }
      }
      return (count, torn, last)
    }
    await writer.value
    let result = await reader.value
    #expect(result.torn == 0 && result.count > 0 && result.count + tap.dropped == most)
  }
}

/// What a session writes into taps and streams.
@Suite struct TapTests {
  private func all(_ tap: AudioTap) -> [(TappedFrame, [Int16])] {
    var out: [(TappedFrame, [Int16])] = []
    while tap.pop({ out.append(($0, Array(UnsafeBufferPointer(start: $1, count: $0.band.samplesPerTick)))) }) {}
    return out
  }
  private func tone(_ period: Int, _ count: Int = 160) -> [Int16] {
    (0..<count).map { $0 % period < period / 2 ? 4_000 : -4_000 }
  }
  private func energy(_ samples: [Int16]) -> Int { samples.reduce(0) { $0 + abs(Int($1)) } / max(1, samples.count) }

  @Test(arguments: [AudioEncoding.opus, .pcmu])
  func `each side comes as a frame each 20 ms with its time, also of a call that was relayed until then`(_ app: AudioEncoding)
    throws
  {
    var bench = try Bench(app: app)
    bench.connect()
    let (low, high) = (tone(16), tone(8))
    try bench.run(frames: 50, trunk: { _ in low }, app: { _ in high })
    let tap = AudioTap()
    bench.command(.tap(Bench.id, tap))
    let began = bench.now
    try bench.run(frames: 100, trunk: { _ in low }, app: { _ in high })
    let frames = all(tap)
    for direction in AudioDirection.allCases {
      let side = frames.filter { $0.0.direction == direction }
      #expect((97...100).contains(side.count), "\(direction): \(side.count)")
      #expect(zip(side, side.dropFirst()).allSatisfy { $1.0.at - $0.0.at == .milliseconds(20) })
      #expect(side.first.map { $0.0.at - began < .milliseconds(80) } == true)
      #expect(energy(side.dropFirst(10).flatMap(\.1)) > 1_500)
      // the period tells the sides apart
      let crossings = zip(side[50].1, side[50].1.dropFirst()).count { ($0 < 0) != ($1 < 0) }
      #expect(
        direction == .trunkToApp ? (14...26).contains(crossings) : (32...48).contains(crossings), "\(direction): \(crossings)")
    }
    #expect(tap.dropped == 0)
    // and no longer, once the tap is removed
    bench.command(.tap(Bench.id, nil))
    try bench.run(frames: 20, trunk: { _ in low }, app: { _ in high })
    #expect(tap.count == 0)
  }

  @Test func `a reader that has gone away costs dropped frames and not the call`() throws {
    var bench = try Bench()
    bench.connect()
    let tap = AudioTap(frames: 16)
    bench.command(.tap(Bench.id, tap))
    let sound = tone(16)
    try bench.run(frames: 200, trunk: { _ in sound }, app: { _ in sound })
    #expect(tap.count == 16 && tap.dropped > 350)
    #expect(bench.toTrunk.count > 195 && bench.toApp.count > 190)
  }

  @Test func `a hold is a gap on both sides, a muted app is silent`() throws {
    var bench = try Bench()
    bench.connect()
    let tap = AudioTap()
    bench.command(.tap(Bench.id, tap))
    let sound = tone(16)
    try bench.run(frames: 20, trunk: { _ in sound }, app: { _ in sound })
    _ = all(tap)
    bench.command(.hold(Bench.id, true))
    try bench.run(frames: 30, trunk: { _ in sound }, app: { _ in sound })
    #expect(all(tap).isEmpty)
    bench.command(.hold(Bench.id, false))
    bench.command(.mute(Bench.id, true))
    try bench.run(frames: 30, trunk: { _ in sound }, app: { _ in sound })
    let said = all(tap).filter { $0.0.direction == .appToTrunk }
    #expect(said.count > 25 && energy(said.dropFirst(5).flatMap(\.1)) < 50)
  }

  @Test func `a stream hears the trunk in each tick and is heard by it; without a frame there is a pause`() throws {
    var bench = try Bench(trunk: .pcma)
    bench.command(.setTrunk(Bench.id, bench.trunk))
    let stream = AudioStream()
    bench.command(.stream(Bench.id, stream))
    var heard: [(TappedFrame, [Int16])] = []
    let (low, high) = (tone(16), tone(8))
    for frame in 0..<100 {
      if frame < 60 { bench.trunkSays(low) }
      if frame < 50 { stream.said.put(TappedFrame(.appToTrunk, .narrowband, at: bench.now), high) }
      bench.tick()
      heard += all(stream.heard)
    }
    #expect(heard.count == 100, "a frame each tick, \(heard.count)")
    #expect(energy(heard[10..<55].flatMap(\.1)) > 2_000 && energy(heard[80...].flatMap(\.1)) < 60)
    #expect(bench.toTrunk.count == 100)
    #expect(energy(Array(bench.heardByTrunk[1_600..<7_200])) > 2_000 && energy(Array(bench.heardByTrunk.suffix(3_200))) < 400)
    #expect(bench.events.contains { if case .firstAudio(_, .appToTrunk, _) = $0 { true } else { false } })
  }

  @Test func `a stream of the other band is converted`() throws {
    var bench = try Bench(trunk: .pcmu)
    bench.command(.setTrunk(Bench.id, bench.trunk))
    let stream = AudioStream()
    bench.command(.stream(Bench.id, stream))
    let wide = tone(32, 320)
    for _ in 0..<50 {
      stream.said.put(TappedFrame(.appToTrunk, .wideband, at: bench.now), wide)
      bench.tick()
    }
    #expect(energy(Array(bench.heardByTrunk.dropFirst(800).prefix(6_000))) > 2_000)
  }
}
