import CTrunklineLinux
import Glibc
import TrunklineBytes

/// The machine's own addresses as of now: `MachineAddresses.usable`.
public func localAddresses(loopback: Bool? = false) throws(SystemError) -> [IPAddress] {
  try MachineAddresses.look().usable(loopback: loopback)
}

/// The networks that the machine's interfaces are in as of now, by their masks; without loopback.
public func interfaceNetworks() throws(SystemError) -> [IPNetwork] { try MachineAddresses.look().networks }

/// Whether a socket can be bound to `ip`: an interface of this machine has it, or the system allows others.
public func isBindable(_ ip: IPAddress) -> Bool {
  let address = SocketAddress(ip, 0)
  guard let fd = try? openSocket(SOCK_DGRAM, at: address, operation: "open udp", setting: nil) else { return false }
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

func ipAddress(_ address: UnsafeMutablePointer<sockaddr>?) -> IPAddress? {
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
  guard let fd = try? openSocket(SOCK_DGRAM, at: remote, operation: "open udp", setting: nil) else { return nil }
  defer { close(fd) }
  if let source, SocketAddress(source, 0).withSockaddr({ bind(fd, $0, $1) }) != 0 { return nil }
  let target = SocketAddress(remote.ip, remote.port == 0 ? 9 : remote.port)
  guard target.withSockaddr({ Glibc.connect(fd, $0, $1) }) == 0 else { return nil }
  return (try? boundAddress(fd))?.ip
}
