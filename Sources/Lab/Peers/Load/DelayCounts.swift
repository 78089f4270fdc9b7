import TrunklineBytes
import TrunklineRTP

/// Durations counted in steps of 0.1 ms from −100 ms to +300 ms; values outside count at the edge.
struct DelayCounts: Sendable {
  private static let stepNanoseconds: Int64 = 100_000
  private static let zero = 1000
  private var counts = [UInt32](repeating: 0, count: 4000)
  private(set) var total: UInt64 = 0

  mutating func count(_ duration: Duration) {
    let index = Int(duration.nanoseconds / Self.stepNanoseconds) + Self.zero
    counts[max(0, min(counts.count - 1, index))] += 1
    total += 1
  }

  /// Adds another's counts, moved so that its smallest value is zero.
  mutating func addAboveSmallest(_ other: DelayCounts) {
    guard let smallest = other.counts.firstIndex(where: { $0 > 0 }) else { return }
    for index in smallest..<other.counts.count where other.counts[index] > 0 {
      counts[min(counts.count - 1, index - smallest + Self.zero)] += other.counts[index]
    }
    total += other.total
  }

  /// Milliseconds below which `share` of all lie (0…1); 0 if nothing was counted.
  func quantile(_ share: Double) -> Double {
    guard total > 0 else { return 0 }
    let wanted = max(1, UInt64((Double(total) * share).rounded(.up)))
    var sum: UInt64 = 0
    for (index, count) in counts.enumerated() {
      sum += UInt64(count)
      if sum >= wanted { return Double(index - Self.zero) / 10 }
    }
    return 0
  }
}

/// Counts one RTP stream at its receiver: packets received and missing, and how far each packet is behind the fastest.
struct StreamCount: Sendable {
  private var extender = SequenceExtender()
  private var first: Int64?
  private var highest: Int64 = 0
  private(set) var received: UInt64 = 0
  private(set) var reordered: UInt64 = 0
  private(set) var delays = DelayCounts()
  private var origin: (at: Instant, timestamp: UInt32)?
  private let clockRateHz: Int64

  init(clockRateHz: Int64) { self.clockRateHz = clockRateHz }

  /// - Parameter counted: whether the delay is counted, too.
  mutating func receive(sequence: UInt16, timestamp: UInt32, at now: Instant, counted: Bool) {
    let extended = extender.extend(SequenceNumber(raw: sequence)).raw
    received += 1
    if first == nil { (first, highest) = (extended, extended) }
    if extended < highest { reordered += 1 }
    highest = max(highest, extended)
    guard counted else { return }
    guard let origin else {
      self.origin = (now, timestamp)
      return
    }
    let units = Int64(Int32(bitPattern: timestamp &- origin.timestamp))
    delays.count((now - origin.at) - .nanoseconds(units * 1_000_000_000 / clockRateHz))
    if units > 1 << 24 { self.origin = nil }
  }

  var lost: UInt64 {
    guard let first else { return 0 }
    let expected = UInt64(max(0, highest - first + 1))
    return expected > received ? expected - received : 0
  }
}
