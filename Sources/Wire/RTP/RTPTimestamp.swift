/// An RTP media timestamp in units of the payload's clock, modulo 2³² (RFC 3550 §5.1).
@frozen public struct RTPTimestamp: Hashable, Sendable {
  public var raw: UInt32
  @inlinable public init(raw: UInt32) { self.raw = raw }

  /// Clock units from `other` to `self`, the shorter way around.
  @inlinable public func distance(from other: RTPTimestamp) -> Int { Int(Int32(bitPattern: raw &- other.raw)) }
  @inlinable public func isNewer(than other: RTPTimestamp) -> Bool { distance(from: other) > 0 }
  @inlinable public func advanced(by units: Int) -> RTPTimestamp { RTPTimestamp(raw: raw &+ UInt32(truncatingIfNeeded: units)) }
}

/// A synchronisation source (RFC 3550 §3).
@frozen public struct SSRC: Hashable, Sendable, CustomStringConvertible {
  public var raw: UInt32
  @inlinable public init(raw: UInt32) { self.raw = raw }
  public var description: String { "0x" + String(raw, radix: 16) }
}

/// 64-bit NTP time: seconds since 1900 and a fraction of 2⁻³² s (RFC 3550 §4).
@frozen public struct NTPTimestamp: Hashable, Sendable {
  public var raw: UInt64
  @inlinable public init(raw: UInt64) { self.raw = raw }
  /// From a wall clock's nanoseconds since 1970.
  @inlinable public init(unixNanoseconds: Int64) {
    let whole = unixNanoseconds / 1_000_000_000
    let rest = unixNanoseconds % 1_000_000_000
    let seconds = UInt64(truncatingIfNeeded: whole &+ 2_208_988_800) & 0xffff_ffff
    let fraction = (UInt64(truncatingIfNeeded: max(0, rest)) << 32) / 1_000_000_000
    self.raw = seconds << 32 | fraction
  }
  /// The middle 32 bits, units of 2⁻¹⁶ s, as reports carry them (LSR, DLSR).
  @inlinable public var middle: UInt32 { UInt32(truncatingIfNeeded: raw >> 16) }
}
