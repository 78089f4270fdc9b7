/// Measures how late packets arrive, relative to the fastest around them.
///
/// A packet's transit is arrival minus timestamp: its delay plus an unknown constant. The constant cancels, since play-out is
/// timed on the same clock: a packet played at `now` waited `now − timestamp − transit`. What must be known is how far transits
/// spread above the fastest ones.
///
/// The fastest changes: routes change by a step, clocks drift. So a packet is measured against the larger of two minima, over the
/// 25 packets before and the 25 after it. A lasting step of +180 ms is then no jitter at all, while a single late burst still is.
/// That result comes half a second late; until then `slowest` keeps the policy from shortening the delay.
///
/// A packet that play-out waited for is measured against those before it only: its cost was paid before the route's step was
/// known to last.
///
/// Packets are handled in groups of five, so that minima over windows cost little per packet.
struct ArrivalDelay: ~Copyable {
  static let groupSize = 5
  private static let window = 5
  /// Groups remembered, a power of two above twice the window; each has room for eight transits.
  private static let groups = 16
  private static let startGroups = Limits.startPackets / groupSize
  static let hold = 4
  /// Marks a packet that does not count.
  private static let uncounted = Int64.max

  // Initialised memory, freed in deinit: transits by group, the lowest of each group, and the lowest of the `window` groups up to
  // each.
  let transits: UnsafeMutablePointer<Int64>
  /// Transits of the group that is not complete.
  var current: UnsafeMutablePointer<Int64>
  let minima: UnsafeMutablePointer<Int64>
  let windowMinima: UnsafeMutablePointer<Int64>
  var histogram: DelayHistogram
  private let unitsPerMillisecond: Int64
  private let stallUnits: Int64
  /// 2³² by `unitsPerMillisecond`, rounded up.
  private let reciprocal: Int64
  /// Complete groups, and packets in the one that is not.
  private var group = 0
  var filled = 0
  /// The lowest transit of the group that is not complete.
  private var groupMinimum = Int64.max
  /// Transit of the previous packet.
  private var previous = Int64.max / 4
  private var inStall = false
  /// The lowest transit of the last 25…29 packets; stored, not computed, as it is read every tick.
  var recentMinimum = Int64.max
  /// The transit worth waiting for: above `recentMinimum` by the histogram's delay.
  var wanted: Int64 = 0
  /// The slowest of the last few packets that could still be played, below which the delay is not shortened. A packet that came
  /// too late does not predict later ones.
  var slowest = Int64.min
  /// Packets until `slowest` is forgotten.
  var slowestLeft = ArrivalDelay.hold
  private var startMaximum = Int64.min
  /// The spread that the last repairable loss needed, and for how many groups it still applies.
  private var repairSpread: Int64 = 0
  private var repairGroups = 0
  /// While losses occur, the transit that is worth waiting for so that the packet after a loss has arrived when the lost one is
  /// to be played; else far below any transit. The delay is not shortened below it.
  var bridging = ArrivalDelay.noBridging
  static let noBridging = Int64.min / 2
  private var bridgeSpread: Int64 = 0
  private var bridgeGroups = 0
  /// The group of the last loss.
  private var bridgedAt = Int.min / 2

  init(clockRateHz: UInt32, policy: DelayPolicy) {
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
    histogram = DelayHistogram(policy: policy, group: Self.groupSize, unitsPerMillisecond: unitsPerMillisecond)
    stallUnits = Int64(Limits.stallMilliseconds) * unitsPerMillisecond
    reciprocal = ((1 << 32) + unitsPerMillisecond - 1) / unitsPerMillisecond
  }

  deinit {
    transits.deallocate()
    minima.deallocate()
    windowMinima.deallocate()
  }

  mutating func note(_ transit: Int64) {
    slowestLeft &-= 1
    if slowestLeft == 0 {
      slowest = transit
      slowestLeft = Self.hold
    } else if transit >= slowest {
      slowest = transit
      slowestLeft = Self.hold
    }
  }

  /// - Parameter isInTime: it can still be played.
  @inline(__always) mutating func arrived(transit: Int64, inTime isInTime: Bool) {
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
    if filled == Self.groupSize { endGroup() }
  }

  private mutating func updateWanted() {
    var spread = histogram.units
    // While the histogram has few entries, the spread seen so far is the best estimate.
    if group < Self.startGroups, startMaximum > recentMinimum {
      spread = max(spread, min(startMaximum &- recentMinimum, Int64(Limits.startMilliseconds) &* unitsPerMillisecond))
    }
    if repairGroups > 0 { spread = max(spread, repairSpread) }
    wanted = recentMinimum &+ spread
    bridging = bridgeGroups > 0 ? recentMinimum &+ bridgeSpread : Self.noBridging
  }

  /// Audio was concealed until the packet of this transit arrived: it counts at once, and not when the window after it is
  /// complete.
  mutating func waitedFor(transit: Int64) {
    for back in 0...Self.window {
      let entries = transits + (((group &- back) & (Self.groups &- 1)) &* 8)
      for index in 0..<(back == 0 ? filled : Self.groupSize) where entries[index] == transit {
        entries[index] = Self.uncounted
        return histogram.add(milliseconds: milliseconds(transit &- recentMinimum))
      }
    }
  }

  /// A packet never arrived but could be repaired from its successor: it counts as if it had arrived with it, so that the wanted
  /// delay covers repair. The delay applies at once, and for `Limits.repairHoldPackets`: one such loss in that many is worth a
  /// packet's delay. Losses seldom come alone, and the histogram's result takes two seconds.
  mutating func repairable(transit: Int64) {
    histogram.add(milliseconds: milliseconds(transit &- recentMinimum))
    let needed = min(max(0, transit &- recentMinimum), Int64(Limits.startMilliseconds) &* unitsPerMillisecond)
    repairSpread = repairGroups > 0 ? max(repairSpread, needed) : needed
    repairGroups = Limits.repairHoldPackets / Self.groupSize
    updateWanted()
  }

  /// A packet never arrived whose concealment sounds better if its successor, of this transit, has arrived: from the second such
  /// loss on the delay covers that, while they occur. It does not count in the histogram: ticks that move later bit by bit would
  /// be audible jitter, and the delay is gained at the next loss (`PlayoutBuffer.fetch`).
  mutating func bridgeable(transit: Int64, duration: Int64) {
    let isAlone = bridgeGroups == 0 && group &- bridgedAt > Limits.bridgedPackets / Self.groupSize
    bridgedAt = group
    guard !isAlone else { return }
    // A successor that is too late to be waited for does not predict the next one.
    bridgeSpread = max(0, min(transit, wanted) &- recentMinimum) &+ duration
    bridgeGroups = Limits.bridgeHoldPackets / Self.groupSize
    updateWanted()
  }

  @inline(never) private mutating func endGroup() {
    let (mask, newest, own) = (Self.groups &- 1, group, groupMinimum)
    minima[newest & mask] = own
    groupMinimum = .max
    filled = 0
    group = newest &+ 1
    current = transits + (group & mask) &* 8
    // The whole window is searched only when the lowest leaves it.
    var lowest = windowMinima[(newest &- 1) & mask]
    if own <= lowest {
      lowest = own
    } else if minima[(newest &- Self.window) & mask] <= lowest {
      lowest = own
      for back in 1..<Self.window { lowest = min(lowest, minima[(newest &- back) & mask]) }
    }
    recentMinimum = lowest
    windowMinima[newest & mask] = lowest
    if newest >= Self.window { enter(newest &- Self.window, before: lowest) }
    if group == Self.startGroups { histogram.search() }
    if repairGroups > 0 { repairGroups &-= 1 }
    if bridgeGroups > 0 { bridgeGroups &-= 1 }
    updateWanted()
  }

  /// Enters a group whose following window is complete now into the histogram.
  private mutating func enter(_ group: Int, before after: Int64) {
    let mask = Self.groups &- 1
    let before = min(windowMinima[group & mask], minima[(group &- Self.window) & mask])
    let fastest = max(before, min(after, minima[group & mask]))
    let entries = transits + ((group & mask) &* 8)
    for index in 0..<Self.groupSize where entries[index] != Self.uncounted {
      histogram.add(milliseconds: milliseconds(entries[index] &- fastest))
    }
    histogram.endGroup()
  }

  private func milliseconds(_ units: Int64) -> Int {
    Int(truncatingIfNeeded: (max(0, min(units, 2048 &* unitsPerMillisecond)) &* reciprocal) >> 32)
  }

  /// The timeline jumped: the spread stays known, the minima do not. Packets that are each less late than the one before were
  /// held back by a stall, before the jump and after it.
  mutating func timelineChanged() {
    group = 0
    filled = 0
    slowestLeft = Self.hold
    inStall = true
    repairGroups = 0
    bridging = Self.noBridging
    bridgeGroups = 0
    bridgedAt = .min / 2
    current = transits
    groupMinimum = .max
    recentMinimum = .max
    startMaximum = .min
    slowest = .min
    previous = .max / 4
    minima.update(repeating: .max, count: Self.groups)
    windowMinima.update(repeating: .max, count: Self.groups)
  }

  mutating func removeAll() {
    timelineChanged()
    inStall = false
    histogram.removeAll()
  }
}
