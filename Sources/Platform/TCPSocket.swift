import CTrunklineLinux
import Glibc
import TrunklineBytes

/// A connected or connecting TCP socket, non-blocking, without Nagle's delay; closed when the object is released.
public final class TCPSocket: Sendable {
  /// The result of one read.
  public enum ReadResult: Hashable, Sendable {
    case bytes(Int)
    /// No data now; wait for readable.
    case wait
    /// The peer has closed its side.
    case closed
  }

  public let fd: Int32
  public let remoteAddress: SocketAddress

  /// Starts to connect. Once the socket is writable the attempt is over: then call `connectionError`.
  public init(connect remote: SocketAddress, from local: IPAddress? = nil) throws(SystemError) {
    let fd = try openSocket(SOCK_STREAM, at: remote, operation: "open tcp to", setting: nil)
    do throws(SystemError) {
      if let local, local.family == remote.ip.family, !local.isUnspecified {
        guard SocketAddress(local, 0).withSockaddr({ bind(fd, $0, $1) }) == 0 else {
          throw SystemError("bind tcp", address: SocketAddress(local, 0))
        }
      }
      setOption(fd, level: Int32(IPPROTO_TCP), option: TCP_NODELAY, value: 1)
      let result = remote.withSockaddr { Glibc.connect(fd, $0, $1) }
      guard result == 0 || errno == EINPROGRESS else { throw SystemError("connect tcp to", address: remote) }
    } catch {
      close(fd)
      throw error
    }
    (self.fd, remoteAddress) = (fd, remote)
  }

  fileprivate init(accepted fd: Int32, from remote: SocketAddress) {
    setOption(fd, level: Int32(IPPROTO_TCP), option: TCP_NODELAY, value: 1)
    (self.fd, remoteAddress) = (fd, remote)
  }

  deinit { close(fd) }

  /// The address this end uses, known once connected.
  public var localAddress: SocketAddress? { try? boundAddress(fd) }

  /// Reads the pending error and clears it: nil once the connection is open.
  public func connectionError() -> SystemError? {
    var code: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    guard getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &length) == 0 else { return SystemError("ask tcp", address: remoteAddress) }
    return code == 0 ? nil : SystemError("connect tcp to", address: remoteAddress, code: code)
  }

  public func read(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> ReadResult {
    let count = recv(fd, buffer.baseAddress, buffer.count, 0)
    if count > 0 { return .bytes(count) }
    if count == 0 { return .closed }
    let error = SystemError("read tcp from", address: remoteAddress)
    if error.isRetry { return .wait }
    throw error
  }

  /// Writes as much as the kernel accepts now, and returns how much that was.
  public func write(_ bytes: UnsafeRawBufferPointer) throws(SystemError) -> Int {
    let count = Glibc.send(fd, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
    if count >= 0 { return count }
    let error = SystemError("write tcp to", address: remoteAddress)
    if error.isRetry { return 0 }
    throw error
  }
}

extension TCPSocket {
  /// How long a connection may go without an acknowledgement before it counts as lost: the machine is off, or a firewall has
  /// forgotten the connection and silently drops its packets. All in whole seconds, except `unacknowledged`.
  public struct Patience: Hashable, Sendable {
    /// How long sent data waits for an acknowledgement of the peer's system (TCP_USER_TIMEOUT, RFC 5482; the kernel's own limit
    /// is 15 minutes). It also covers a peer that reads nothing any longer, and keep-alives.
    public var unacknowledged: Duration
    /// After so long without data the kernel probes the peer's system (RFC 9293 §3.8.4), and again after `interval`.
    public var idle: Duration
    public var interval: Duration
    public init(unacknowledged: Duration, idle: Duration, interval: Duration) {
      (self.unacknowledged, self.idle, self.interval) = (unacknowledged, idle, interval)
    }

    /// A lost connection is found within 6 s while data is sent, within half a minute while none is. A probe every 15 s keeps
    /// most firewalls from forgetting the connection.
    public static let usual = Patience(unacknowledged: .seconds(6), idle: .seconds(15), interval: .seconds(5))
  }

  /// Sets the limits: the kernel then ends a lost connection with a time-out. Four system calls.
  public func limit(_ patience: Patience) {
    setOption(fd, level: SOL_SOCKET, option: SO_KEEPALIVE, value: 1)
    setOption(fd, level: Int32(IPPROTO_TCP), option: TCP_KEEPIDLE, value: Int32(clamping: patience.idle.components.seconds))
    setOption(fd, level: Int32(IPPROTO_TCP), option: TCP_KEEPINTVL, value: Int32(clamping: patience.interval.components.seconds))
    setOption(
      fd, level: Int32(IPPROTO_TCP), option: TCP_USER_TIMEOUT, value: Int32(clamping: patience.unacknowledged.milliseconds))
  }
}

/// A listening TCP socket, non-blocking; closed when the object is released.
public final class TCPListener: Sendable {
  public let fd: Int32
  /// With the real port, also when port 0 was requested.
  public let localAddress: SocketAddress

  /// SO_REUSEADDR is on: on Linux it only lets a restart bind while old connections linger; two listeners still collide.
  /// `dualStack`: `[::]` accepts IPv4 too, whose peers then have mapped addresses. `deferAcceptSeconds`: the kernel hands over a
  /// connection when it has sent data, or about that much later. `waitsForAddress`: as for `UDPSocket`.
  public init(
    bind address: SocketAddress, setting: String? = nil, dualStack: Bool = false, deferAcceptSeconds: Int32 = 0,
    waitsForAddress: Bool = false
  ) throws(SystemError) {
    let fd = try openSocket(SOCK_STREAM, at: address, operation: "open tcp", setting: setting)
    do throws(SystemError) {
      if dualStack, address.ip.family == .v6, address.ip.isUnspecified {
        setOption(fd, level: Int32(IPPROTO_IPV6), option: IPV6_V6ONLY, value: 0)
      }
      if deferAcceptSeconds > 0 { setOption(fd, level: Int32(IPPROTO_TCP), option: TCP_DEFER_ACCEPT, value: deferAcceptSeconds) }
      setOption(fd, level: SOL_SOCKET, option: SO_REUSEADDR, value: 1)
      if waitsForAddress { allowAbsentAddress(fd, address.ip) }
      guard address.withSockaddr({ bind(fd, $0, $1) }) == 0, listen(fd, Int32(Limits.listenBacklog)) == 0 else {
        throw SystemError("listen tcp", address: address, setting: setting)
      }
      localAddress = try boundAddress(fd)
    } catch {
      close(fd)
      throw error
    }
    self.fd = fd
  }

  deinit { close(fd) }

  /// The next connection; nil when there is none. Throws when the process is out of descriptors: the connection stays in the
  /// backlog.
  public func accept() throws(SystemError) -> TCPSocket? {
    let (fd, remote) = SocketAddress.read { clx_accept(self.fd, $0, $1) }
    guard fd >= 0 else {
      let error = SystemError("accept tcp on", address: localAddress)
      if error.isRetry || error.code == ECONNABORTED { return nil }
      throw error
    }
    guard let remote else {
      close(fd)
      return nil
    }
    return TCPSocket(accepted: fd, from: remote)
  }
}
