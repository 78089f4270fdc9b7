import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineJitterBuffer
import TrunklineRTP

/// First words (docs/reference/protocol.md): audio that is kept while the other end cannot hear it yet, then played faster until
/// it is live again.
///
/// | phase | `push` | `pull` |
/// |---|---|---|
/// | holding | keeps the frame; when 1.5 s are full, drops a pause, else the oldest frame | – |
/// | catching up (`release`) | appends | a frame, at most 1.25 × as fast, pauses cut |
/// | finished | – | –: the caller passes frames through |
///
/// It is played faster by cutting whole pitch periods, cross-faded, so that the voice keeps its pitch: 1.5 s are caught up in 6
/// s, and no word is cut. One slab of 25 KB (50 in wideband), allocated at set-up and when the band changes.
struct KeptAudio: ~Copyable {
  private static let kept = Limits.keptFrames
  private static let capacity = kept + 2
  private let band: AudioBand
  /// Samples of a frame, and in 1/8 ms.
  private let frame: Int
  private let scale: Int
  /// Samples faded where frames are dropped: 5 ms.
  private let fade: Int
  /// Mean square of −50 dB of full scale; a frame 30 dB below the loudest kept one is a pause as well.
  private static let quiet = 1e-5
  private static let quietBelowLoudest = 1e-3

  private(set) var isHolding = true
  /// Samples dropped without being played: pauses and overflow.
  private(set) var dropped = 0

  /// A ring of frames and their mean squares. Invariant: 0 ≤ length ≤ capacity; frames below `length` are in order of time.
  private let frames: UnsafeMutablePointer<Int16>
  private let powers: UnsafeMutablePointer<Double>
  private var head = 0
  private var length = 0
  /// The audio in play-out: at most a frame and two pitch periods ahead.
  private var work: DecodedAudio
  /// The beginning of the first dropped frame, which would have followed the played audio.
  private let omitted: UnsafeMutablePointer<Int16>
  private var hasOmitted = false
  private var lastWasQuiet = true
  /// Samples that may be cut now, so that speed stays at most 1.25.
  private var allowance = 0

  init(_ band: AudioBand) {
    (self.band, frame, scale) = (band, band.samplesPerTick, band.sampleRateHz / 8_000)
    fade = 40 * scale
    work = DecodedAudio(capacity: 4 * frame)
    frames = .allocate(capacity: Self.capacity * frame)
    frames.initialize(repeating: 0, count: Self.capacity * frame)
    powers = .allocate(capacity: Self.capacity)
    powers.initialize(repeating: 0, count: Self.capacity)
    omitted = .allocate(capacity: fade)
    omitted.initialize(repeating: 0, count: fade)
  }

  /// Converts another one's content to another band.
  init(_ other: borrowing KeptAudio, in band: AudioBand) {
    self.init(band)
    let converter = BandConverter()
    let room = work.free
    if let base = room.baseAddress {
      other.work.withSamples { samples, count in
        work.append(converter.convert(samples, count & ~1, from: other.band, to: band, into: base))
      }
    }
    for index in 0..<other.length {
      let source = other.frames + other.slot(index) * other.frame
      converter.convert(source, other.frame, from: other.band, to: band, into: frames + index * frame)
      powers[index] = other.powers[other.slot(index)]
    }
    (length, isHolding, dropped) = (other.length, other.isHolding, BandConverter.count(other.dropped, from: other.band, to: band))
    allowance = BandConverter.count(other.allowance, from: other.band, to: band)
    lastWasQuiet = other.lastWasQuiet
  }

  deinit {
    frames.deallocate()
    powers.deallocate()
    omitted.deallocate()
  }

  /// Samples kept now.
  var count: Int { length * self.frame + work.count }
  /// Live: no audio is kept or needs to be.
  var isFinished: Bool { !isHolding && count == 0 }

  /// Appends one frame.
  mutating func push(_ frame: UnsafePointer<Int16>) {
    if isHolding, length >= Self.kept { makeRoom() }
    if length == Self.capacity { dropFirst() }
    let target = frames + slot(length) * self.frame
    target.update(from: frame, count: self.frame)
    powers[slot(length)] = LevelMeter.meanSquare(Span(_unsafeStart: frame, count: self.frame))
    length += 1
    // Silence before the first word is not kept, except two frames before its onset.
    while isHolding, length > 2, (0..<length).allSatisfy({ isQuiet($0) }) { dropFirst() }
  }

  /// The other end can hear now: kept audio is played.
  mutating func release() { isHolding = false }

  /// Writes one frame of play-out to `out`, after the live frame was pushed; false if less than a frame is kept.
  mutating func pull(into out: UnsafeMutablePointer<Int16>) -> Bool {
    guard !isHolding else { return false }
    allowance = min(allowance + self.frame / 4, 2 * TimeScale.longestLag * scale)
    refill(upTo: self.frame + 2 * TimeScale.longestLag * scale)
    guard work.count >= self.frame else {
      work.removeAll()
      return false
    }
    accelerate()
    if length == 0, work.count < self.frame + TimeScale.shortestLag * scale { endWithFade() }
    var samples = MutableSpan(_unsafeStart: out, count: self.frame)
    work.pop(into: &samples)
    return true
  }

  /// A mean level below −50 dB of full scale.
  static func isPause(_ frame: UnsafePointer<Int16>, _ band: AudioBand) -> Bool {
    LevelMeter.meanSquare(Span(_unsafeStart: frame, count: band.samplesPerTick)) < quiet
  }

  // MARK: Ring

  private func slot(_ index: Int) -> Int { (head + index) % Self.capacity }

  private mutating func dropFirst() {
    guard length > 0 else { return }
    dropped += self.frame
    head = (head + 1) % Self.capacity
    length -= 1
  }

  private func isQuiet(_ index: Int) -> Bool {
    let power = powers[slot(index)]
    if power < Self.quiet { return true }
    var loudest = 0.0
    for other in 0..<length { loudest = max(loudest, powers[slot(other)]) }
    return power < loudest * Self.quietBelowLoudest
  }

  /// Drops a frame inside a pause if there is one (its neighbours stay, so that words keep their edges), else any quiet one, else
  /// the oldest.
  private mutating func makeRoom() {
    var victim = 0
    for index in 1..<max(2, length - 1) where isQuiet(index) {
      if isQuiet(index - 1), isQuiet(index + 1) {
        victim = index
        break
      }
      if victim == 0 { victim = index }
    }
    guard victim > 0 else { return dropFirst() }
    for later in victim..<(length - 1) {
      (frames + slot(later) * self.frame).update(from: frames + slot(later + 1) * self.frame, count: self.frame)
      powers[slot(later)] = powers[slot(later + 1)]
    }
    length -= 1
    dropped += self.frame
  }

  // MARK: Play-out

  private mutating func refill(upTo wanted: Int) {
    while length > 0, work.count < wanted {
      let source = frames + head * self.frame
      if isInsidePause {
        if !hasOmitted { omitted.update(from: source, count: fade) }
        hasOmitted = true
        dropFirst()
        continue
      }
      if hasOmitted { Self.crossFade(from: omitted, to: source, into: source, count: fade) }
      hasOmitted = false
      lastWasQuiet = isQuiet(0)
      let free = work.free
      for index in 0..<min(self.frame, free.count) { free[index] = source[index] }
      work.append(self.frame)
      head = (head + 1) % Self.capacity
      length -= 1
    }
  }

  private var isInsidePause: Bool { length > 1 && lastWasQuiet && isQuiet(0) && isQuiet(1) }

  /// Cuts one period if the allowance covers it.
  private mutating func accelerate() {
    guard allowance >= TimeScale.shortestLag * scale else { return }
    let limit = min(allowance, work.count - self.frame)
    let (before, band) = (work.count, band)
    work.modify { samples, count in count - TimeScale.shrink(samples, count: count, limit: limit, band: band, urgent: true) }
    allowance -= before - work.count
  }

  /// Removes the last samples of delay, less than a period, by a fade over the whole frame.
  private mutating func endWithFade() {
    let ahead = work.count - self.frame
    guard ahead > 0 else { return }
    let frame = frame
    work.modify { samples, _ in
      Self.crossFade(from: samples, to: samples + ahead, into: samples, count: frame)
      return frame
    }
  }

  private static func crossFade(
    from a: UnsafePointer<Int16>, to b: UnsafePointer<Int16>, into out: UnsafeMutablePointer<Int16>, count: Int
  ) {
    for index in 0..<count {
      let mixed = Int32(a[index]) * Int32(count - index) + Int32(b[index]) * Int32(index)
      out[index] = Int16(truncatingIfNeeded: mixed / Int32(count))
    }
  }
}
