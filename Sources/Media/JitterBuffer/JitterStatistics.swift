/// Count: what happened to packets and what was decided, apart from what decides. Cleared never; the owner takes differences.
public struct JitterStatistics: Sendable, Equatable {
  public var inserted: UInt64 = 0
  /// Came after their place was played or skipped.
  public var late: UInt64 = 0
  public var duplicate: UInt64 = 0
  /// Not stored: larger than a datagram, or no room for large payloads.
  public var refused: UInt64 = 0
  /// Far from the stream's numbers, once; a second in order resynchronises.
  public var outOfRange: UInt64 = 0
  /// Dropped, oldest first, because the buffer was full or too far behind.
  public var overflowed: UInt64 = 0
  public var resynchronised: UInt64 = 0
  public var fetched: UInt64 = 0
  /// Places played without their packet: repaired, made up or skipped.
  public var missing: UInt64 = 0
  /// Of the missing: played from the copy in their successor.
  public var repaired: UInt64 = 0
  /// Of the missing: left out but for a join, because the delay was longer than wanted.
  public var leftOut: UInt64 = 0
  /// Fetches that had nothing to give: a late network, a pause of the talker, or a missing packet that may only have been overtaken.
  public var waits: UInt64 = 0
  /// Ticks at which audio was to be shortened, lengthened.
  public var shrinks: UInt64 = 0
  public var grows: UInt64 = 0
  public init() {}
}
