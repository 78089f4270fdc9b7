/// One INVITE dialog usage of ours, inbound or outbound. Never reused while the process lives.
///
/// Inbound legs are numbered by `UserAgent`; the caller numbers outbound legs with `LegID.outbound(n)`, so the two cannot
/// collide.
public struct LegID: Hashable, Sendable, CustomStringConvertible {
  public let raw: UInt64

  /// An inbound leg; only `UserAgent` (and tests that stand in for it) make these.
  public static func inbound(_ number: UInt64) -> LegID { LegID(raw: number & ~outboundBit) }
  /// An outbound leg with the caller's own running number, which must not repeat.
  public static func outbound(_ number: UInt64) -> LegID { LegID(raw: number | outboundBit) }

  /// A leg of a call between two users of ours, for which no message is sent: the caller's is outbound. Numbered as outbound
  /// legs are.
  public static func direct(_ number: UInt64, isOutbound: Bool) -> LegID {
    LegID(raw: number & ~outboundBit | directBit | (isOutbound ? outboundBit : 0))
  }

  public var isDirect: Bool { raw & Self.directBit != 0 }
  /// The other leg of a call between users.
  public var directPeer: LegID { LegID(raw: raw ^ Self.outboundBit) }

  public var isOutbound: Bool { raw & Self.outboundBit != 0 }
  public var description: String {
    (isDirect ? "direct-" : "") + (isOutbound ? "out-" : "in-") + String(raw & ~(Self.outboundBit | Self.directBit))
  }

  private static let outboundBit: UInt64 = 1 << 63
  private static let directBit: UInt64 = 1 << 62
  private init(raw: UInt64) { self.raw = raw }
}
