import Bytes

/// First words (protocol.md): audio that is kept while the other side cannot hear it yet, then played faster until it is live again.
///
/// | phase | `push` | `pull` |
/// |---|---|---|
/// | holding | keeps the frame; when 1.5 s are full a pause goes first, else the oldest frame | – |
/// | catching up (`release`) | appends, or drops a frame of a pause | 160 samples, of at most 200 kept ones |
/// | live | – | – : the caller passes frames through |
///
/// Speed comes from leaving out whole pitch periods, cross-faded, so that the voice keeps its height. After 3 s what is left is skipped.
/// One slab of 12,480 samples, allocated when made; nothing after that.
struct KeptAudio: ~Copyable {
  private(set) var isHolding = true
  /// Samples kept now.
  private(set) var count = 0
  /// Samples that were dropped unheard: pauses and what overflowed.
  private(set) var dropped = 0
  private var deadline = Instant.distantFuture
  /// How many samples may be left out now, so that speed stays at most 1.25.
  private var credit = 0
  private var lastWasPause = false
  private static let capacity = Limits.keptSamples + 3 * Frame.samples
  private static let shortestPeriod = 20  // 400 Hz
  private static let longestPeriod = 120  // 67 Hz
  private static let overlap = 64
  // `capacity` initialised samples of which `count` are valid, oldest first; freed in deinit.
  private let samples: UnsafeMutablePointer<Int16>

  init() {
    samples = .allocate(capacity: Self.capacity)
    samples.initialize(repeating: 0, count: Self.capacity)
  }
  deinit { samples.deallocate() }

  /// Live: nothing is kept and nothing more need be.
  var isFinished: Bool { !isHolding && count == 0 }

  /// Appends one frame.
  mutating func push(_ frame: UnsafePointer<Int16>) {
    let pause = Self.isPause(frame)
    if isHolding {
      if pause, count == 0 { return }  // what comes before the first word is not worth keeping
      if count + Frame.samples > Limits.keptSamples { makeRoom() }
    } else if pause, lastWasPause, count >= Frame.samples {
      dropped += Frame.samples
      return
    }
    lastWasPause = pause
    guard count + Frame.samples <= Self.capacity else { return }
    (samples + count).update(from: frame, count: Frame.samples)
    count += Frame.samples
  }

  /// The other side hears now: long pauses are shortened and the rest is played.
  mutating func release(at now: Instant) {
    guard isHolding else { return }
    isHolding = false
    deadline = now + Limits.catchUp
    shortenPauses()
  }

  /// One frame of play-out into `out` after the live frame was pushed; false if there is less than a frame.
  mutating func pull(into out: UnsafeMutablePointer<Int16>, at now: Instant) -> Bool {
    guard !isHolding, count >= Frame.samples else {
      if !isHolding { count = 0 }
      return false
    }
    if now >= deadline, count > Frame.samples { leaveOut(count - Frame.samples) }
    credit = min(credit + Frame.samples / 4, Self.longestPeriod)
    let spare = count - Frame.samples
    if spare > 0 { hasten(spare: spare) }
    out.update(from: samples, count: Frame.samples)
    remove(Frame.samples, at: 0)
    return true
  }

  // MARK: Speed

  /// Leaves out one period if the budget allows a good one.
  private mutating func hasten(spare: Int) {
    if spare <= min(credit, Self.shortestPeriod) {
      leaveOut(spare)
      credit -= spare
      return
    }
    let longest = min(credit, spare, Self.longestPeriod)
    guard longest >= Self.shortestPeriod, count >= longest + Self.overlap else { return }
    var best = (period: 0, score: 0.0)
    var period = Self.shortestPeriod
    while period <= longest {
      let score = similarity(period)
      if score > best.score { best = (period, score) }
      period += 1
    }
    // In a bad spot wait for a better one, but not for ever: with a full budget any cut is taken.
    guard best.score > 0.6 || credit >= Self.longestPeriod else { return }
    let cut = best.score > 0.3 ? best.period : longest
    leaveOut(cut)
    credit -= cut
  }

  /// Normalised correlation of the start with itself `period` later, 0…1.
  private func similarity(_ period: Int) -> Double {
    var (cross, energy, shifted) = (Int64(0), Int64(1), Int64(1))
    for k in 0..<Self.overlap {
      let (a, b) = (Int64(samples[k]), Int64(samples[k + period]))
      cross &+= a &* b
      energy &+= a &* a
      shifted &+= b &* b
    }
    guard cross > 0 else { return 0 }
    return Double(cross) / (Double(energy) * Double(shifted)).squareRoot()
  }

  /// Removes `length` samples at the start, fading from before the cut to after it. `length` < `count`.
  private mutating func leaveOut(_ length: Int) {
    let fade = min(Self.overlap, count - length)
    for k in 0..<max(0, fade) {
      let mixed = (Int(samples[k]) * (fade - k) + Int(samples[k + length]) * k) / fade
      samples[k + length] = Int16(truncatingIfNeeded: mixed)
    }
    dropped += length
    remove(length, at: 0)
  }

  // MARK: Pauses

  private mutating func makeRoom() {
    var start = 0
    while start + Frame.samples <= count {
      if Self.isPause(samples + start) { break }
      start += Frame.samples
    }
    remove(Frame.samples, at: start + Frame.samples <= count ? start : 0)
    dropped += Frame.samples
  }

  /// Of every pause two frames stay, none at the end.
  private mutating func shortenPauses() {
    var (start, run) = (0, 0)
    while start + Frame.samples <= count {
      run = Self.isPause(samples + start) ? run + 1 : 0
      if run > 2 {
        remove(Frame.samples, at: start)
        dropped += Frame.samples
      } else {
        start += Frame.samples
      }
    }
  }

  private mutating func remove(_ length: Int, at start: Int) {
    (samples + start).update(from: samples + start + length, count: count - start - length)
    count -= length
  }

  /// Below −50 dB of full scale on the mean.
  static func isPause(_ frame: UnsafePointer<Int16>) -> Bool {
    var sum = 0
    for k in 0..<Frame.samples { sum &+= Int(frame[k]) &* Int(frame[k]) }
    return sum < Frame.samples * 100 * 100
  }
}
