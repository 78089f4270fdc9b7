import TrunklineRTP

/// The ticks that a relayed call may still skip: four in five, since its packets need none.
///
/// | input | effect |
/// |---|---|
/// | `begin` | the next `Limits.skippedTicks` ticks of each direction are skipped |
/// | `skips` | true while ticks are left; the app's direction counts them |
/// | `end`: a command, or an event packet | none is skipped any more |
struct SkippedTicks {
  private var left = 0

  /// HOT
  @inline(__always) mutating func skips(_ direction: AudioDirection) -> Bool {
    guard left > 0 else { return false }
    if direction == .appToTrunk { left &-= 1 }
    return true
  }

  mutating func begin() { left = Limits.skippedTicks }
  mutating func end() { left = 0 }
}
