extension IPAddress {
  /// Whether this may be a host's address on the internet: no private, shared, link-local, loopback, multicast, reserved or
  /// documentation network (RFC 6890), no metadata service of a cloud, and no IPv6 form of such an IPv4 address (mapped,
  /// compatible, NAT64 of RFC 6052, 6to4). The prefix of a network's own NAT64 cannot be known.
  ///
  ///     IPAddress("198.51.100.1")?.isPublic        // false: documentation
  ///     IPAddress("::ffff:10.0.0.1")?.isPublic     // false
  public var isPublic: Bool {
    let ip = unmapped
    if Self.cloudMetadata.contains(ip) || Self.reserved.contains(where: { $0.contains(ip) }) { return false }
    guard ip.family == .v6 else { return true }
    if ip.high == 0x0064_ff9b_0000_0000, ip.low >> 32 == 0 { return IPAddress(v4: UInt32(truncatingIfNeeded: ip.low)).isPublic }
    if ip.high >> 48 == 0x2002 { return IPAddress(v4: UInt32(truncatingIfNeeded: ip.high >> 16)).isPublic }
    // the range that has been assigned so far (RFC 4291 §2.4, IANA)
    return ip.high >> 61 == 1
  }

  /// Metadata services of clouds, which a machine queries about itself: some of these addresses are outside the link-local
  /// networks.
  package static let cloudMetadata: Set<IPAddress> = [
    IPAddress(100, 100, 100, 200), IPAddress(192, 0, 0, 192), IPAddress(168, 63, 129, 16),
    IPAddress(v6High: 0xfd00_0ec2_0000_0000, low: 0x254), IPAddress(v6High: 0xfd20_00ce_0000_0000, low: 0x254),
  ]

  /// Networks of IANA's special-purpose registries that are not reached from the internet.
  private static let reserved: [IPNetwork] = [
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
    "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
    "2001::/23", "2001:db8::/32", "3fff::/20",
  ].compactMap { IPNetwork($0) }
}
