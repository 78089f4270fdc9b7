/// An IPv4 or IPv6 address as a value, without sockets. IPv4 is held in the low 32 bits. 17 bytes of state.
public struct IPAddress: Hashable, Sendable, CustomStringConvertible {
  public enum Family: UInt8, Sendable { case v4 = 4, v6 = 6 }

  public let family: Family
  /// The first eight bytes of an IPv6 address, zero for IPv4; network order as a number.
  public let high: UInt64
  /// The last eight bytes of an IPv6 address, or the IPv4 address in the low 32 bits.
  public let low: UInt64

  public init(v4 value: UInt32) { (family, high, low) = (.v4, 0, UInt64(value)) }
  public init(v6High high: UInt64, low: UInt64) { (family, self.high, self.low) = (.v6, high, low) }
  public init(_ a: UInt8, _ b: UInt8, _ c: UInt8, _ d: UInt8) {
    self.init(v4: UInt32(a) << 24 | UInt32(b) << 16 | UInt32(c) << 8 | UInt32(d))
  }

  public static let loopback = IPAddress(127, 0, 0, 1)
  public static let loopback6 = IPAddress(v6High: 0, low: 1)
  public static let any = IPAddress(0, 0, 0, 0)
  public static let any6 = IPAddress(v6High: 0, low: 0)

  /// 4 or 16 bytes in network order; nil for any other count.
  public init?(bytes: some Collection<UInt8>) {
    switch bytes.count {
    case 4: self.init(v4: bytes.reduce(0) { $0 << 8 | UInt32($1) })
    case 16:
      self.init(
        v6High: bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }, low: bytes.dropFirst(8).reduce(0) { $0 << 8 | UInt64($1) })
    default: return nil
    }
  }

  /// The address in network order, 4 or 16 bytes.
  public var bytes: [UInt8] {
    func eight(_ v: UInt64) -> [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: v >> UInt64(56 - 8 * $0)) } }
    return family == .v4 ? Array(eight(low).suffix(4)) : eight(high) + eight(low)
  }

  /// An IPv4 address written as IPv4-mapped IPv6 (`::ffff:a.b.c.d`) becomes IPv4, everything else stays.
  public var unmapped: IPAddress {
    family == .v6 && high == 0 && low >> 32 == 0xffff ? IPAddress(v4: UInt32(truncatingIfNeeded: low)) : self
  }

  /// The address with every bit after the first `length` cleared: the first address of its network of that prefix length.
  public func masked(to length: Int) -> IPAddress {
    func mask(_ bits: Int) -> UInt64 { bits <= 0 ? 0 : bits >= 64 ? .max : ~(UInt64.max >> UInt64(bits)) }
    if family == .v4 { return IPAddress(v4: UInt32(truncatingIfNeeded: low & (mask(length + 32) & 0xffff_ffff))) }
    return IPAddress(v6High: high & mask(length), low: low & mask(length - 64))
  }

  public var isLoopback: Bool { family == .v4 ? low >> 24 == 127 : high == 0 && low == 1 }
  public var isUnspecified: Bool { high == 0 && low == 0 }
  public var isMulticast: Bool { family == .v4 ? low >> 28 == 0xe : high >> 56 == 0xff }
  public var isLinkLocal: Bool { family == .v4 ? low >> 16 == 0xa9fe : high >> 54 == 0xfe80 >> 6 }
  /// Not assigned on the internet: "this network", documentation, benchmarks and future use (RFC 6890).
  public var isReserved: Bool {
    if family == .v6 { return high >> 32 == 0x2001_0db8 || high >> 44 == 0x3fff0 || high == 0x0100 << 48 }
    return low >> 24 == 0 || low >> 28 == 0xf || low >> 17 == 0xc612 >> 1
      || [0xc00000, 0xc00002, 0xc63364, 0xcb0071].contains(low >> 8)
  }
  /// Not reachable over the internet: RFC 1918, RFC 6598 (carriers' NAT), RFC 4193, link-local.
  public var isPrivate: Bool {
    if family == .v6 { return isLinkLocal || high >> 57 == 0xfc >> 1 }
    return isLinkLocal || low >> 24 == 10 || low >> 20 == 0xac1 || low >> 16 == 0xc0a8 || low >> 22 == 0x6440 >> 6
  }

  /// Dotted IPv4, or IPv6 in the form of RFC 5952 (lower case, longest run of zeros shortened).
  public var description: String {
    if family == .v4 {
      let value = UInt32(truncatingIfNeeded: low)
      return "\(value >> 24).\(value >> 16 & 255).\(value >> 8 & 255).\(value & 255)"
    }
    let groups = (0..<8).map { i -> UInt16 in
      let half = i < 4 ? high : low
      return UInt16(truncatingIfNeeded: half >> UInt64(48 - 16 * (i % 4)))
    }
    var best = 0..<0
    var start = 0
    while start < 8 {
      var end = start
      while end < 8, groups[end] == 0 { end += 1 }
      if end - start > best.count, end - start > 1 { best = start..<end }
      start = max(end, start + 1)
    }
    func text(_ part: ArraySlice<UInt16>) -> String { part.map { String($0, radix: 16) }.joined(separator: ":") }
    return best.isEmpty ? text(groups[...]) : text(groups[..<best.lowerBound]) + "::" + text(groups[best.upperBound...])
  }
}

extension IPAddress {
  /// Parses dotted IPv4 or IPv6 text (no brackets, no zone); nil for anything else.
  public init?(_ text: some StringProtocol) { self.init(String(text)) }

  public init?(_ text: String) {
    guard text.utf8.count <= 45 else { return nil }
    if text.utf8.contains(UInt8(ascii: ":")) {
      guard let value = Self.parse6(text) else { return nil }
      self = value
    } else {
      guard let value = Self.parse4(text.utf8) else { return nil }
      self.init(v4: value)
    }
  }

  /// Every SIP message contains some: parsing creates no string.
  private static func parse4(_ text: some Sequence<UInt8>) -> UInt32? {
    var (value, octet, digits, octets): (UInt32, UInt32, Int, Int) = (0, 0, 0, 0)
    for byte in text {
      if byte == UInt8(ascii: ".") {
        guard digits > 0, octets < 3 else { return nil }
        value = value << 8 | octet
        octet = 0
        digits = 0
        octets = octets + 1
        continue
      }
      guard byte >= 48, byte <= 57, digits < 3 else { return nil }
      octet = octet &* 10 &+ UInt32(byte &- 48)
      digits = digits + 1
      guard octet <= 255 else { return nil }
    }
    return octets == 3 && digits > 0 ? value << 8 | octet : nil
  }

  private static func parse6(_ text: String) -> IPAddress? {
    func groups(_ part: Substring) -> [UInt16]? {
      guard !part.isEmpty else { return [] }
      var out: [UInt16] = []
      let pieces = part.split(separator: ":", omittingEmptySubsequences: false)
      for (index, piece) in pieces.enumerated() {
        if piece.contains(".") {
          guard index == pieces.count - 1, let v4 = parse4(piece.utf8) else { return nil }
          out += [UInt16(truncatingIfNeeded: v4 >> 16), UInt16(truncatingIfNeeded: v4)]
        } else {
          guard (1...4).contains(piece.utf8.count), piece.utf8.allSatisfy({ hexDigit($0) != nil }),
            let n = UInt16(piece, radix: 16)
          else { return nil }
          out.append(n)
        }
      }
      return out
    }
    var all: [UInt16]
    if let gap = text.firstRange(of: "::") {
      guard let head = groups(text[..<gap.lowerBound]), let tail = groups(text[gap.upperBound...]), head.count + tail.count < 8
      else { return nil }
      all = head + Array(repeating: 0, count: 8 - head.count - tail.count) + tail
    } else {
      guard let whole = groups(text[...]), whole.count == 8 else { return nil }
      all = whole
    }
    func word(_ part: ArraySlice<UInt16>) -> UInt64 { part.reduce(0) { $0 << 16 | UInt64($1) } }
    return IPAddress(v6High: word(all[0..<4]), low: word(all[4..<8]))
  }
}

/// A network and its prefix length, such as `127.0.0.0/8`; a bare address is a network of one.
public struct IPNetwork: Hashable, Sendable, CustomStringConvertible {
  public let address: IPAddress
  public let prefixLength: Int

  public init?(_ text: some StringProtocol) {
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard let first = parts.first, let address = IPAddress(first) else { return nil }
    let width = address.family == .v4 ? 32 : 128
    var length = width
    if parts.count == 2 {
      guard let n = Int(parts[1]), (0...width).contains(n) else { return nil }
      length = n
    }
    (self.address, prefixLength) = (address, length)
  }

  /// The network of `prefixLength` bits that contains an address.
  public init(_ address: IPAddress, prefixLength: Int) {
    (self.address, self.prefixLength) = (address.masked(to: prefixLength), prefixLength)
  }

  public func contains(_ other: IPAddress) -> Bool {
    let other = other.unmapped
    guard other.family == address.family else { return false }
    func same(_ a: UInt64, _ b: UInt64, bits: Int, of width: Int) -> Bool {
      bits <= 0 || (a ^ b) >> UInt64(max(0, width - bits)) == 0
    }
    if address.family == .v4 { return same(address.low, other.low, bits: prefixLength, of: 32) }
    return same(address.high, other.high, bits: min(64, prefixLength), of: 64)
      && same(address.low, other.low, bits: prefixLength - 64, of: 64)
  }

  public var description: String { "\(address)/\(prefixLength)" }
}
