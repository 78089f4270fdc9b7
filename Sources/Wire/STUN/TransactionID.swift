import TrunklineBytes

/// The 96 bits that match an answer to its request.
public struct TransactionID: Hashable, Sendable, CustomStringConvertible {
  public let high: UInt32
  public let low: UInt64

  public init(high: UInt32, low: UInt64) {
    self.high = high
    self.low = low
  }
  /// A fresh one; must be unpredictable outside tests (RFC 8489 §5).
  public init(random: RandomSource) { self.init(high: UInt32(truncatingIfNeeded: random.next()), low: random.next()) }

  public var description: String { hexString(UInt64(high)).suffix(8) + hexString(low) }
}
