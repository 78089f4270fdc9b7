import TrunklineBytes

/// When in a period of 20 ms (or as long as a packet) packets arrive, so that the tick can come just after them instead of up to 20 ms later: what a thread
/// around a peer that has no preference of its own would do.
///
/// A verdict after the first second, then every 10 s, because two clocks drift apart by a period in minutes. Counts in bins of 1 ms; no
/// allocation.
struct ArrivalPhase: ~Copyable {
  private static let firstVerdict = 50
  private static let nextVerdict = 500
  /// A mean wait shorter by less than this is not worth a shifted tick.
  private static let worthwhileMilliseconds = 3
  /// Of 1 ms: the period.
  private let bins: Int
  // `bins` initialised counts; freed in deinit.
  private let counts: UnsafeMutablePointer<Int>
  private var total = 0
  private var wanted = ArrivalPhase.firstVerdict

  init(periodMilliseconds: Int) {
    bins = periodMilliseconds
    counts = .allocate(capacity: bins)
    counts.initialize(repeating: 0, count: bins)
  }
  deinit { counts.deallocate() }

  /// Counts a packet.
  // HOT
  mutating func arrived(at now: Instant) {
    counts[phase(now)] &+= 1
    total &+= 1
  }

  /// The best phase for a tick that now runs at `current`, when there is a verdict and it is worth moving.
  mutating func verdict(current: Int) -> Int? {
    guard total >= wanted else { return nil }
    var best = (phase: 0, wait: Int.max)
    for phase in 0..<bins {
      let wait = wait(for: phase)
      if wait < best.wait { best = (phase, wait) }
    }
    let gain = wait(for: current) - best.wait
    let isWorthwhile = gain > Self.worthwhileMilliseconds * total
    for bin in 0..<bins { counts[bin] = 0 }
    (total, wanted) = (0, Self.nextVerdict)
    return isWorthwhile ? best.phase : nil
  }

  /// Sum of what packets would wait for a tick at `phase`: those of its own millisecond are taken as a whole period late.
  private func wait(for phase: Int) -> Int {
    var sum = 0
    for back in 1...bins { sum += counts[(phase - back + 2 * bins) % bins] * back }
    return sum
  }

  /// Which millisecond of the period an instant lies in.
  func phase(_ instant: Instant) -> Int {
    let milliseconds = instant.nanoseconds / 1_000_000
    return Int((milliseconds % Int64(bins) + Int64(bins)) % Int64(bins))
  }
}
