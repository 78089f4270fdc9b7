import Synchronization
import TrunklineBytes

/// A count that only grows. Any thread; lock-free, no allocation.
public final class Counter: Sendable {
  @usableFromInline let count = Atomic<UInt64>(0)
  public init() {}
  @inlinable public func increment(by amount: UInt64 = 1) { count.wrappingAdd(amount, ordering: .relaxed) }
  @inlinable public var value: UInt64 { count.load(ordering: .relaxed) }
}

/// A level that goes up and down. Any thread; lock-free, no allocation.
public final class Gauge: Sendable {
  @usableFromInline let level = Atomic<Int64>(0)
  public init() {}
  @inlinable public func set(_ value: Int64) { level.store(value, ordering: .relaxed) }
  @inlinable public func add(_ amount: Int64) { level.wrappingAdd(amount, ordering: .relaxed) }
  /// Keeps the larger of the present and the given value.
  @inlinable public func raise(to value: Int64) {
    if level.load(ordering: .relaxed) < value { level.max(value, ordering: .relaxed) }
  }
  @inlinable public var value: Int64 { level.load(ordering: .relaxed) }
}

/// Observations in buckets with fixed upper bounds, in seconds or whatever unit the metric's name carries.
/// Any thread; lock-free, no allocation; a search over at most 64 bounds.
public final class Histogram: Sendable {
  /// Ascending, without the last one (`+Inf`).
  public let bounds: [Double]
  private let counts: UnsafeAtomics
  private let sumBits = Atomic<UInt64>(0)

  /// `bounds` must ascend and be finite.
  public init(bounds: [Double]) {
    precondition(bounds.count <= Limits.histogramBuckets && !bounds.isEmpty)
    precondition(zip(bounds, bounds.dropFirst()).allSatisfy { $0 < $1 } && bounds.allSatisfy(\.isFinite))
    self.bounds = bounds
    counts = UnsafeAtomics(count: bounds.count + 1)
  }

  /// Bounds from 5 ms to 60 s, for set-up times.
  public static let secondsBounds: [Double] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 1.5, 2, 3, 5, 7.5, 10, 15, 20, 30, 45, 60,
  ]
  /// Bounds from 50 µs to 100 ms, for ticks and turns of a loop.
  public static let tickBounds: [Double] = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1]

  public func record(_ value: Double) {
    guard value.isFinite else { return }
    var index = 0
    while index < bounds.count, value > bounds[index] { index &+= 1 }
    counts.increment(index)
    addToSum(value)
  }

  /// Everything that another histogram with the same bounds has recorded.
  func add(_ other: HistogramSnapshot) {
    precondition(other.bounds == bounds)
    for (index, count) in other.counts.enumerated() { counts.increment(index, by: count) }
    addToSum(other.sum)
  }

  private func addToSum(_ value: Double) {
    var old = sumBits.load(ordering: .relaxed)
    while true {
      let new = (Double(bitPattern: old) + value).bitPattern
      let (done, seen) = sumBits.weakCompareExchange(expected: old, desired: new, ordering: .relaxed)
      if done { return }
      old = seen
    }
  }

  /// In seconds.
  public func record(_ duration: Duration) { record(duration.inSeconds) }

  public var snapshot: HistogramSnapshot {
    let counts = (0...bounds.count).map { self.counts.load($0) }
    return HistogramSnapshot(bounds: bounds, counts: counts, sum: Double(bitPattern: sumBits.load(ordering: .relaxed)))
  }
}

/// A histogram at one moment: `counts` has one entry more than `bounds` and is not cumulative.
public struct HistogramSnapshot: Hashable, Sendable {
  public let bounds: [Double]
  public let counts: [UInt64]
  public let sum: Double
  public init(bounds: [Double], counts: [UInt64], sum: Double) { (self.bounds, self.counts, self.sum) = (bounds, counts, sum) }
  public var total: UInt64 { counts.reduce(0, &+) }
}

/// A fixed row of atomic counts. The memory lives as long as the object and is only reached through atomics.
private final class UnsafeAtomics: @unchecked Sendable {
  private let base: UnsafeMutablePointer<Atomic<UInt64>>
  private let count: Int

  init(count: Int) {
    self.count = count
    base = .allocate(capacity: count)
    for index in 0..<count { (base + index).initialize(to: Atomic(0)) }
  }
  deinit {
    base.deinitialize(count: count)
    base.deallocate()
  }
  func increment(_ index: Int, by amount: UInt64 = 1) {
    precondition(index >= 0 && index < count)
    base[index].wrappingAdd(amount, ordering: .relaxed)
  }
  func load(_ index: Int) -> UInt64 {
    precondition(index >= 0 && index < count)
    return base[index].load(ordering: .relaxed)
  }
}
