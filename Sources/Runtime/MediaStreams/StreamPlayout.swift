import Bytes

/// What a peer has said and the media thread has not taken yet: audio and marks, in their order. Audio may come faster than it is played, as
/// speech that a machine makes does, or in bursts, as a network brings it.
///
/// | state | event | next |
/// |---|---|---|
/// | quiet | `held` frames wait, or less and nothing came for as long | talking |
/// | talking | a whole frame waits | a frame is played |
/// | talking | less than a frame waits, and the ring behind is empty | what waits is filled up and played |
/// | talking | a tick found nothing to play (`ranDry`) | quiet |
///
/// Of a peer that talks in real time nothing should wait: after a burst a silent frame in five is left out until it does not any longer. What
/// comes much faster waits in any case, and is played whole.
///
/// Between two ticks nothing need wait: who is in time has given a frame before each. Who continues within half a second of a tick without
/// one was late: what came late waits in front of all that follows. It is left out at the next pause if it was never needed since; who is
/// late again within ten seconds has one frame more held from then on, up to five; after ten seconds without, one less.
struct StreamPlayout {
  private enum Entry {
    case audio([Int16])
    case mark(String)
  }
  let samplesPerFrame: Int
  private var entries: [Entry] = []
  /// Samples of the first entry that are played.
  private var offset = 0
  /// Samples that wait.
  private(set) var count = 0
  private var marks = 0
  /// Frames that a talkspurt begins with.
  private(set) var held = Limits.heldFrames.lowerBound
  private var isTalking = false
  private var cameLast = Instant.zero
  private var dryAt: Instant?
  private var wasLate: Instant?
  private var lessAt = Instant.zero
  /// Frames that still waited at each arrival, and the number of arrivals; of these frames, those that were not needed.
  private var left = Int.max
  private var pieces = 0
  private var spare = 0
  /// Frames since one was left out.
  private var sinceCut = 0
  /// Samples and marks that found no room.
  private(set) var droppedSamples = 0
  private(set) var droppedMarks = 0

  init(samplesPerFrame: Int) { self.samplesPerFrame = samplesPerFrame }

  /// - Parameter ahead: frames that the media thread has not taken yet.
  mutating func add(_ samples: [Int16], ahead: Int = 0, at now: Instant) {
    guard !samples.isEmpty else { return }
    look(at: ahead)
    guard count + samples.count <= Limits.queuedSeconds * 50 * samplesPerFrame, entries.count < Limits.queuedPieces else {
      droppedSamples += samples.count
      return
    }
    if count == 0, !isTalking, let dryAt { learn(from: now - dryAt, at: now) }
    dryAt = nil
    cameLast = now
    entries.append(.audio(samples))
    count += samples.count
  }

  private mutating func look(at ahead: Int) {
    left = min(left, ahead + count / samplesPerFrame)
    pieces += 1
    if pieces >= Limits.sparePieces { (spare, left, pieces) = (left, .max, 0) }
  }

  private mutating func learn(from gap: Duration, at now: Instant) {
    let isCalm = wasLate.map { now - $0 >= Limits.calm } ?? true
    if gap < Limits.lateWithin {
      if !isCalm { held = min(Limits.heldFrames.upperBound, held + 1) }
      wasLate = now
    } else if isCalm, now - lessAt >= Limits.calm, held > Limits.heldFrames.lowerBound {
      (held, lessAt) = (held - 1, now)
    }
  }

  /// A mark is over, and among those that `next` returns, when all audio before it has been played. Dropped when too many wait.
  mutating func add(mark name: String) {
    guard marks < Limits.marks else {
      droppedMarks += 1
      return
    }
    entries.append(.mark(name))
    marks += 1
  }

  /// Forgets everything. The marks that waited are over now.
  mutating func clear() -> [String] {
    let over = entries.compactMap { if case .mark(let name) = $0 { name } else { nil } }
    (entries, offset, count, marks) = ([], 0, 0, 0)
    (isTalking, dryAt) = (false, nil)
    forgetSpare()
    return over
  }

  /// A tick found nothing, and still nothing waits.
  mutating func ranDry(at now: Instant) {
    guard isTalking, count == 0 else { return }
    (isTalking, dryAt) = (false, now)
    forgetSpare()
  }

  private mutating func forgetSpare() { (spare, left, pieces) = (0, .max, 0) }

  /// The next 20 ms if there is something to be played, and the marks that are over.
  /// - Parameter isStarving: the media thread has nothing left.
  mutating func next(isStarving: Bool, at now: Instant) -> (frame: [Int16]?, marks: [String]) {
    let waited = now - cameLast
    if !isTalking, count > 0, count >= held * samplesPerFrame || waited >= .milliseconds(20 * held) { isTalking = true }
    let isDue = isTalking && (count >= samplesPerFrame || (isStarving && count > 0 && waited >= .milliseconds(20)))
    guard isDue else { return (nil, popMarks()) }
    var over: [String] = []
    var frame = popFrame(&over)
    sinceCut += 1
    let surplus = count / samplesPerFrame
    let isTooMuch = surplus > held || spare >= held
    if sinceCut >= Limits.cutEvery, isTooMuch, surplus <= Limits.liveFrames, waited < .milliseconds(40), Self.isSilent(frame) {
      sinceCut = 0
      forgetSpare()
      if surplus > 0 { frame = popFrame(&over) } else if !isStarving { return (nil, over + popMarks()) }
    }
    return (frame, over + popMarks())
  }

  /// The next 20 ms, filled up with silence, and the marks within.
  private mutating func popFrame(_ over: inout [String]) -> [Int16] {
    var frame: [Int16] = []
    var used = 0
    let before = over.count
    while frame.count < samplesPerFrame, used < entries.count {
      switch entries[used] {
      case .mark(let name):
        over.append(name)
        used += 1
      case .audio(let samples):
        let part = min(samplesPerFrame - frame.count, samples.count - offset)
        frame += samples[offset..<offset + part]
        offset += part
        if offset == samples.count { (offset, used) = (0, used + 1) }
      }
    }
    count -= frame.count
    entries.removeFirst(used)
    marks -= over.count - before
    return frame + [Int16](repeating: 0, count: samplesPerFrame - frame.count)
  }

  /// Below −40 dB of full scale.
  private static func isSilent(_ frame: [Int16]) -> Bool { frame.allSatisfy { abs(Int32($0)) < 328 } }

  /// Those before any audio.
  private mutating func popMarks() -> [String] {
    var over: [String] = []
    while case .mark(let name)? = entries.first {
      over.append(name)
      entries.removeFirst()
    }
    marks -= over.count
    return over
  }
}
