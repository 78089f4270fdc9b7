/// Measure: how late packets come, relative to the fastest around them.
///
/// A packet's transit is arrival minus timestamp: its delay plus an unknown constant. The constant cancels, since play-out is
/// timed on the same clock: a packet played at `now` waited `now − timestamp − transit`. What must be known is how far transits
/// spread above the fastest ones.
///
/// The fastest changes: routes change by a step, clocks drift. So a packet is judged against the larger of two minima, over the
/// 25 packets before and the 25 after it. A lasting step of +180 ms is then no jitter at all, while a single late burst is. That
/// verdict comes half a second late; until then `recentMaximum` keeps the policy from shortening the delay.
struct ArrivalDelay: ~Copyable {
  private static let bucketSize = 5
  private static let bucketsInWindow = 5
  private static let buckets = 16
  private static let ring = 128

  private let transits: UnsafeMutablePointer<Int64>
  private let minima: UnsafeMutablePointer<Int64>
  private let maxima: UnsafeMutablePointer<Int64>
  private var histogram: DelayHistogram
  private let unitsPerMillisecond: Int64
  private var packets = 0
  private var previous: Int64 = 0
  private var inStall = false
  /// Marks a packet that does not count.
  private static let stalled = Int64.max
  /// Over the last 25…29 packets; kept, not computed, as it is read every tick.
  private(set) var recentMinimum: Int64 = 0
  private var windowMaximum: Int64 = 0
  /// Of packets that could still be played: one that came too late tells nothing about those to come.
  private let latest: UnsafeMutablePointer<Int64>
  private var inTime = 0
  private static let hold = 4
  /// The slowest of the last four that could be played: the delay is not shortened below it.
  var recentMaximum: Int64 { max(max(latest[0], latest[1]), max(latest[2], latest[3])) }

  init(clockRateHz: UInt32, memoryPackets: Float, lossCost: Float) {
    latest = .allocate(capacity: Self.hold)
    latest.initialize(repeating: .min, count: Self.hold)
    transits = .allocate(capacity: Self.ring)
    transits.initialize(repeating: 0, count: Self.ring)
    minima = .allocate(capacity: Self.buckets)
    minima.initialize(repeating: 0, count: Self.buckets)
    maxima = .allocate(capacity: Self.buckets)
    maxima.initialize(repeating: 0, count: Self.buckets)
    histogram = DelayHistogram(memoryPackets: memoryPackets, lossCost: lossCost)
    unitsPerMillisecond = Int64(max(1000, clockRateHz) / 1000)
  }

  deinit {
    latest.deallocate()
    transits.deallocate()
    minima.deallocate()
    maxima.deallocate()
  }

  /// Units above `recentMinimum` that the wanted share of packets keeps to.
  var spread: Int64 {
    let long = Int64(histogram.milliseconds) &* unitsPerMillisecond
    // Before the histogram knows much, what was seen is the best guess.
    guard packets < Limits.startPackets, windowMaximum > recentMinimum else { return long }
    return max(long, min(windowMaximum &- recentMinimum, Int64(Limits.startMilliseconds) &* unitsPerMillisecond))
  }

  // HOT
  mutating func arrived(transit: Int64, inTime isInTime: Bool) {
    let counts = !isStalled(transit)
    transits[packets & (Self.ring &- 1)] = counts ? transit : Self.stalled
    let bucket = packets / Self.bucketSize & (Self.buckets &- 1)
    if packets % Self.bucketSize == 0 {
      (minima[bucket], maxima[bucket]) = (.max, .min)
      refreshWindow(through: packets / Self.bucketSize)
    }
    minima[bucket] = min(minima[bucket], transit)
    recentMinimum = min(recentMinimum, transit)
    if counts {
      if isInTime {
        maxima[bucket] = max(maxima[bucket], transit)
        windowMaximum = max(windowMaximum, transit)
        latest[inTime & (Self.hold &- 1)] = transit
        inTime &+= 1
      }
    }
    packets &+= 1
    if packets % Self.bucketSize == 0 { judge(bucket: packets / Self.bucketSize &- 1 &- Self.bucketsInWindow) }
  }

  /// A packet that never came but could be repaired from its successor: as if it had come with it, so that the wanted delay
  /// covers repair.
  mutating func repairable(transit: Int64) {
    histogram.add(milliseconds: Int(clamping: max(0, transit &- recentMinimum) / unitsPerMillisecond))
  }

  private mutating func refreshWindow(through newest: Int) {
    let oldest = max(0, newest &- Self.bucketsInWindow)
    (recentMinimum, windowMaximum) = (.max, .min)
    for bucket in oldest...newest {
      recentMinimum = min(recentMinimum, minima[bucket & (Self.buckets &- 1)])
      windowMaximum = max(windowMaximum, maxima[bucket & (Self.buckets &- 1)])
    }
  }

  /// Enters a bucket whose following window is complete.
  private mutating func judge(bucket: Int) {
    guard bucket >= 0 else { return }
    var (before, after) = (Int64.max, Int64.max)
    for offset in 0...Self.bucketsInWindow {
      if bucket >= offset { before = min(before, minima[(bucket &- offset) & (Self.buckets &- 1)]) }
      after = min(after, minima[(bucket &+ offset) & (Self.buckets &- 1)])
    }
    let fastest = max(before, after)
    for index in 0..<Self.bucketSize {
      let transit = transits[(bucket &* Self.bucketSize &+ index) & (Self.ring &- 1)]
      if transit != Self.stalled { histogram.add(milliseconds: Int(clamping: max(0, transit &- fastest) / unitsPerMillisecond)) }
    }
  }

  /// No delay worth having covers a stall, so its packets do not count: the one that waited and those that came with it, each
  /// less late than the one before.
  private mutating func isStalled(_ transit: Int64) -> Bool {
    defer { previous = transit }
    guard packets > 0 else { return false }
    inStall = transit &- previous >= Int64(Limits.stallMilliseconds) &* unitsPerMillisecond || (inStall && transit < previous)
    return inStall
  }

  /// The timeline jumped: what is known about spread stays, the minima do not.
  mutating func timelineChanged() {
    packets = 0
    latest.update(repeating: .min, count: Self.hold)
  }

  mutating func removeAll() {
    timelineChanged()
    histogram.removeAll()
  }
}
