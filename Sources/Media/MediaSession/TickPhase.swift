/// When the receiver of a stream prefers its next tick, as of the last one.
public enum TickPreference: Sendable, Equatable {
  /// There is no stream: any tick will do.
  case none
  /// Packets wait longer than they need to.
  case earlier
  /// The tick is right, as far as is known.
  case stay
  /// The next packets may come too late for their ticks.
  case later
  /// The stream began just before its tick: the next must come later by this many milliseconds.
  case laterAtOnce(Int)
}

/// The position of a direction's tick in its 20 ms follows the preference of its jitter buffer (`AudioReceiver.tickPreference`),
/// by a millisecond at a time, every fourth tick at most. So packets hardly wait for the tick that plays them, clocks that drift
/// apart need no stretching, and the far end notices no jump, save for one of a few milliseconds where a stream begins.
public struct TickPhase: Sendable {
  private static let pause = 4
  private var unmoved = 0

  public init() {}

  /// Call it once after each tick.
  /// - Returns: milliseconds by which the next tick comes later (positive) or earlier (−1) than 20 ms after this one.
  // HOT
  public mutating func step(_ preference: TickPreference) -> Int {
    unmoved &+= 1
    if case .laterAtOnce(let milliseconds) = preference {
      unmoved = 0
      return max(0, min(Limits.startMarginMilliseconds, milliseconds))
    }
    guard preference == .earlier || preference == .later, unmoved >= Self.pause else { return 0 }
    unmoved = 0
    return preference == .later ? 1 : -1
  }
}
