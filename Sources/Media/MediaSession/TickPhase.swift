/// Where a session's tick lies in its 20 ms follows what the jitter buffer asks for (`AudioReceiver.tickShift`), by a millisecond at a
/// time, every fourth tick at most (decision 0210). So no packet waits for the tick that plays it, clocks that drift apart need no
/// stretching, and the far end sees no jump.
public struct TickPhase: Sendable {
  private static let pause = 4
  private var unmoved = 0

  public init() {}

  /// Asked once after each tick.
  /// - Parameter wish: of the receiver: −1 earlier, 1 later, 0 as it is.
  /// - Returns: milliseconds by which the next tick comes later (1) or earlier (−1) than 20 ms after this one.
  // HOT
  public mutating func step(_ wish: Int) -> Int {
    unmoved &+= 1
    guard wish != 0, unmoved >= Self.pause else { return 0 }
    unmoved = 0
    return wish.signum()
  }
}
