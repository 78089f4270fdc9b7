/// The hash FNV-1a of 64 bits (Fowler, Noll, Vo): the same in every process and at every node, unlike `Hasher`. For tables, tags and short
/// names whose collisions cost nothing; it resists no adversary. About 4 cycles an octet.
public struct FNV1a: Sendable {
  @usableFromInline var state: UInt64 = 0xcbf2_9ce4_8422_2325

  @inlinable public var value: UInt64 { state }

  public init() {}

  /// The hash of these octets.
  @inlinable public init(_ octets: some Sequence<UInt8>) {
    self.init()
    add(octets)
  }

  @inlinable public mutating func add(_ octets: some Sequence<UInt8>) {
    for octet in octets { state = (state ^ UInt64(octet)) &* 0x100_0000_01b3 }
  }
}
