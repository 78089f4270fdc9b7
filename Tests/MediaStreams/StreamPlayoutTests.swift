import Testing
import TrunklineBytes

@testable import MediaStreams

/// What waits between a peer and the trunk.
@Suite struct StreamPlayoutTests {
  private var now = Instant(nanoseconds: 1_000_000_000)
  private var playout = StreamPlayout(samplesPerFrame: 160)

  private func samples(_ frames: Double, _ value: Int16 = 1) -> [Int16] { [Int16](repeating: value, count: Int(160 * frames)) }

  @Test mutating func `what comes at once is played frame by frame in its order, a mark when all before it is played`() {
    playout.add(samples(2, 1), at: now)
    playout.add(mark: "a")
    playout.add(samples(1.5, 2), at: now)
    playout.add(mark: "b")
    var (frames, marks) = ([[Int16]](), [String]())
    for _ in 0..<8 {
      let (frame, over) = playout.next(isStarving: true, at: now)
      if let frame { frames.append(frame) }
      marks += over
      now = now + .milliseconds(20)
    }
    #expect(frames.map { $0[0] } == [1, 1, 2, 2] && frames.allSatisfy { $0.count == 160 })
    #expect(frames[3][79] == 2 && frames[3][80] == 0, "the last half is filled up")
    #expect(marks == ["a", "b"] && playout.count == 0)
  }

  @Test mutating func `less than a frame waits for the rest of it while there is something to play`() {
    playout.add(samples(1.5), at: now)
    #expect(playout.next(isStarving: false, at: now).frame != nil)
    #expect(playout.next(isStarving: false, at: now).frame == nil)
    playout.add(samples(0.5), at: now)
    #expect(playout.next(isStarving: false, at: now).frame != nil)
  }

  @Test mutating func `clear forgets audio and gives back the marks that waited`() {
    playout.add(samples(500), at: now)
    playout.add(mark: "x")
    playout.add(samples(1), at: now)
    playout.add(mark: "y")
    _ = playout.next(isStarving: true, at: now)
    #expect(playout.clear() == ["x", "y"])
    #expect(playout.count == 0 && playout.next(isStarving: true, at: now) == (nil, []))
    playout.add(samples(1, 9), at: now)
    #expect(playout.next(isStarving: true, at: now).frame?.first == 9)
  }

  @Test mutating func `a mark with nothing before it is over at once`() {
    playout.add(mark: "now")
    #expect(playout.next(isStarving: true, at: now).marks == ["now"])
  }

  @Test mutating func `beyond two minutes audio is dropped and counted, beyond a thousand marks too`() {
    for _ in 0..<130 { playout.add(samples(50), at: now) }
    #expect(playout.count == 120 * 8_000 && playout.droppedSamples == 10 * 8_000)
    for number in 0..<1_200 { playout.add(mark: "\(number)") }
    #expect(playout.droppedMarks == 200)
  }

  @Test(arguments: [(Int16(20), true), (3_000, false)])
  func `a burst of somebody who talks in real time does not delay what follows for ever: silence is left out, speech is not`(
    value: Int16, shrinks: Bool
  ) {
    var (line, time) = (playout, now)
    // 200 ms at once, and then in time
    line.add([Int16](repeating: value, count: 1_600), at: time)
    for _ in 0..<100 {
      line.add([Int16](repeating: value, count: 160), at: time)
      #expect(line.next(isStarving: false, at: time).frame != nil)
      time = time + .milliseconds(20)
    }
    #expect(shrinks ? line.count <= 2 * 160 : line.count == 1_600)
  }

  @Test func `what came at once is played whole, its silence too`() {
    var (line, time) = (playout, now)
    line.add([Int16](repeating: 0, count: 20 * 160), at: time)
    var frames = 0
    for _ in 0..<30 {
      time = time + .milliseconds(20)
      if line.next(isStarving: true, at: time).frame != nil { frames += 1 }
    }
    #expect(frames >= 19)
  }

  @Test func `who is late often is given more time, and less again after ten calm seconds`() {
    var (line, time) = (playout, now)
    for _ in 0..<10 { Self.talk(&line, &time, gap: 120) }
    #expect(line.held == 5)
    for _ in 0..<10 {
      // talkspurts far apart
      time = time + .seconds(11)
      Self.talk(&line, &time, gap: 600)
    }
    #expect(line.held < 5)
  }

  /// A ring and its ticks, a millisecond at a time: a frame comes each 20 ms, the one at `lateAt` so much later.
  private func frames(waitingAfter count: Int, tickAt phase: Int, lateAt late: Int? = nil, pauseFrom: Int = .max) -> (
    left: Int, held: Int
  ) {
    var (line, time, ring) = (playout, now, 0)
    for number in 0..<count {
      for millisecond in 0..<20 {
        let arrival = number == late ? phase + 2 : 0
        if millisecond == arrival {
          line.add([Int16](repeating: number >= pauseFrom ? 0 : 3_000, count: 160), ahead: ring, at: time)
        }
        while ring < 2, line.next(isStarving: ring == 0, at: time).frame != nil { ring += 1 }
        if millisecond == phase {
          if ring == 0 { line.ranDry(at: time) } else { ring -= 1 }
        }
        time = time + .milliseconds(1)
      }
    }
    return (ring + line.count / 160, line.held)
  }

  @Test(arguments: [2, 10, 17]) func `who sends a frame before each tick is played at the next one, and nothing is held`(
    phase: Int
  ) {
    #expect(frames(waitingAfter: 500, tickAt: phase) == (0, 1))
  }

  @Test func `what came late once is in front of all that follows until a pause, and then no more`() {
    #expect(frames(waitingAfter: 500, tickAt: 5, lateAt: 30) == (1, 1), "speech is not left out")
    #expect(frames(waitingAfter: 100, tickAt: 5, lateAt: 30, pauseFrom: 90) == (0, 1))
  }

  /// A frame, and so many milliseconds without another, with a tick after 20 and each 20 more.
  private static func talk(_ playout: inout StreamPlayout, _ now: inout Instant, gap: Int) {
    playout.add([Int16](repeating: 1, count: 160), at: now)
    for step in 1...gap / 5 {
      let frame = playout.next(isStarving: true, at: now).frame
      if step % 4 == 0, frame == nil { playout.ranDry(at: now) }
      now = now + .milliseconds(5)
    }
  }
}
