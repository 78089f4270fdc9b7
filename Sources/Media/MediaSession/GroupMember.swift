import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

/// One member's position in another member's frames.
struct GroupCursor {
  /// Frames of the other member that were played or skipped.
  var read: UInt64 = 0
  /// The other member is among those that are played.
  var isChosen = true
  /// Nothing was played last, so the next frame fades in.
  var isDry = true
}

/// One trunk's last frames, for the other members of its group.
struct GroupMember: ~Copyable {
  var isUsed = false
  /// The band of the call, as of its last tick.
  var band = AudioBand.narrowband
  /// Frames since the member was created.
  private(set) var written: UInt64 = 0
  /// Mean square of a sample at full scale 1: up at once, down by a fifth each frame.
  private(set) var power = 0.0
  /// The member that this one does not receive; −1: none.
  var leavesOut = -1
  // Indexed by the other member's slot, `Limits.groupMembers` of them; freed in deinit.
  let cursors: UnsafeMutablePointer<GroupCursor>

  private struct FrameState {
    var time = Instant.zero
    var isNarrow = false
    var isWide = false
    var isPause = false
  }
  // `Limits.groupFrames` frames in either band; freed in deinit. `frames` states which bands of a frame are set.
  private let narrow: UnsafeMutablePointer<Int16>
  private let wide: UnsafeMutablePointer<Int16>
  private let frames: UnsafeMutablePointer<FrameState>
  private let toNarrow = BandConverter()
  private let toWide = BandConverter()

  init() {
    (narrow, wide) = (Self.samples(.narrowband), Self.samples(.wideband))
    frames = .allocate(capacity: Limits.groupFrames)
    frames.initialize(repeating: FrameState(), count: Limits.groupFrames)
    cursors = .allocate(capacity: Limits.groupMembers)
    cursors.initialize(repeating: GroupCursor(), count: Limits.groupMembers)
  }
  deinit {
    cursors.deallocate()
    frames.deallocate()
    narrow.deallocate()
    wide.deallocate()
  }

  private static func samples(_ band: AudioBand) -> UnsafeMutablePointer<Int16> {
    let count = Limits.groupFrames * band.samplesPerTick
    let memory = UnsafeMutablePointer<Int16>.allocate(capacity: count)
    memory.initialize(repeating: 0, count: count)
    return memory
  }

  mutating func begin() { (isUsed, power, leavesOut) = (true, 0, -1) }

  @inline(__always) private static func slot(_ number: UInt64) -> Int {
    Int(truncatingIfNeeded: number % UInt64(Limits.groupFrames))
  }

  /// The samples of frame `number` in this band; nil if it has them in the other one only.
  @inline(__always) private func samples(_ number: UInt64, _ band: AudioBand) -> UnsafeMutablePointer<Int16>? {
    let slot = Self.slot(number)
    if band == .wideband { return frames[slot].isWide ? wide + slot &* band.samplesPerTick : nil }
    return frames[slot].isNarrow ? narrow + slot &* band.samplesPerTick : nil
  }

  mutating func mix(_ samples: UnsafePointer<Int16>, _ band: AudioBand, inBoth: Bool, at now: Instant) {
    let slot = Self.slot(written)
    let (low, high) = (narrow + slot &* AudioBand.narrowband.samplesPerTick, wide + slot &* AudioBand.wideband.samplesPerTick)
    let count = band.samplesPerTick
    let own = LevelMeter.meanSquare(Span(_unsafeStart: samples, count: count))
    let isPause = own < max(Limits.groupSilence, power * Limits.groupPause)
    power = max(own, power * 0.8)
    if band == .wideband {
      high.update(from: samples, count: count)
      if inBoth { toNarrow.convert(samples, count, from: band, to: .narrowband, into: low) }
      frames[slot] = FrameState(time: now, isNarrow: inBoth, isWide: true, isPause: isPause)
    } else {
      low.update(from: samples, count: count)
      if inBoth { toWide.convert(samples, count, from: band, to: .wideband, into: high) }
      frames[slot] = FrameState(time: now, isNarrow: true, isWide: inBoth, isPause: isPause)
    }
    written &+= 1
  }

  /// Adds the next frame for one listener; false: it added nothing. HOT
  func add(
    to sum: UnsafeMutablePointer<Int32>, _ band: AudioBand, _ cursor: inout GroupCursor, isChosen: Bool, at now: Instant
  ) -> Bool {
    let wasChosen = cursor.isChosen
    cursor.isChosen = isChosen
    guard let next = next(&cursor, band, at: now) else {
      defer { cursor.isDry = true }
      guard !cursor.isDry, wasChosen else { return false }
      return repeatLast(cursor, to: sum, band)
    }
    let wasDry = cursor.isDry
    cursor.isDry = false
    guard isChosen || wasChosen && !wasDry else { return false }
    let count = band.samplesPerTick
    // over a quarter of a frame after a gap, over a whole frame where the listener's choice has changed
    let ramp = wasDry ? count / 4 : count
    let (from, to): (Int32, Int32) = (wasDry || !wasChosen ? 0 : 1, isChosen ? 1 : 0)
    if from == to {
      for index in 0..<count { sum[index] &+= Int32(next.samples[index]) }
    } else {
      for index in 0..<count {
        let part = Int32(truncatingIfNeeded: min(index, ramp))
        let length = Int32(truncatingIfNeeded: ramp)
        sum[index] &+= Int32(next.samples[index]) &* (from &* (length &- part) &+ to &* part) / length
      }
    }
    if from == to, let second = next.second { blend(next.samples, into: second, to: sum, count) }
    return true
  }

  /// The next frame; if it waited too long, also the frame after it, into which it is cross-faded.
  private func next(_ cursor: inout GroupCursor, _ band: AudioBand, at now: Instant)
    -> (samples: UnsafeMutablePointer<Int16>, second: UnsafeMutablePointer<Int16>?)?
  {
    guard isUsed, written > cursor.read else { return nil }
    if written &- cursor.read >= UInt64(Limits.groupFrames) {
      // This member was not reading: its waiting frames are old, and the oldest is about to be overwritten.
      cursor.read = written &- 1
      cursor.isDry = true
    }
    let first = cursor.read
    cursor.read &+= 1
    guard let samples = samples(first, band) else { return nil }
    guard written > cursor.read, waitsTooLong(first, at: now) else { return (samples, nil) }
    defer { cursor.read &+= 1 }
    return (samples, self.samples(cursor.read, band))
  }

  /// Ticks move by some milliseconds at every beginning of speech, and back: a frame that waits for that alone is heard whole.
  private func waitsTooLong(_ number: UInt64, at now: Instant) -> Bool {
    let (frame, second) = (frames[Self.slot(number)], frames[Self.slot(number &+ 1)])
    return now - frame.time > (frame.isPause && second.isPause ? Limits.groupPauseDelay : Limits.groupDelay)
  }

  /// `first` is in the sum already: fades it out, and `second` in.
  private func blend(
    _ first: UnsafePointer<Int16>, into second: UnsafePointer<Int16>, to sum: UnsafeMutablePointer<Int32>, _ count: Int
  ) {
    for index in 0..<count {
      sum[index] &+=
        (Int32(second[index]) &- Int32(first[index])) &* Int32(truncatingIfNeeded: index)
        / Int32(truncatingIfNeeded: count)
    }
  }

  /// The last frame backwards, fading out: continues from its end without a step.
  private func repeatLast(_ cursor: GroupCursor, to sum: UnsafeMutablePointer<Int32>, _ band: AudioBand) -> Bool {
    guard cursor.read > 0, written &- cursor.read < UInt64(Limits.groupFrames), let last = samples(cursor.read &- 1, band) else {
      return false
    }
    let count = band.samplesPerTick
    for index in 0..<count {
      let left = Int32(truncatingIfNeeded: count &- index)
      sum[index] &+= Int32(last[count &- 1 &- index]) &* left / Int32(truncatingIfNeeded: count)
    }
    return true
  }
}
