import Bytes
import CLinux
import Glibc

/// The machine's own addresses: interfaces that are up, without link-local ones; IPv4 before IPv6, each in the kernel's order.
/// Loopback addresses come only if asked for, or if there is nothing else and `loopback` is nil.
public func localAddresses(loopback: Bool? = false) throws(SystemError) -> [IPAddress] {
  var first: UnsafeMutablePointer<ifaddrs>?
  guard getifaddrs(&first) == 0 else { throw SystemError("list interfaces") }
  defer { freeifaddrs(first) }
  var found: [IPAddress] = []
  var next = first
  while let entry = next, found.count < Limits.localAddresses {
    next = entry.pointee.ifa_next
    guard entry.pointee.ifa_flags & UInt32(IFF_UP) != 0, let address = entry.pointee.ifa_addr else { continue }
    let length: Int
    switch Int32(address.pointee.sa_family) {
    case AF_INET: length = MemoryLayout<sockaddr_in>.size
    case AF_INET6: length = MemoryLayout<sockaddr_in6>.size
    default: continue
    }
    var storage = sockaddr_storage()
    withUnsafeMutableBytes(of: &storage) { $0.copyMemory(from: UnsafeRawBufferPointer(start: address, count: length)) }
    guard let ip = withUnsafePointer(to: &storage, { SocketAddress($0) })?.ip else { continue }
    if !ip.isLinkLocal, !found.contains(ip) { found.append(ip) }
  }
  let outside = found.filter { !$0.isLoopback }
  let inside = found.filter(\.isLoopback)
  let chosen = loopback == true || (loopback == nil && outside.isEmpty) ? outside + inside : outside
  return chosen.filter { $0.family == .v4 } + chosen.filter { $0.family == .v6 }
}

/// The local address the kernel would send from toward `remote`; nil if there is no route. No packet is sent.
public func routeAddress(toward remote: SocketAddress) -> IPAddress? {
  guard let fd = try? openSocket(SOCK_DGRAM, remote, "open udp", nil) else { return nil }
  defer { close(fd) }
  let target = SocketAddress(remote.ip, remote.port == 0 ? 9 : remote.port)
  guard target.withSockaddr({ Glibc.connect(fd, $0, $1) }) == 0 else { return nil }
  return (try? boundAddress(fd))?.ip
}
