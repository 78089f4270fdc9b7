import TrunklineBytes

extension IPAddress {
  /// Addresses that a description from another machine must not make us send to: this machine, its link, and the metadata
  /// services of clouds, some of which are outside the link-local networks.
  var isPrivileged: Bool {
    if isLoopback || isLinkLocal || isMulticast || Self.cloudMetadata.contains(self) { return true }
    guard family == .v4 else { return isLocal6 }
    // 0.0.0.0/8 is this host (RFC 1122 §3.2.1.3), 240.0.0.0/4 is reserved and ends with the broadcast address
    return low >> 24 == 0 || low >> 28 == 0xf
  }

  /// IPv4 addresses inside IPv6 ones: compatible (RFC 4291 §2.5.5.1) and NAT64 (RFC 6052) forms of the same addresses.
  private var isLocal6: Bool {
    let isCompatible = high == 0 && low >> 32 == 0
    let isTranslated = high == 0x0064_ff9b_0000_0000 && low >> 32 == 0
    return (isCompatible || isTranslated) && IPAddress(v4: UInt32(truncatingIfNeeded: low)).isPrivileged
  }
}
