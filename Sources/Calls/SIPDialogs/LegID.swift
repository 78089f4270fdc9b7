/// One INVITE dialog usage of ours, inbound or outbound. Never reused while the process lives.
///
/// Inbound legs are numbered by `UserAgent`; the caller numbers outbound legs with `LegID.outbound(n)`, so the two can not meet.
public struct LegID: Hashable, Sendable, CustomStringConvertible {
  public let raw: UInt64

  /// An inbound leg; only `UserAgent` (and tests that stand in for it) make these.
  public static func inbound(_ number: UInt64) -> LegID { LegID(raw: number & ~outboundBit) }
  /// An outbound leg with the caller's own running number, which must not repeat.
  public static func outbound(_ number: UInt64) -> LegID { LegID(raw: number | outboundBit) }

  public var isOutbound: Bool { raw & Self.outboundBit != 0 }
  public var description: String { (isOutbound ? "out-" : "in-") + String(raw & ~Self.outboundBit) }

  private static let outboundBit: UInt64 = 1 << 63
  private init(raw: UInt64) { self.raw = raw }
}
