import TrunklineBytes

/// The peer's audio and marks that the media thread has not read yet, in their order. Audio may arrive faster than it is played,
/// as generated speech does, or in bursts, as a network delivers it.
///
/// | state | event | next |
/// |---|---|---|
/// | quiet | `held` frames wait, or fewer, and nothing arrived for that time | talking |
/// | talking | a whole frame waits | a frame is played |
/// | talking | less than a frame waits, and the media thread's ring is empty | it is filled up with silence and played |
/// | talking | a tick found nothing to play (`ranDry`) | quiet |
///
/// For a peer that talks in real time the queue should be empty: after a burst one silent frame in five is dropped until it is. A
/// much longer queue is kept, and played whole.
///
/// Between two ticks the queue may be empty: a peer in time has sent a frame before each. A peer that continues within half a
/// second of a tick without a frame was late: a late frame delays all queued after it; the surplus frame is dropped at the next
/// pause unless an underrun needed it. If the peer is late again within ten seconds, one more frame is held from then on, up to
/// five; after ten seconds without, one less.
struct StreamPlayout {
  private enum Entry {
    case audio([Int16])
    case mark(String)
  }
  let samplesPerFrame: Int
  private var entries: [Entry] = []
  /// Samples of the first entry that were played.
  private var offset = 0
  /// Samples in the queue.
  private(set) var count = 0
  private var marks = 0
  /// Frames queued before a talkspurt begins.
  private(set) var held = Limits.heldFrames.lowerBound
  private var isTalking = false
  private var cameLast = Instant.zero
  private var dryAt: Instant?
  private var wasLate: Instant?
  private var lessAt = Instant.zero
  /// The fewest frames still queued at an arrival, and the number of arrivals; `spare`: the frames that were never needed.
  private var left = Int.max
  private var pieces = 0
  private var spare = 0
  /// Frames since one was dropped.
  private var sinceCut = 0
  /// Samples and marks that did not fit.
  private(set) var droppedSamples = 0
  private(set) var droppedMarks = 0

  init(samplesPerFrame: Int) { self.samplesPerFrame = samplesPerFrame }

  /// - Parameter ahead: frames that the media thread has not read yet.
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
      held = held - 1
      lessAt = now
    }
  }

  /// Adds a mark: `next` returns it when all audio before it has been played. Dropped when too many wait.
  mutating func add(mark name: String) {
    guard marks < Limits.marks else {
      droppedMarks += 1
      return
    }
    entries.append(.mark(name))
    marks += 1
  }

  /// Drops all audio. The queued marks are over now.
  mutating func clear() -> [String] {
    let over = entries.compactMap { if case .mark(let name) = $0 { name } else { nil } }
    entries = []
    offset = 0
    count = 0
    marks = 0
    isTalking = false
    dryAt = nil
    forgetSpare()
    return over
  }

  /// A tick found no audio, and the queue is still empty.
  mutating func ranDry(at now: Instant) {
    guard isTalking, count == 0 else { return }
    isTalking = false
    dryAt = now
    forgetSpare()
  }

  private mutating func forgetSpare() { (spare, left, pieces) = (0, .max, 0) }

  /// The next 20 ms if audio is due, and the marks that are over.
  /// - Parameter isStarving: the media thread has no audio left.
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

  /// The next 20 ms, padded with silence, and the marks within.
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

  /// The marks before any audio.
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
