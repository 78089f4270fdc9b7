#if os(Linux) && !APPLE_SURFACE
  import TrunklineBytes
  import Glibc

  /// Interfaces that are examined.
  private let mostInterfaceAddresses = 256

  /// Addresses of this machine from which the gateway may be reached over another interface than that of the default route, one per
  /// interface, in the kernel's order. Empty: there is no other, or the gateway is on this machine.
  /// - Parameter remote: the gateway's address; nil: unknown, and IPv4 is examined before IPv6.
  func alternateAddresses(to remote: IPAddress?) -> [IPAddress] {
    guard remote?.isLoopback != true else { return [] }
    let all = interfaceAddresses()
    for family in remote.map({ [$0.family] }) ?? [.v4, .v6] {
      // an address of RFC 5737 or RFC 3849 represents any Internet address: nothing is sent to it
      let target = remote ?? (family == .v4 ? IPAddress("192.0.2.1") : IPAddress("2001:db8::1"))
      guard let target, let local = localAddress(to: target), let name = all.first(where: { $0.address == local })?.name else {
        continue
      }
      var names: Set<String> = [name]
      let others = all.filter { $0.address.family == family && !$0.address.isLoopback && !$0.address.isLinkLocal }
        .filter { names.insert($0.name).inserted }
      if !others.isEmpty { return others.map(\.address) }
    }
    return []
  }

  /// Addresses of all interfaces that are up.
  private func interfaceAddresses() -> [(name: String, address: IPAddress)] {
    var first: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&first) == 0 else { return [] }
    defer { freeifaddrs(first) }
    var (found, next): ([(name: String, address: IPAddress)], UnsafeMutablePointer<ifaddrs>?) = ([], first)
    while let entry = next, found.count < mostInterfaceAddresses {
      next = entry.pointee.ifa_next
      guard entry.pointee.ifa_flags & UInt32(IFF_UP) != 0, let address = entry.pointee.ifa_addr else { continue }
      let isV4 = Int32(address.pointee.sa_family) == AF_INET
      guard isV4 || Int32(address.pointee.sa_family) == AF_INET6 else { continue }
      var storage = sockaddr_storage()
      let length = isV4 ? MemoryLayout<sockaddr_in>.size : MemoryLayout<sockaddr_in6>.size
      withUnsafeMutableBytes(of: &storage) { $0.copyMemory(from: UnsafeRawBufferPointer(start: address, count: length)) }
      if let ip = socketAddress(storage)?.ip { found.append((String(cString: entry.pointee.ifa_name), ip)) }
    }
    return found
  }

  /// The source address that the kernel's routes select: a UDP socket is connected, and no packet is sent.
  private func localAddress(to remote: IPAddress) -> IPAddress? {
    let made = socket(remote.family == .v4 ? AF_INET : AF_INET6, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard made >= 0 else { return nil }
    defer { close(made) }
    // any port works
    guard withSockaddr(SocketAddress(remote, 9), { connect(made, $0, $1) }) == 0 else { return nil }
    return name(made, getsockname)
  }

  /// The address of a connection's peer.
  func peerAddress(ofSocket socket: Int32) -> IPAddress? { name(socket, getpeername) }

  private func name(
    _ socket: Int32, _ body: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
  ) -> IPAddress? {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let isNamed = withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body(socket, $0, &length) == 0 }
    }
    return isNamed ? socketAddress(storage)?.ip : nil
  }
#endif
