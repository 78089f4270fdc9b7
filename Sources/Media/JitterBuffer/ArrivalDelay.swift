/// Measure: how late packets come, relative to the fastest around them.
///
/// A packet's transit is arrival minus timestamp: its delay plus an unknown constant. The constant cancels, since play-out is
/// timed on the same clock: a packet played at `now` waited `now − timestamp − transit`. What must be known is how far transits
/// spread above the fastest ones.
///
/// The fastest changes: routes change by a step, clocks drift. So a packet is judged against the larger of two minima, over the
/// 25 packets before and the 25 after it. A lasting step of +180 ms is then no jitter at all, while a single late burst still is. That
/// verdict comes half a second late; until then `slowest` keeps the policy from shortening the delay.
///
/// Packets are taken in groups of five, so that minima over windows cost little per packet. A group that is full is entered by `settle`
/// before anything is read or added: after `arrivedAsUsual` that is the caller's part, when all else is done.
@usableFromInline struct ArrivalDelay: ~Copyable {
  @usableFromInline static let groupSize = 5
  private static let window = 5
  /// Groups remembered, a power of two above twice the window; each has room for eight transits.
  private static let groups = 16
  private static let startGroups = Limits.startPackets / groupSize
  @usableFromInline static let hold = 4
  /// Marks a packet that does not count.
  private static let uncounted = Int64.max

  // Initialised memory, freed in deinit: transits by group, the lowest of each group, and the lowest of the `window` groups up to each.
  @usableFromInline let transits: UnsafeMutablePointer<Int64>
  /// Those of the group that is not complete.
  @usableFromInline var current: UnsafeMutablePointer<Int64>
  @usableFromInline let minima: UnsafeMutablePointer<Int64>
  @usableFromInline let windowMinima: UnsafeMutablePointer<Int64>
  @usableFromInline var histogram: DelayHistogram
  private let unitsPerMillisecond: Int64
  private let stallUnits: Int64
  private let narrowUnits: UInt64
  /// 2³² by `unitsPerMillisecond`, rounded up: of `narrowUnits − 1` at most 1000 · 32 that gives less than 32.
  private let reciprocal: Int64
  /// Groups complete, and packets in the one that is not.
  private var group = 0
  @usableFromInline var filled = 0
  /// Of the transits that do not count.
  private var groupMinimum = Int64.max
  /// Transit of the packet before, unless it came as usual.
  private var previous = Int64.max / 4
  private var inStall = false
  /// A packet this far above the minimum is not usual: a stall; 0 at the start and in a stall.
  @usableFromInline var usualSpread: UInt64 = 0
  /// Over the last 25…29 packets; kept, not computed, as it is read every tick.
  @usableFromInline var recentMinimum = Int64.max
  /// The transit worth waiting for: above `recentMinimum` by what the histogram says.
  @usableFromInline var wanted: Int64 = 0
  /// The slowest of the last few packets that could still be played, below which the delay is not shortened. One that came too late
  /// tells nothing about those to come.
  @usableFromInline var slowest = Int64.min
  /// Packets until it is forgotten.
  @usableFromInline var slowestLeft = ArrivalDelay.hold
  private var startMaximum = Int64.min
  /// What the last repairable loss would have needed, and for how many groups it is still wanted.
  private var repairSpread: Int64 = 0
  private var repairGroups = 0
  /// The transit that the packet behind a loss needs to be there when the lost one is to be played, while losses come; else far below
  /// any. The delay is not shortened below it.
  @usableFromInline var bridging = ArrivalDelay.noBridging
  @usableFromInline static let noBridging = Int64.min / 2
  private var bridgeSpread: Int64 = 0
  private var bridgeGroups = 0
  /// The group of the last loss.
  private var bridgedAt = Int.min / 2

  init(clockRateHz: UInt32, memoryPackets: Float, lossCost: Float) {
    func memory(_ count: Int, _ value: Int64) -> UnsafeMutablePointer<Int64> {
      let memory = UnsafeMutablePointer<Int64>.allocate(capacity: count)
      memory.initialize(repeating: value, count: count)
      return memory
    }
    transits = memory(Self.groups * 8, Self.uncounted)
    current = transits
    minima = memory(Self.groups, .max)
    windowMinima = memory(Self.groups, .max)
    unitsPerMillisecond = Int64(max(1000, clockRateHz) / 1000)
    narrowUnits = UInt64(bitPattern: DelayHistogram.narrowMilliseconds &* unitsPerMillisecond)
    histogram = DelayHistogram(
      memoryPackets: memoryPackets, group: Self.groupSize, lossCost: lossCost, unitsPerMillisecond: unitsPerMillisecond)
    stallUnits = Int64(Limits.stallMilliseconds) * unitsPerMillisecond
    reciprocal = ((1 << 32) + unitsPerMillisecond - 1) / unitsPerMillisecond
  }

  @inlinable deinit {
    transits.deallocate()
    minima.deallocate()
    windowMinima.deallocate()
  }

  /// A packet like most of them: `arrivedAsUsual` will do.
  // HOT
  @inlinable @inline(__always) func isUsual(transit: Int64) -> Bool {
    // No packet was faster than the minimum, the one before neither: so near to it this one begins no stall.
    UInt64(bitPattern: transit &- recentMinimum) < usualSpread
  }

  /// What `arrived` does with a packet in time that `isUsual`.
  // HOT
  @inlinable @inline(__always) mutating func arrivedAsUsual(transit: Int64) {
    current[filled] = transit
    filled &+= 1
    note(transit)
  }

  /// Takes note of the last packet, which came as usual, and returns its transit: the last of the group, or of the one before.
  mutating func settlePrevious() -> Int64 {
    let last = (group &- 1) & (Self.groups &- 1)
    previous = filled > 0 ? current[filled &- 1] : transits[last &* 8 &+ Self.groupSize &- 1]
    return previous
  }

  @inlinable @inline(__always) mutating func note(_ transit: Int64) {
    slowestLeft &-= 1
    if slowestLeft == 0 {
      (slowest, slowestLeft) = (transit, Self.hold)
    } else if transit >= slowest {
      (slowest, slowestLeft) = (transit, Self.hold)
    }
  }

  /// - Parameter isInTime: it can still be played.
  mutating func arrived(transit: Int64, inTime isInTime: Bool) {
    // No delay worth having covers a stall, so its packets do not count: the one that waited and those that came with it, each
    // less late than the one before.
    let step = transit &- previous
    previous = transit
    if step >= stallUnits || inStall { inStall = step >= stallUnits || step < 0 }
    current[filled] = inStall ? Self.uncounted : transit
    groupMinimum = min(groupMinimum, transit)
    if isInTime, !inStall { note(transit) }
    filled &+= 1
    let isStart = group < Self.startGroups && isInTime && !inStall && transit > startMaximum
    if isStart { startMaximum = transit }
    if transit < recentMinimum || isStart {
      recentMinimum = min(recentMinimum, transit)
      updateWanted()
    }
    usualSpread = group >= Self.startGroups && !inStall ? UInt64(bitPattern: stallUnits) : 0
    settle()
  }

  /// Enters a group that is full.
  // HOT
  @inlinable @inline(__always) mutating func settle() { if filled == Self.groupSize { endGroup() } }

  private mutating func updateWanted() {
    var spread = histogram.units
    // Before the histogram knows much, what was seen is the best guess.
    if group < Self.startGroups, startMaximum > recentMinimum {
      spread = max(spread, min(startMaximum &- recentMinimum, Int64(Limits.startMilliseconds) &* unitsPerMillisecond))
    }
    if repairGroups > 0 { spread = max(spread, repairSpread) }
    wanted = recentMinimum &+ spread
    bridging = bridgeGroups > 0 ? recentMinimum &+ bridgeSpread : Self.noBridging
  }

  /// A packet that never came but could be repaired from its successor: as if it had come with it, so that the wanted delay
  /// covers repair. At once, and for as long as one such loss in so many packets is worth a packet's delay: losses seldom come
  /// alone, and the histogram's verdict takes two seconds.
  mutating func repairable(transit: Int64) {
    let beyond = max(0, min(transit &- recentMinimum, 2048 &* unitsPerMillisecond))
    histogram.add(milliseconds: Int(truncatingIfNeeded: (beyond &* reciprocal) >> 32))
    let needed = min(max(0, transit &- recentMinimum), Int64(Limits.startMilliseconds) &* unitsPerMillisecond)
    repairSpread = repairGroups > 0 ? max(repairSpread, needed) : needed
    repairGroups = Limits.repairHoldPackets / Self.groupSize
    updateWanted()
  }

  /// A packet never came that sounds better made up when its successor, of this transit, is there: from the second such loss on the
  /// delay is to cover that, for as long as they come. It does not count in the histogram: ticks that come later bit by bit would be
  /// jitter for who hears them, and the next loss is there to gain the delay (`PlayoutBuffer.fetch`).
  mutating func bridgeable(transit: Int64, duration: Int64) {
    let isAlone = bridgeGroups == 0 && group &- bridgedAt > Limits.bridgedPackets / Self.groupSize
    bridgedAt = group
    guard !isAlone else { return }
    // A successor later than is worth waiting for says nothing of the next.
    bridgeSpread = max(0, min(transit, wanted) &- recentMinimum) &+ duration
    bridgeGroups = Limits.bridgeHoldPackets / Self.groupSize
    updateWanted()
  }

  @inline(never) @usableFromInline mutating func endGroup() {
    let mask = Self.groups &- 1
    let newest = group
    var own = groupMinimum
    let entries = current
    for index in 0..<Self.groupSize { own = min(own, entries[index]) }
    minima[newest & mask] = own
    (groupMinimum, filled) = (.max, 0)
    group = newest &+ 1
    current = transits + (group & mask) &* 8
    // Only when the lowest leaves the window all of it is looked at.
    var lowest = windowMinima[(newest &- 1) & mask]
    if own <= lowest {
      lowest = own
    } else if minima[(newest &- Self.window) & mask] <= lowest {
      lowest = own
      for back in 1..<Self.window { lowest = min(lowest, minima[(newest &- back) & mask]) }
    }
    recentMinimum = lowest
    windowMinima[newest & mask] = lowest
    guard newest >= Self.startGroups, repairGroups == 0, bridgeGroups == 0 else { return endGroupElsewhere(newest, lowest) }
    judge(newest &- Self.window, lowest)
    wanted = lowest &+ histogram.units
  }

  /// At the start, and while losses hold the delay.
  @inline(never) private mutating func endGroupElsewhere(_ newest: Int, _ lowest: Int64) {
    if newest >= Self.window { judge(newest &- Self.window, lowest) }
    if group == Self.startGroups { histogram.search() }
    if group >= Self.startGroups { usualSpread = inStall ? 0 : UInt64(bitPattern: stallUnits) }
    if repairGroups > 0 { repairGroups &-= 1 }
    if bridgeGroups > 0 { bridgeGroups &-= 1 }
    updateWanted()
  }

  /// Enters a group whose following window is complete now.
  @inline(__always) private mutating func judge(_ judged: Int, _ after: Int64) {
    let mask = Self.groups &- 1
    let before = min(windowMinima[judged & mask], minima[(judged &- Self.window) & mask])
    let fastest = max(before, min(after, minima[judged & mask]))
    let entries = transits + ((judged & mask) &* 8)
    let (narrow, unitsPerMillisecond, reciprocal) = (narrowUnits, unitsPerMillisecond, UInt64(bitPattern: reciprocal))
    histogram.endGroup(of: Self.groupSize) { index in
      // Nearly always: neither faster, nor much slower, nor one that does not count.
      let beyond = UInt64(bitPattern: entries[index] &- fastest)
      if _fastPath(beyond < narrow) { return .narrow(Int(truncatingIfNeeded: (beyond &* reciprocal) >> 32)) }
      return .any(Self.unusualBin(entries[index], fastest, unitsPerMillisecond, reciprocal))
    }
  }

  /// The bin of a transit that is not near the fastest; −1 of one that does not count.
  @inline(never) private static func unusualBin(
    _ transit: Int64, _ fastest: Int64, _ unitsPerMillisecond: Int64, _ reciprocal: UInt64
  ) -> Int {
    guard transit != uncounted else { return -1 }
    let beyond = UInt64(bitPattern: max(0, min(transit &- fastest, 2048 &* unitsPerMillisecond)))
    return DelayHistogram.bin(Int(truncatingIfNeeded: (beyond &* reciprocal) >> 32))
  }

  /// The timeline jumped: what is known about spread stays, the minima do not.
  mutating func timelineChanged() {
    (group, filled, slowestLeft, inStall, usualSpread, repairGroups) = (0, 0, Self.hold, false, 0, 0)
    (bridging, bridgeGroups, bridgedAt) = (Self.noBridging, 0, .min / 2)
    current = transits
    (groupMinimum, recentMinimum, startMaximum, slowest, previous) = (.max, .max, .min, .min, .max / 4)
    minima.update(repeating: .max, count: Self.groups)
    windowMinima.update(repeating: .max, count: Self.groups)
  }

  mutating func removeAll() {
    timelineChanged()
    histogram.removeAll()
  }
}
