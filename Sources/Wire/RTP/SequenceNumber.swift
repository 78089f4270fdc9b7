/// An RTP sequence number: 16 bits, modulo 65536 (RFC 3550 §5.1).
@frozen public struct SequenceNumber: Hashable, Sendable {
  public var raw: UInt16
  @inlinable public init(raw: UInt16) { self.raw = raw }

  /// How many steps `self` lies after `other`, −32768…32767: the shorter way around.
  @inlinable public func distance(from other: SequenceNumber) -> Int { Int(Int16(bitPattern: raw &- other.raw)) }
  /// True when `self` comes after `other`, across a wrap too. Not transitive over half the number space, so no `Comparable`.
  @inlinable public func isNewer(than other: SequenceNumber) -> Bool { distance(from: other) > 0 }
  @inlinable public var next: SequenceNumber { SequenceNumber(raw: raw &+ 1) }
  @inlinable public func advanced(by steps: Int) -> SequenceNumber {
    SequenceNumber(raw: raw &+ UInt16(truncatingIfNeeded: steps))
  }
}

/// A sequence number with its wraps counted: totally ordered for the life of a stream.
@frozen public struct ExtendedSequence: Hashable, Comparable, Sendable {
  public var raw: Int64
  @inlinable public init(raw: Int64) { self.raw = raw }

  @inlinable public static func < (a: ExtendedSequence, b: ExtendedSequence) -> Bool { a.raw < b.raw }
  @inlinable public static func - (a: ExtendedSequence, b: ExtendedSequence) -> Int { Int(a.raw &- b.raw) }
  @inlinable public func advanced(by steps: Int) -> ExtendedSequence { ExtendedSequence(raw: raw &+ Int64(steps)) }
  @inlinable public var sequence: SequenceNumber { SequenceNumber(raw: UInt16(truncatingIfNeeded: raw)) }
}

/// Counts the wraps of one stream. Takes each number as the nearest one to the highest seen, so reordering across a wrap is
/// right.
@frozen public struct SequenceExtender: Sendable {
  @usableFromInline var highest: ExtendedSequence?

  @inlinable public init() {}

  /// The extended number of a received packet. The first one seen keeps its 16 bits and starts in cycle 1, so that packets
  /// reordered before it stay positive.
  @inlinable public mutating func extend(_ sequence: SequenceNumber) -> ExtendedSequence {
    guard let highest else {
      let first = ExtendedSequence(raw: 65_536 &+ Int64(sequence.raw))
      self.highest = first
      return first
    }
    let extended = highest.advanced(by: sequence.distance(from: highest.sequence))
    if extended > highest { self.highest = extended }
    return extended
  }
}
