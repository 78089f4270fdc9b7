/// How much packets are delayed beyond the fastest: a histogram in 1 ms bins whose entries fade, and one quantile of it kept up
/// to date.
///
/// Instead of fading 512 bins at every packet, each new entry weighs a little more than the one before; when weights get large
/// all are scaled down at once, every 20,000 packets or so. The quantile's bin moves by steps as mass changes, so an addition
/// costs about 20 instructions.
struct DelayHistogram: ~Copyable {
  static let bins = 512
  private let mass: UnsafeMutablePointer<Float>
  private let growth: Float
  private let share: Float
  private var weight: Float = 1
  private var total: Float = 0
  /// Mass in the bins below the quantile's.
  private var below: Float = 0
  private var bin = 0

  /// - Parameters:
  ///   - memoryPackets: after this many packets an entry weighs 1/e.
  ///   - quantile: the share of packets that shall be in time.
  init(memoryPackets: Float, quantile: Float) {
    mass = .allocate(capacity: Self.bins)
    mass.initialize(repeating: 0, count: Self.bins)
    growth = 1 + 1 / memoryPackets
    share = quantile
  }

  deinit { mass.deallocate() }

  /// The quantile in milliseconds: the upper edge of its bin; 0 while empty.
  var milliseconds: Int { total > 0 ? bin &+ 1 : 0 }

  // HOT
  mutating func add(milliseconds delay: Int, times: Float = 1) {
    let position = max(0, min(Self.bins &- 1, delay))
    let entry = weight * times
    mass[position] += entry
    total += entry
    if position < bin { below += entry }
    weight *= growth
    if weight > 1e6 { rescale() }
    let wanted = share * total
    while bin < Self.bins &- 1, below + mass[bin] < wanted {
      below += mass[bin]
      bin &+= 1
    }
    while bin > 0, below >= wanted {
      bin &-= 1
      below -= mass[bin]
    }
  }

  /// Also takes out the rounding that `below` and `total` gathered.
  private mutating func rescale() {
    let factor = 1 / weight
    (total, below) = (0, 0)
    for position in 0..<Self.bins {
      mass[position] *= factor
      if position < bin { below += mass[position] }
      total += mass[position]
    }
    weight = 1
  }

  mutating func removeAll() {
    mass.update(repeating: 0, count: Self.bins)
    (weight, total, below, bin) = (1, 0, 0, 0)
  }
}
