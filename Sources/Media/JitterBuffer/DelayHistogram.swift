import TrunklineRTP

/// A histogram, with entries that fade, of the delay of packets beyond the fastest, and the delay that costs a conversation least
/// by it.
///
/// The cost is what ITU-T G.107 subtracts from its rating R: Id of the whole path with this delay, and Ie,eff of the packets that
/// come later than that. On a short path delay is nearly free, so it covers all but the rarest packet; on a long one each
/// millisecond counts.
///
/// Instead of fading all bins, each group of entries weighs a little more than the one before; when weights get large all are
/// scaled down at once, every 20,000 packets or so. The search for the least cost checks eight bins after each group, from the
/// top down, and completes every 80 packets. Bins are 1 ms wide up to 32 ms, then 2, 4 and 8 ms.
struct DelayHistogram: ~Copyable {
  static let bins = 128
  private static let binsPerSearch = 8
  // Each `bins` initialised values; freed in deinit.
  let mass: UnsafeMutablePointer<Float>
  let delayCosts: UnsafeMutablePointer<Float>
  private let growth: Float
  private let delayPrice: Float
  /// (95 − Ie) and Bpl of the codec.
  private let lossRange: Float
  private let lossRobustness: Float
  private var pathMilliseconds: Double
  private var weight: Float = 1
  private var total: Float = 0
  /// The search: bins from here up are done, `above` is their weight, and `bestBin` costs least of them.
  private var searched = DelayHistogram.bins
  private var above: Float = 0
  private var bestBin = 0
  private var bestCost = Float.infinity
  /// The highest bin that ever had an entry.
  private var highestBin = 0
  private let unitsPerMillisecond: Int64
  /// The delay that costs least, of the last whole search, in clock units.
  private(set) var units: Int64 = 0

  /// - Parameters:
  ///   - group: packets between two searches.
  ///   - unitsPerMillisecond: of the result.
  init(policy: DelayPolicy, group: Int, unitsPerMillisecond: Int64) {
    self.unitsPerMillisecond = unitsPerMillisecond
    mass = .allocate(capacity: Self.bins)
    mass.initialize(repeating: 0, count: Self.bins)
    delayCosts = .allocate(capacity: Self.bins)
    delayCosts.initialize(repeating: 0, count: Self.bins)
    growth = 1 + Float(group) / max(Float(group), policy.memoryPackets)
    delayPrice = policy.delayPrice
    lossRange = Float(95 - policy.codec.base)
    lossRobustness = max(1, Float(policy.codec.lossRobustness))
    pathMilliseconds = policy.pathMilliseconds
    updateDelayCosts()
  }

  /// Sets the mouth-to-ear delay without this buffer. A change of less than a bin's width (8 ms) is ignored.
  mutating func setPath(milliseconds: Double) {
    let path = min(max(0, milliseconds), Limits.pathMilliseconds)
    guard abs(path - pathMilliseconds) >= 8 else { return }
    pathMilliseconds = path
    updateDelayCosts()
  }

  private func updateDelayCosts() {
    for bin in 0..<Self.bins {
      let edge = Self.upperEdge(bin)
      delayCosts[bin] = Float(OpinionScore.delayImpairment(pathMilliseconds + Double(edge))) + delayPrice * Float(edge)
    }
  }

  deinit {
    mass.deallocate()
    delayCosts.deallocate()
  }

  // Invariant of this file: every bin is in 0..<bins: `bin` clamps, and `searched` runs from `bins` down to 0 in steps that
  // divide it.

  // HOT
  mutating func add(milliseconds delay: Int) {
    let position = Self.bin(delay)
    mass[position] += weight
    total += weight
    if position >= searched { above += weight }
    highestBin = max(highestBin, position)
  }

  /// A group of entries was added: the next weigh more, and the search continues.
  // HOT
  mutating func endGroup() {
    weight *= growth
    if weight > 1e6 { rescale() }
    let start = searched
    searched = start &- Self.binsPerSearch
    // No packet was ever that late: the lowest of these bins costs least, and `above` is still 0.
    guard searched <= highestBin else { return (bestCost, bestBin) = (delayCosts[searched], searched) }
    search(from: start)
  }

  /// Eight bins (`binsPerSearch`) more.
  private mutating func search(from start: Int) {
    let percent = 100 / max(total, 1e-9)
    for bin in (searched..<start).reversed() {
      // With a delay of this bin's upper edge, the packets of the bins above it are late.
      let late = above * percent
      let cost = delayCosts[bin] + lossRange * late / (late + lossRobustness)
      if cost < bestCost { (bestCost, bestBin) = (cost, bin) }
      above += mass[bin]
    }
    if searched == 0 { finish() }
  }

  /// Searches all bins at once: the first result, when the search under way began with hardly any entries.
  mutating func search() {
    searched = 0
    above = 0
    bestBin = 0
    bestCost = .infinity
    search(from: Self.bins)
  }

  private mutating func finish() {
    units = Int64(min(Self.upperEdge(bestBin), Limits.delayMilliseconds)) &* unitsPerMillisecond
    searched = Self.bins
    above = 0
    bestBin = 0
    bestCost = .infinity
  }

  /// 0…31: 1 ms, 32…63: 2 ms, 64…95: 4 ms, 96…127: 8 ms.
  static func bin(_ delay: Int) -> Int {
    if delay < 32 { return max(0, delay) }
    if delay < 96 { return 32 &+ (delay &- 32) >> 1 }
    if delay < 224 { return 64 &+ (delay &- 96) >> 2 }
    return min(bins &- 1, 96 &+ (min(delay, 1024) &- 224) >> 3)
  }

  private static func upperEdge(_ bin: Int) -> Int {
    if bin < 32 { return bin &+ 1 }
    if bin < 64 { return 32 &+ (bin &- 31) << 1 }
    if bin < 96 { return 96 &+ (bin &- 63) << 2 }
    return 224 &+ (bin &- 95) << 3
  }

  /// Scales the weights down, and removes the rounding errors of their sums.
  private mutating func rescale() {
    let factor = 1 / weight
    total = 0
    above = 0
    for position in 0..<Self.bins {
      mass[position] *= factor
      if position >= searched { above += mass[position] }
      total += mass[position]
    }
    weight = 1
  }

  mutating func removeAll() {
    mass.update(repeating: 0, count: Self.bins)
    weight = 1
    total = 0
    units = 0
    highestBin = 0
    searched = Self.bins
    above = 0
    bestBin = 0
    bestCost = .infinity
  }
}
