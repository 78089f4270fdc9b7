/// A part of a message's bytes. Plain numbers, so that typed headers cost neither allocation nor reference counting.
public struct ByteRange: Hashable, Sendable {
  public let start: UInt32
  public let end: UInt32

  @inlinable init(from start: Int, to end: Int) {
    self.start = UInt32(truncatingIfNeeded: start)
    self.end = UInt32(truncatingIfNeeded: max(start, end))
  }

  public static let empty = ByteRange(from: 0, to: 0)

  public var lower: Int { Int(start) }
  public var upper: Int { Int(end) }
  public var count: Int { Int(end) - Int(start) }
  public var isEmpty: Bool { start == end }

  /// The same range, clamped to the bounds of an array of `count` bytes.
  func clamped(to count: Int) -> Range<Int> {
    let low = min(lower, count)
    return low..<min(max(low, upper), count)
  }
}

extension [UInt8] {
  /// The bytes of a range of this array; empty outside it.
  public func slice(_ range: ByteRange) -> ArraySlice<UInt8> { self[range.clamped(to: count)] }
  /// The bytes of a range as text; invalid UTF-8 is repaired.
  public func text(_ range: ByteRange) -> String { String(decoding: slice(range), as: UTF8.self) }
}

extension ByteRange {
  /// From one offset to another; empty if they are in the wrong order.
  public init(joining start: Int, _ end: Int) { self.init(from: max(0, start), to: max(0, end)) }
}
