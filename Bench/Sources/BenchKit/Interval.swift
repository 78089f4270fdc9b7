import TrunklineBytes

/// A mean with its 95 % interval, by a bootstrap over the groups of the values: voices, or calls. Values of one group are alike,
/// so groups are drawn, not values.
public struct Interval: Sendable, Codable, Equatable {
  public var mean: Double
  public var low: Double
  public var high: Double

  public init(mean: Double, low: Double, high: Double) { (self.mean, self.low, self.high) = (mean, low, high) }

  /// nil without a value. One group has no interval: both ends are its mean. The cost is `rounds` × the number of groups. The
  /// result is the same each time.
  public init?(groups: [[Double]], rounds: Int = 4000) {
    let sums = groups.filter { !$0.isEmpty }.map { (sum: $0.reduce(0, +), count: Double($0.count)) }
    let count = sums.reduce(0) { $0 + $1.count }
    guard count > 0 else { return nil }
    var chance = SplitMix64(seed: 20)
    var means: [Double] = []
    means.reserveCapacity(rounds)
    for _ in 0..<rounds {
      var (sum, weight) = (0.0, 0.0)
      for _ in sums.indices {
        let group = sums[Int(chance.next() % UInt64(sums.count))]
        sum += group.sum
        weight += group.count
      }
      means.append(sum / weight)
    }
    means.sort()
    self.init(mean: sums.reduce(0) { $0 + $1.sum } / count, low: means[rounds / 40], high: means[rounds - 1 - rounds / 40])
  }

  /// Half of the interval's width: the number after ±.
  public var half: Double { (high - low) / 2 }
  /// Whether the interval contains zero: the measurement shows no difference.
  public var holdsZero: Bool { low <= 0 && high >= 0 }
}
