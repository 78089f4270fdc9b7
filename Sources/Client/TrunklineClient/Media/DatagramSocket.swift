public import TrunklineBytes

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// A bound UDP socket that never blocks; closed with the object. One thread.
final class DatagramSocket {
  let fd: Int32
  /// With the port that the system assigned.
  let local: SocketAddress

  /// Nil: the machine no longer has the address, or the process has no descriptor left.
  init?(bind ip: IPAddress) {
    #if canImport(Darwin)
      let fd = socket(ip.family == .v4 ? AF_INET : AF_INET6, SOCK_DGRAM, 0)
    #else
      let fd = socket(ip.family == .v4 ? AF_INET : AF_INET6, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    #endif
    guard fd >= 0 else { return nil }
    _ = fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK)
    #if canImport(Darwin)
      _ = fcntl(fd, F_SETFD, FD_CLOEXEC)
    #endif
    let isBound = withSockaddr(SocketAddress(ip, 0)) { bind(fd, $0, $1) } == 0
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let isNamed = withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(fd, $0, &length) } == 0
    }
    guard isBound, isNamed, let local = socketAddress(storage) else {
      close(fd)
      return nil
    }
    (self.fd, self.local) = (fd, local)
  }

  deinit { close(fd) }

  /// A datagram that the kernel does not accept is lost: ICE and the jitter buffer handle loss.
  func send(_ bytes: UnsafeRawBufferPointer, to remote: SocketAddress) {
    _ = withSockaddr(remote) { address, length in sendto(fd, bytes.baseAddress, bytes.count, 0, address, length) }
  }

  /// Nil once no datagram waits. A datagram that does not fit is truncated.
  func receive(into buffer: UnsafeMutableRawBufferPointer) -> (count: Int, from: SocketAddress)? {
    while true {
      var storage = sockaddr_storage()
      var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
      let count = withUnsafeMutablePointer(to: &storage) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          recvfrom(fd, buffer.baseAddress, buffer.count, 0, $0, &length)
        }
      }
      // an ICMP error of an earlier datagram is read here; it is no reason to stop
      if count < 0, errno == ECONNREFUSED || errno == EINTR { continue }
      guard count >= 0 else { return nil }
      if let from = socketAddress(storage) { return (min(count, buffer.count), from) }
    }
  }
}

/// The addresses that a call would offer now.
public func usableAddresses() -> [IPAddress] { interfaceAddresses(withLoopback: false) }

/// The addresses that ICE offers: of interfaces that are up, without link-local ones; loopback only if there is no other, or on
/// request.
func interfaceAddresses(withLoopback: Bool) -> [IPAddress] {
  var first: UnsafeMutablePointer<ifaddrs>?
  guard getifaddrs(&first) == 0 else { return [] }
  defer { freeifaddrs(first) }
  var found: [IPAddress] = []
  var next = first
  while let entry = next, found.count < MediaLimits.localAddresses {
    next = entry.pointee.ifa_next
    guard entry.pointee.ifa_flags & UInt32(IFF_UP) != 0, let address = entry.pointee.ifa_addr else { continue }
    let isV4 = Int32(address.pointee.sa_family) == AF_INET
    guard isV4 || Int32(address.pointee.sa_family) == AF_INET6 else { continue }
    var storage = sockaddr_storage()
    let length = isV4 ? MemoryLayout<sockaddr_in>.size : MemoryLayout<sockaddr_in6>.size
    withUnsafeMutableBytes(of: &storage) { $0.copyMemory(from: UnsafeRawBufferPointer(start: address, count: length)) }
    guard let ip = socketAddress(storage)?.ip, !ip.isLinkLocal, !found.contains(ip) else { continue }
    found.append(ip)
  }
  let outside = found.filter { !$0.isLoopback }
  let chosen = withLoopback || outside.isEmpty ? outside + found.filter(\.isLoopback) : outside
  return chosen.filter { $0.family == .v4 } + chosen.filter { $0.family == .v6 }
}

/// The IPv6 addresses of a name; at most a handful.
func lookUpIPv6(_ name: String) -> [IPAddress] {
  var hints = addrinfo()
  hints.ai_family = AF_INET6
  var first: UnsafeMutablePointer<addrinfo>?
  guard getaddrinfo(name, nil, &hints, &first) == 0 else { return [] }
  defer { freeaddrinfo(first) }
  var (found, next): ([IPAddress], UnsafeMutablePointer<addrinfo>?) = ([], first)
  while let entry = next, found.count < MediaLimits.localAddresses {
    next = entry.pointee.ai_next
    guard let address = entry.pointee.ai_addr else { continue }
    var storage = sockaddr_storage()
    withUnsafeMutableBytes(of: &storage) {
      $0.copyMemory(from: UnsafeRawBufferPointer(start: address, count: min($0.count, Int(entry.pointee.ai_addrlen))))
    }
    if let ip = socketAddress(storage)?.ip, !found.contains(ip) { found.append(ip) }
  }
  return found
}

package func withSockaddr<R>(_ address: SocketAddress, _ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
  var storage = sockaddr_storage()
  let length: Int
  switch address.ip.family {
  case .v4:
    var v4 = sockaddr_in()
    #if canImport(Darwin)
      v4.sin_len = UInt8(MemoryLayout<sockaddr_in>.size)
    #endif
    v4.sin_family = sa_family_t(AF_INET)
    v4.sin_port = address.port.bigEndian
    v4.sin_addr.s_addr = UInt32(truncatingIfNeeded: address.ip.low).bigEndian
    length = MemoryLayout<sockaddr_in>.size
    withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: v4, as: sockaddr_in.self) }
  case .v6:
    var v6 = sockaddr_in6()
    #if canImport(Darwin)
      v6.sin6_len = UInt8(MemoryLayout<sockaddr_in6>.size)
    #endif
    v6.sin6_family = sa_family_t(AF_INET6)
    v6.sin6_port = address.port.bigEndian
    withUnsafeMutableBytes(of: &v6.sin6_addr) { bytes in
      bytes.storeBytes(of: address.ip.high.bigEndian, toByteOffset: 0, as: UInt64.self)
      bytes.storeBytes(of: address.ip.low.bigEndian, toByteOffset: 8, as: UInt64.self)
    }
    length = MemoryLayout<sockaddr_in6>.size
    withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: v6, as: sockaddr_in6.self) }
  }
  return withUnsafePointer(to: &storage) { pointer in
    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(length)) }
  }
}

package func socketAddress(_ storage: sockaddr_storage) -> SocketAddress? {
  withUnsafeBytes(of: storage) { bytes in
    switch Int32(storage.ss_family) {
    case AF_INET:
      let v4 = bytes.loadUnaligned(as: sockaddr_in.self)
      return SocketAddress(IPAddress(v4: UInt32(bigEndian: v4.sin_addr.s_addr)), UInt16(bigEndian: v4.sin_port))
    case AF_INET6:
      let v6 = bytes.loadUnaligned(as: sockaddr_in6.self)
      let (high, low) = withUnsafeBytes(of: v6.sin6_addr) {
        ($0.loadUnaligned(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
      }
      let ip = IPAddress(v6High: UInt64(bigEndian: high), low: UInt64(bigEndian: low)).unmapped
      return SocketAddress(ip, UInt16(bigEndian: v6.sin6_port))
    default: return nil
    }
  }
}
