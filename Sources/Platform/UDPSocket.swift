import CTrunklineLinux
import Glibc
import TrunklineBytes

/// A bound, non-blocking UDP socket; closed when the object is released. It sends and receives single datagrams for control
/// traffic; media threads use `fd` with their own batches.
public final class UDPSocket: Sendable {
  public let fd: Int32
  /// With the real port, also when port 0 was requested.
  public let localAddress: SocketAddress

  /// Binds without SO_REUSEADDR: a second process on the same address gets an error that states this. IPv6 sockets accept IPv6
  /// only. Buffer sizes are requests to the kernel, which may give less (`net.core.rmem_max`). `waitsForAddress`: an address that
  /// the machine does not have is bound all the same, and works once the machine has it.
  public init(
    bind address: SocketAddress, receiveBufferBytes: Int32? = nil, sendBufferBytes: Int32? = nil, setting: String? = nil,
    waitsForAddress: Bool = false
  ) throws(SystemError) {
    let fd = try openSocket(SOCK_DGRAM, at: address, operation: "open udp", setting: setting)
    do throws(SystemError) {
      if waitsForAddress { allowAbsentAddress(fd, address.ip) }
      if let receiveBufferBytes { setOption(fd, level: SOL_SOCKET, option: SO_RCVBUF, value: receiveBufferBytes) }
      if let sendBufferBytes { setOption(fd, level: SOL_SOCKET, option: SO_SNDBUF, value: sendBufferBytes) }
      guard address.withSockaddr({ bind(fd, $0, $1) }) == 0 else {
        throw SystemError("bind udp", address: address, setting: setting)
      }
      localAddress = try boundAddress(fd)
    } catch {
      close(fd)
      throw error
    }
    self.fd = fd
  }

  deinit { close(fd) }

  /// Sends one datagram. False if the kernel's buffer is full (the datagram is lost); an error if the peer is known to be
  /// unreachable.
  @discardableResult public func send(_ bytes: UnsafeRawBufferPointer, to address: SocketAddress) throws(SystemError) -> Bool {
    let sent = address.withSockaddr { sendto(fd, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL), $0, $1) }
    if sent >= 0 { return true }
    let error = SystemError("send udp to", address: address)
    if error.isRetry || error.code == ENOBUFS { return false }
    throw error
  }

  @discardableResult public func send(_ bytes: [UInt8], to address: SocketAddress) throws(SystemError) -> Bool {
    var result: Result<Bool, SystemError> = .success(false)
    bytes.withUnsafeBytes { raw in result = Result { () throws(SystemError) in try send(raw, to: address) } }
    return try result.get()
  }

  /// One datagram into `buffer`; nil when there is none. A datagram that does not fit is truncated. A pending ICMP error is
  /// thrown.
  public func receive(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> (count: Int, from: SocketAddress)? {
    var count = 0
    let (_, from) = SocketAddress.read { address, length in
      count = recvfrom(fd, buffer.baseAddress, buffer.count, 0, address, length)
      return count < 0 ? -1 : 0
    }
    if count < 0 {
      let error = SystemError("receive udp on", address: localAddress)
      if error.isRetry { return nil }
      throw error
    }
    guard let from else { return nil }
    return (count, from)
  }
}

/// Receiving at all of the machine's addresses.
extension UDPSocket {
  /// A datagram with the local address that it was sent to (IP_PKTINFO, IPV6_PKTINFO).
  public typealias Received = (count: Int, from: SocketAddress, local: IPAddress?)

  /// Makes `receiveWithLocal` return the local address of datagrams. False where the kernel cannot.
  public func wantsLocalAddresses() -> Bool {
    clx_want_local_addresses(fd, localAddress.ip.family == .v4 ? AF_INET : AF_INET6) == 0
  }

  /// As `receive`. `local` is nil without `wantsLocalAddresses`, and for a multicast datagram.
  public func receiveWithLocal(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Received? {
    var (from, local) = (sockaddr_storage(), sockaddr_storage())
    let count = clx_receive_at(fd, buffer.baseAddress, buffer.count, &from, &local)
    if count < 0 {
      let error = SystemError("receive udp on", address: localAddress)
      if error.isRetry { return nil }
      throw error
    }
    guard let source = SocketAddress(&from) else { return nil }
    let ip = SocketAddress(&local)?.ip
    return (count, source, ip?.isMulticast == true || ip?.isUnspecified == true ? nil : ip)
  }
}

/// A non-blocking, close-on-exec socket of the address's family.
func openSocket(_ type: __socket_type, at address: SocketAddress, operation: String, setting: String?) throws(SystemError)
  -> Int32
{
  let flags = Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
  let fd = socket(address.ip.family == .v4 ? AF_INET : AF_INET6, Int32(type.rawValue) | flags, 0)
  guard fd >= 0 else { throw SystemError(operation, address: address, setting: setting) }
  if address.ip.family == .v6 { setOption(fd, level: Int32(IPPROTO_IPV6), option: IPV6_V6ONLY, value: 1) }
  return fd
}

/// Called before `bind`. Where the kernel does not allow it, `bind` fails.
func allowAbsentAddress(_ fd: Int32, _ ip: IPAddress) {
  if !ip.isUnspecified { _ = clx_allow_absent_address(fd, ip.family == .v4 ? AF_INET : AF_INET6) }
}

func setOption(_ fd: Int32, level: Int32, option: Int32, value: Int32) {
  var value = value
  setsockopt(fd, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
}

func boundAddress(_ fd: Int32) throws(SystemError) -> SocketAddress {
  let (result, address) = SocketAddress.read { getsockname(fd, $0, $1) }
  guard result == 0, let address else { throw SystemError("read a socket's address") }
  return address
}
