/// How much packets are delayed beyond the fastest: a histogram whose entries fade, and the delay that costs least by it.
///
/// A delay of `d` milliseconds costs `d` plus `lossCost` for each percent of packets that come later than that. With hardly any
/// jitter the least cost lies just above the slowest packet; rare spikes are not worth waiting for all the time, frequent ones are.
///
/// Instead of fading all bins at every packet, each new entry weighs a little more than the one before; when weights get large all
/// are scaled down at once, every 20,000 packets or so. The search for the least cost looks at a few bins per entry, from the top
/// down, and is through every 40 packets. Bins are 1 ms wide up to 64 ms, then 2, 4 and 8 ms.
struct DelayHistogram: ~Copyable {
  static let bins = 160
  private static let binsPerEntry = 4
  private let mass: UnsafeMutablePointer<Float>
  private let growth: Float
  private let lossCost: Float
  private var weight: Float = 1
  private var total: Float = 0
  /// The search: bins from here up are done, hold `above`, and `best` costs least of them.
  private var searched = DelayHistogram.bins
  private var above: Float = 0
  private var best = (bin: 0, cost: Float.infinity)
  /// Of the last whole search.
  private(set) var milliseconds = 0

  /// - Parameters:
  ///   - memoryPackets: after this many packets an entry weighs 1/e.
  ///   - lossCost: milliseconds of delay that one percent of late packets is worth.
  init(memoryPackets: Float, lossCost: Float) {
    mass = .allocate(capacity: Self.bins)
    mass.initialize(repeating: 0, count: Self.bins)
    growth = 1 + 1 / memoryPackets
    self.lossCost = lossCost * 100
  }

  deinit { mass.deallocate() }

  // HOT
  mutating func add(milliseconds delay: Int) {
    let position = Self.bin(delay)
    mass[position] += weight
    total += weight
    if position >= searched { above += weight }
    weight *= growth
    if weight > 1e6 { rescale() }
    search()
  }

  @inline(__always) private mutating func search() {
    let scale = lossCost / total
    for _ in 0..<Self.binsPerEntry {
      searched &-= 1
      // A delay of this bin's upper edge leaves late what lies above.
      let cost = Float(Self.upperEdge(searched)) + above * scale
      if cost < best.cost { best = (searched, cost) }
      above += mass[searched]
    }
    guard searched == 0 else { return }
    milliseconds = Self.upperEdge(best.bin)
    (searched, above, best) = (Self.bins, 0, (0, .infinity))
  }

  /// 0…63: 1 ms, 64…95: 2 ms, 96…127: 4 ms, 128…159: 8 ms.
  @inline(__always) private static func bin(_ delay: Int) -> Int {
    if delay < 64 { return max(0, delay) }
    if delay < 128 { return 64 &+ (delay &- 64) >> 1 }
    if delay < 256 { return 96 &+ (delay &- 128) >> 2 }
    return min(bins &- 1, 128 &+ (min(delay, 1024) &- 256) >> 3)
  }

  @inline(__always) private static func upperEdge(_ bin: Int) -> Int {
    if bin < 64 { return bin &+ 1 }
    if bin < 96 { return 64 &+ (bin &- 63) << 1 }
    if bin < 128 { return 128 &+ (bin &- 95) << 2 }
    return 256 &+ (bin &- 127) << 3
  }

  /// Also takes out the rounding that the sums gathered.
  private mutating func rescale() {
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
    (weight, total, above, searched, milliseconds) = (1, 0, 0, Self.bins, 0)
    best = (0, .infinity)
  }
}
