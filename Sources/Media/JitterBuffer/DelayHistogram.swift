/// How much packets are delayed beyond the fastest: a histogram whose entries fade, and the delay that costs least by it.
///
/// A delay of `d` milliseconds costs `d` plus `lossCost` for each percent of packets that come later than that. With hardly any
/// jitter the least cost lies just above the slowest packet; rare spikes are not worth waiting for all the time, frequent ones are.
///
/// Instead of fading all bins, each group of entries weighs a little more than the one before; when weights get large all are scaled
/// down at once, every 20,000 packets or so. The search for the least cost looks at some bins after each group, from the top down, and
/// is through every 80 packets. Bins are 1 ms wide up to 32 ms, then 2, 4 and 8 ms.
@usableFromInline struct DelayHistogram: ~Copyable {
  static let bins = 128
  private static let binsPerSearch = 8
  // Each `bins` initialised values; freed in deinit.
  @usableFromInline let mass: UnsafeMutablePointer<Float>
  @usableFromInline let upperEdges: UnsafeMutablePointer<Float>
  private let growth: Float
  private let lossCost: Float
  private var weight: Float = 1
  private var total: Float = 0
  /// The search: bins from here up are done, hold `above`, and `bestBin` costs least of them.
  private var searched = DelayHistogram.bins
  private var above: Float = 0
  private var bestBin = 0
  private var bestCost = Float.infinity
  /// No entry ever came to a bin above; those as wide as a millisecond are not told apart.
  private var highestBin = DelayHistogram.narrowBins &- 1
  private let unitsPerMillisecond: Int64
  /// What costs least, of the last whole search, in clock units.
  private(set) var units: Int64 = 0

  /// - Parameters:
  ///   - memoryPackets: after this many packets an entry weighs 1/e.
  ///   - group: packets between two searches.
  ///   - lossCost: milliseconds of delay that one percent of late packets is worth.
  ///   - unitsPerMillisecond: of the result.
  init(memoryPackets: Float, group: Int, lossCost: Float, unitsPerMillisecond: Int64) {
    self.unitsPerMillisecond = unitsPerMillisecond
    mass = .allocate(capacity: Self.bins)
    mass.initialize(repeating: 0, count: Self.bins)
    upperEdges = .allocate(capacity: Self.bins)
    for bin in 0..<Self.bins { (upperEdges + bin).initialize(to: Float(Self.upperEdge(bin))) }
    growth = 1 + Float(group) / max(Float(group), memoryPackets)
    self.lossCost = lossCost * 100
  }

  @inlinable deinit {
    mass.deallocate()
    upperEdges.deallocate()
  }

  // Invariant of this file: every bin is in 0..<bins: `bin` clamps, a narrow one is below `narrowBins`, and `searched` runs from `bins`
  // down to 0 in steps that divide it.

  // HOT
  mutating func add(milliseconds delay: Int) {
    let position = Self.bin(delay)
    mass[position] += weight
    total += weight
    if position >= searched { above += weight }
    highestBin = max(highestBin, position)
  }

  /// Below this bins are as wide as a millisecond.
  static let narrowMilliseconds = Int64(narrowBins)
  private static let narrowBins = 32

  /// An entry's bin: below `narrowBins`, or any, −1 for none.
  enum Entry {
    case narrow(Int)
    case any(Int)
  }

  /// Adds a group of entries, as far as they count, and goes on with the search.
  // HOT
  @inline(__always) mutating func endGroup(of count: Int, _ entry: (Int) -> Entry) {
    let (mass, weight, searched) = (mass, weight, searched)
    var (total, above) = (total, above)
    for index in 0..<count {
      let position: Int
      switch entry(index) {
      case .narrow(let bin): position = bin
      case .any(let bin):
        guard bin >= 0 else { continue }
        highestBin = max(highestBin, bin)
        position = bin
      }
      mass[position] += weight
      total += weight
      if position >= searched { above += weight }
    }
    (self.total, self.weight) = (total, weight * growth)
    if weight * growth > 1e6 {
      self.above = above
      rescale()
      (total, above) = (self.total, self.above)
    }
    let end = searched &- Self.binsPerSearch
    self.searched = end
    // Nothing ever was that late: the lowest of these bins costs least, and `above` is still 0.
    guard end <= highestBin else { return (bestCost, bestBin) = (upperEdges[end], end) }
    search(from: searched, total, above)
  }

  /// Eight bins (`binsPerSearch`) more.
  @inline(__always) private mutating func search(from start: Int, _ total: Float, _ aboveStart: Float) {
    let end = start &- Self.binsPerSearch
    let (mass, upperEdges, scale) = (mass, upperEdges, lossCost / max(total, 1e-9))
    var (above, bestCost, bestBin) = (aboveStart, bestCost, bestBin)
    // Most bins are empty: then the lowest of these costs least.
    var bin = isEmpty(from: end) ? end &+ 1 : start
    while bin > end {
      bin &-= 1
      // A delay of this bin's upper edge leaves late what lies above.
      let cost = upperEdges[bin] + above * scale
      if cost < bestCost { (bestCost, bestBin) = (cost, bin) }
      above += mass[bin]
    }
    (self.above, self.bestCost, self.bestBin) = (above, bestCost, bestBin)
    if end == 0 { finish() }
  }

  /// No entry ever came to these eight bins (`binsPerSearch`). Masses are never negative.
  @inline(__always) private func isEmpty(from bin: Int) -> Bool {
    let bits = UnsafeRawPointer(mass + bin).loadUnaligned(as: SIMD4<UInt64>.self)
    return bits[0] | bits[1] | bits[2] | bits[3] == 0
  }

  /// Searches all bins at once: the first verdict, when the search under way began with hardly any entries.
  mutating func search() {
    (searched, above, bestBin, bestCost) = (Self.bins, 0, 0, .infinity)
    let scale = lossCost / max(total, 1e-9)
    for bin in stride(from: Self.bins - 1, through: 0, by: -1) {
      let cost = upperEdges[bin] + above * scale
      if cost < bestCost { (bestCost, bestBin) = (cost, bin) }
      above += mass[bin]
    }
    finish()
  }

  @inline(never) private mutating func finish() {
    units = Int64(min(Self.upperEdge(bestBin), Limits.delayMilliseconds)) &* unitsPerMillisecond
    (searched, above, bestBin, bestCost) = (Self.bins, 0, 0, .infinity)
  }

  /// 0…31: 1 ms, 32…63: 2 ms, 64…95: 4 ms, 96…127: 8 ms.
  @inline(__always) static func bin(_ delay: Int) -> Int {
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

  /// Also takes out the rounding that the sums gathered.
  @inline(never) private mutating func rescale() {
    let factor = 1 / weight
    (total, above) = (0, 0)
    for position in 0..<Self.bins {
      mass[position] *= factor
      if position >= searched { above += mass[position] }
      total += mass[position]
    }
    weight = 1
  }

  mutating func removeAll() {
    mass.update(repeating: 0, count: Self.bins)
    (weight, total, units, highestBin) = (1, 0, 0, Self.narrowBins &- 1)
    (searched, above, bestBin, bestCost) = (Self.bins, 0, 0, .infinity)
  }
}
