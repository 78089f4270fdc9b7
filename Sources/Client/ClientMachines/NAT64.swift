public import TrunklineBytes

/// Reaches IPv4 from a network that has IPv6 only: puts the gateway's IPv4 candidates under the translator's prefix (RFC
/// 6052), which DNS64 reveals (RFC 7050). App Review tests on such a network.
public struct NAT64: Sendable, Equatable {
  /// The name that has IPv4 addresses only; if a server returns an IPv6 one, a translator made it.
  public static let name = "ipv4only.arpa"
  private static let known: [UInt32] = [0xc000_00aa, 0xc000_00ab]
  private static let lengths = [96, 64, 56, 48, 40, 32]

  let prefix: [UInt8]
  /// Bits of the prefix.
  public let length: Int

  /// The prefix in an IPv6 address of `name`; nil if it contains none of the known IPv4 addresses.
  public init?(answer: IPAddress) {
    guard answer.family == .v6 else { return nil }
    let bytes = answer.bytes
    for length in Self.lengths where Self.known.contains(Self.embedded(in: bytes, length)) {
      (prefix, self.length) = (Array(bytes.prefix(length / 8)), length)
      return
    }
    return nil
  }

  /// The IPv6 address for an IPv4 address (RFC 6052 §2.2); nil for an IPv6 address.
  public func address(of ip: IPAddress) -> IPAddress? {
    guard ip.family == .v4 else { return nil }
    var bytes = prefix + [UInt8](repeating: 0, count: 16 - prefix.count)
    let v4 = UInt32(truncatingIfNeeded: ip.low)
    for (index, position) in Self.positions(length).enumerated() {
      bytes[position] = UInt8(truncatingIfNeeded: v4 >> (24 - 8 * UInt32(index)))
    }
    func word(_ range: Range<Int>) -> UInt64 { bytes[range].reduce(0) { $0 << 8 | UInt64($1) } }
    return IPAddress(v6High: word(0..<8), low: word(8..<16))
  }

  /// Positions of the four octets: octet 8 is skipped.
  private static func positions(_ length: Int) -> [Int] {
    Array((length / 8..<16).filter { $0 != 8 || length == 96 }.prefix(4))
  }
  private static func embedded(in bytes: [UInt8], _ length: Int) -> UInt32 {
    positions(length).reduce(0) { $0 << 8 | UInt32(bytes[$1]) }
  }
}
