/// Where a session's tick lies in its 20 ms follows what the jitter buffer asks for (`AudioReceiver.tickShift`), by a millisecond at a
/// time: every fourth tick in the first two seconds, every tenth later. So no packet waits for the tick that plays it, clocks that
/// drift apart need no stretching, and the far end sees no jump.
public struct TickPhase: Sendable {
  private static let startTicks = 100
  private static let startPause = 4
  private static let pause = 10
  private var ticks = 0
  private var unmoved = 0

  public init() {}

  /// Asked once after each tick.
  /// - Parameter wish: of the receiver: −1 earlier, 1 later, 0 as it is.
  /// - Returns: milliseconds by which the next tick comes later (1) or earlier (−1) than 20 ms after this one.
  // HOT
  public mutating func step(_ wish: Int) -> Int {
    ticks = min(ticks &+ 1, Self.startTicks)
    unmoved &+= 1
    guard wish != 0, unmoved >= (ticks < Self.startTicks ? Self.startPause : Self.pause) else { return 0 }
    unmoved = 0
    return wish.signum()
  }
}
