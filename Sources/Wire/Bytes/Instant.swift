/// A point on the process's monotonic clock, in nanoseconds. Machines below `Platform` never read a clock: "now" is an argument.
public struct Instant: Hashable, Comparable, Sendable {
  /// Since the clock's origin.
  public var nanoseconds: Int64

  /// So long behind the clock's origin.
  @inlinable public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  /// The clock's origin; useful as the start of virtual time in tests.
  public static let zero = Instant(nanoseconds: 0)
  /// Later than any deadline.
  public static let distantFuture = Instant(nanoseconds: .max)

  @inlinable public static func < (a: Instant, b: Instant) -> Bool { a.nanoseconds < b.nanoseconds }
  /// The first of two deadlines, of which either may be missing.
  @inlinable public static func earliest(_ a: Instant?, _ b: Instant?) -> Instant? {
    guard let a else { return b }
    return b.map { min(a, $0) } ?? a
  }
  /// Later.
  @inlinable public static func + (a: Instant, d: Duration) -> Instant { Instant(nanoseconds: a.nanoseconds &+ d.nanoseconds) }
  /// Earlier.
  @inlinable public static func - (a: Instant, d: Duration) -> Instant { Instant(nanoseconds: a.nanoseconds &- d.nanoseconds) }
  /// What lies between.
  @inlinable public static func - (a: Instant, b: Instant) -> Duration { .nanoseconds(a.nanoseconds &- b.nanoseconds) }
}

extension Duration {
  /// Whole nanoseconds, saturating at about ±292 years.
  @inlinable public var nanoseconds: Int64 {
    let (seconds, attoseconds) = components
    let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    return overflow ? (seconds < 0 ? .min : .max) : scaled &+ attoseconds / 1_000_000_000
  }
  /// Whole milliseconds, rounded toward zero.
  @inlinable public var milliseconds: Int64 { nanoseconds / 1_000_000 }
  /// As a floating-point number of seconds, for reports only.
  public var inSeconds: Double { Double(nanoseconds) / 1e9 }
}
