import Bytes
import CLinux
import Glibc

/// The machine's own addresses: interfaces that are up and have a carrier, without link-local and deprecated ones (RFC 4862 §5.5.4: no new
/// communication); IPv4 before IPv6, each in the kernel's order. Loopback addresses come only if asked for, or if there is nothing else and
/// `loopback` is nil.
public func localAddresses(loopback: Bool? = false) throws(SystemError) -> [IPAddress] {
  var found: [IPAddress] = []
  let deprecated = deprecatedAddresses(systemFile("/proc/self/net/if_inet6"))
  for (ip, _, isRunning) in try interfaceAddresses()
  where isRunning && !ip.isLinkLocal && !found.contains(ip) && !deprecated.contains(ip) { found.append(ip) }
  let outside = found.filter { !$0.isLoopback }
  let inside = found.filter(\.isLoopback)
  let chosen = loopback == true || (loopback == nil && outside.isEmpty) ? outside + inside : outside
  return chosen.filter { $0.family == .v4 } + chosen.filter { $0.family == .v6 }
}

/// The networks that the machine's interfaces are in, by their masks; without loopback.
public func interfaceNetworks() throws(SystemError) -> [IPNetwork] {
  var found: [IPNetwork] = []
  for case (let ip, let mask?, _) in try interfaceAddresses() where !ip.isLoopback {
    let network = IPNetwork(ip, prefixLength: mask.high.nonzeroBitCount + mask.low.nonzeroBitCount)
    if !found.contains(network) { found.append(network) }
  }
  return found
}

/// Of the kernel's table of IPv6 addresses (`IFA_F_DEPRECATED`), which getifaddrs does not tell. Lines: address, index, prefix length, scope,
/// flags (all hexadecimal), interface.
func deprecatedAddresses(_ table: String) -> Set<IPAddress> {
  var found: Set<IPAddress> = []
  for line in table.split(separator: "\n").prefix(Limits.localAddresses * 4) {
    let fields = line.split(separator: " ")
    guard fields.count >= 6, fields[0].count == 32, let flags = UInt32(fields[4], radix: 16), flags & 0x20 != 0,
      let high = UInt64(fields[0].prefix(16), radix: 16), let low = UInt64(fields[0].suffix(16), radix: 16)
    else { continue }
    found.insert(IPAddress(v6High: high, low: low))
  }
  return found
}

/// A small file of the kernel's; empty if it cannot be read.
private func systemFile(_ path: String) -> String {
  let fd = open(path, O_RDONLY | O_CLOEXEC)
  guard fd >= 0 else { return "" }
  defer { close(fd) }
  var bytes = [UInt8](repeating: 0, count: 65_536)
  var count = 0
  while count < bytes.count {
    let got = bytes[count...].withUnsafeMutableBytes { read(fd, $0.baseAddress, $0.count) }
    guard got > 0 else { break }
    count += got
  }
  return String(decoding: bytes.prefix(count), as: UTF8.self)
}

/// Address and mask of each interface that is up, and whether it has a carrier; at most `Limits.localAddresses`.
private func interfaceAddresses() throws(SystemError) -> [(ip: IPAddress, mask: IPAddress?, isRunning: Bool)] {
  var first: UnsafeMutablePointer<ifaddrs>?
  guard getifaddrs(&first) == 0 else { throw SystemError("list interfaces") }
  defer { freeifaddrs(first) }
  var found: [(ip: IPAddress, mask: IPAddress?, isRunning: Bool)] = []
  var next = first
  while let entry = next, found.count < Limits.localAddresses {
    next = entry.pointee.ifa_next
    guard entry.pointee.ifa_flags & UInt32(IFF_UP) != 0, let ip = ipAddress(entry.pointee.ifa_addr) else { continue }
    found.append((ip, ipAddress(entry.pointee.ifa_netmask), entry.pointee.ifa_flags & UInt32(IFF_RUNNING) != 0))
  }
  return found
}

/// Whether a socket can be bound to `ip`: an interface of this machine has it, or the system allows others.
public func isBindable(_ ip: IPAddress) -> Bool {
  let address = SocketAddress(ip, 0)
  guard let fd = try? openSocket(SOCK_DGRAM, address, "open udp", nil) else { return false }
  defer { close(fd) }
  return address.withSockaddr { bind(fd, $0, $1) } == 0
}

/// The first address that the system's resolver has for a name. Blocks: for the start, and for a thread that may wait.
public func lookUp(_ host: String, _ family: IPAddress.Family) -> IPAddress? {
  var hints = addrinfo()
  hints.ai_family = family == .v4 ? AF_INET : AF_INET6
  hints.ai_socktype = Int32(SOCK_DGRAM.rawValue)
  var first: UnsafeMutablePointer<addrinfo>?
  guard getaddrinfo(host, nil, &hints, &first) == 0, let first else { return nil }
  defer { freeaddrinfo(first) }
  return ipAddress(first.pointee.ai_addr)
}

private func ipAddress(_ address: UnsafeMutablePointer<sockaddr>?) -> IPAddress? {
  guard let address else { return nil }
  let length: Int
  switch Int32(address.pointee.sa_family) {
  case AF_INET: length = MemoryLayout<sockaddr_in>.size
  case AF_INET6: length = MemoryLayout<sockaddr_in6>.size
  default: return nil
  }
  var storage = sockaddr_storage()
  withUnsafeMutableBytes(of: &storage) { $0.copyMemory(from: UnsafeRawBufferPointer(start: address, count: length)) }
  return withUnsafePointer(to: &storage) { SocketAddress($0) }?.ip
}

/// The local address the kernel would send from toward `remote`; nil if there is no route. With `source`: that one, or nil if nothing can be sent
/// from it. No packet is sent.
public func routeAddress(toward remote: SocketAddress, from source: IPAddress? = nil) -> IPAddress? {
  guard let fd = try? openSocket(SOCK_DGRAM, remote, "open udp", nil) else { return nil }
  defer { close(fd) }
  if let source, SocketAddress(source, 0).withSockaddr({ bind(fd, $0, $1) }) != 0 { return nil }
  let target = SocketAddress(remote.ip, remote.port == 0 ? 9 : remote.port)
  guard target.withSockaddr({ Glibc.connect(fd, $0, $1) }) == 0 else { return nil }
  return (try? boundAddress(fd))?.ip
}
