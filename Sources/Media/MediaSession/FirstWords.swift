import AudioCodecs
import JitterBuffer

/// What a side said before the other could hear it (protocol.md, "First words"): up to 1.5 s of decoded audio, in whole ticks.
///
/// | state | call | result |
/// |---|---|---|
/// | keeping | `keep(tick)` | stored; when full, a pause goes first, else the oldest tick |
/// | keeping | first `exchange(tick)` | playing: the oldest kept tick comes out, the live one goes in |
/// | playing | `exchange(tick)` | at most 1.25 × speed, pauses cut; true |
/// | playing | nothing is left to catch up, or 3 s are over | the live tick itself; false: this value can be dropped |
///
/// Within the 3 s all of 0.75 s is caught up by speed alone; of more, the quietest ticks are left out. 27 KB, allocated at set-up; nothing
/// afterwards. About 2 µs per tick and 10 µs where a period is cut.
public struct FirstWords: ~Copyable {
  private static let tick = AudioCodecs.Limits.samplesPerTick
  private static let kept = Limits.keptSamples / tick
  private static let catchUpTicks = Int(Limits.catchUp.milliseconds) / 20
  private static let capacity = kept + 2
  /// Samples faded when a tick is left out: 5 ms.
  private static let fade = 40
  /// A tick below −50 dBov, or 30 dB below the loudest kept, is a pause.
  private static let quiet = 1e-5
  private static let quietBelowLoudest = 1e-3

  /// A ring of ticks and their mean squares.
  private let ticks: UnsafeMutablePointer<Int16>
  private let powers: UnsafeMutablePointer<Double>
  private var head = 0
  private var count = 0
  private var work = DecodedAudio(capacity: 4 * FirstWords.tick)
  /// The beginning of the tick last left out: what would have followed the audio played.
  private let omitted: UnsafeMutablePointer<Int16>
  private var hasOmitted = false
  private var lastWasQuiet = true
  private var playedTicks = 0
  /// Samples that may be taken out now without exceeding 1.25 × speed on average.
  private var allowance = 0
  /// Ticks left out so far, pauses included.
  public private(set) var omittedTicks = 0

  public init() {
    ticks = .allocate(capacity: Self.capacity * Self.tick)
    ticks.initialize(repeating: 0, count: Self.capacity * Self.tick)
    powers = .allocate(capacity: Self.capacity)
    powers.initialize(repeating: 0, count: Self.capacity)
    omitted = .allocate(capacity: Self.fade)
    omitted.initialize(repeating: 0, count: Self.fade)
  }

  deinit {
    ticks.deallocate()
    powers.deallocate()
    omitted.deallocate()
  }

  /// How much is kept or not yet caught up, in milliseconds.
  public var backlogMilliseconds: Int { (count * Self.tick + work.count) / 8 }

  /// Stores one tick (160 samples) while the far side is not ready.
  public mutating func keep(_ samples: Span<Int16>) {
    if count >= Self.kept { makeRoom() }
    push(samples)
    // Nothing said yet: silence before the first word is not worth keeping, but for two ticks of its onset.
    while count > 2, (0..<count).allSatisfy({ isQuiet($0) }) { dropFirst() }
  }

  /// Takes the live tick and gives back what to play in its place. False when the live tick itself was left in place: all is caught up.
  public mutating func exchange(_ samples: inout MutableSpan<Int16>) -> Bool {
    guard samples.count == Self.tick, count > 0 || work.count > 0 else { return false }
    push(samples.span)
    playedTicks += 1
    allowance = min(allowance + Self.tick / 4, 2 * TimeScale.longestLag)
    refill(upTo: Self.tick + 2 * TimeScale.longestLag)
    speedUp()
    if count == 0, work.count < Self.tick + TimeScale.shortestLag {
      finish(&samples)
      return false
    }
    work.take(into: &samples)
    return true
  }

  // MARK: Ring. Invariant: 0 ≤ count ≤ capacity, indices below count are ticks in order of time.

  private func slot(_ index: Int) -> Int { (head + index) % Self.capacity }

  private mutating func push(_ samples: Span<Int16>) {
    if count == Self.capacity { dropFirst() }
    let target = ticks + slot(count) * Self.tick
    let length = min(samples.count, Self.tick)
    for index in 0..<length { target[index] = samples[index] }
    for index in length..<Self.tick { target[index] = 0 }
    powers[slot(count)] = LevelMeter.meanSquare(samples)
    count += 1
  }

  private mutating func dropFirst() {
    guard count > 0 else { return }
    omittedTicks += 1
    head = (head + 1) % Self.capacity
    count -= 1
  }

  private func isQuiet(_ index: Int) -> Bool {
    let power = powers[slot(index)]
    if power < Self.quiet { return true }
    var loudest = 0.0
    for other in 0..<count { loudest = max(loudest, powers[slot(other)]) }
    return power < loudest * Self.quietBelowLoudest
  }

  /// Drops the first tick inside a pause (its neighbours stay, so that words keep their edges), else the oldest.
  private mutating func makeRoom() {
    for index in 1..<max(2, count - 1) where isQuiet(index - 1) && isQuiet(index) && isQuiet(index + 1) {
      omittedTicks += 1
      for later in index..<(count - 1) {
        (ticks + slot(later) * Self.tick).update(from: ticks + slot(later + 1) * Self.tick, count: Self.tick)
        powers[slot(later)] = powers[slot(later + 1)]
      }
      count -= 1
      return
    }
    dropFirst()
  }

  // MARK: Play-out

  private mutating func refill(upTo wanted: Int) {
    while count > 0, work.count < wanted {
      if shouldOmit() {
        if !hasOmitted { omitted.update(from: ticks + head * Self.tick, count: Self.fade) }
        hasOmitted = true
        dropFirst()
        continue
      }
      let source = ticks + head * Self.tick
      if hasOmitted {
        for index in 0..<Self.fade {
          let mixed = Int32(omitted[index]) * Int32(Self.fade - index) + Int32(source[index]) * Int32(index)
          source[index] = Int16(truncatingIfNeeded: mixed / Int32(Self.fade))
        }
        hasOmitted = false
      }
      lastWasQuiet = isQuiet(0)
      let free = work.free
      for index in 0..<min(Self.tick, free.count) { free[index] = source[index] }
      work.append(Self.tick)
      head = (head + 1) % Self.capacity
      count -= 1
    }
  }

  /// Inside a pause; or among the quietest when speed alone would not catch up in time.
  private func shouldOmit() -> Bool {
    guard count > 1 else { return false }
    if lastWasQuiet, isQuiet(0), isQuiet(1) { return true }
    let left = max(0, Self.catchUpTicks - playedTicks)
    // The live tick just pushed is no backlog.
    let backlog = (count - 1) * Self.tick + work.count
    let excess = backlog - left * Self.tick / 4
    guard excess > 0 else { return false }
    var quieter = 0
    for index in 1..<count where powers[slot(index)] < powers[slot(0)] { quieter += 1 }
    return quieter * Self.tick < excess
  }

  private mutating func speedUp() {
    guard allowance >= TimeScale.shortestLag else { return }
    let limit = min(allowance, work.count - Self.tick)
    let before = work.count
    work.modify { samples, count in count - TimeScale.shrink(samples, count: count, limit: limit, urgent: true) }
    allowance -= before - work.count
  }

  /// The last samples of delay go by a fade over the whole tick.
  private mutating func finish(_ samples: inout MutableSpan<Int16>) {
    let ahead = max(0, work.count - Self.tick)
    work.modify { memory, count in
      guard ahead > 0 else { return count }
      for index in 0..<Self.tick {
        let mixed = Int32(memory[index]) * Int32(Self.tick - index) + Int32(memory[index + ahead]) * Int32(index)
        memory[index] = Int16(truncatingIfNeeded: mixed / Int32(Self.tick))
      }
      return Self.tick
    }
    work.take(into: &samples)
  }
}
