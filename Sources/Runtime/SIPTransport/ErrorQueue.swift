import Bytes
import CLinux
import Glibc
import Platform

/// ICMP errors of a UDP socket with IP_RECVERR (ip(7)): each tells the address that the lost datagram was sent to.
enum ErrorQueue {
  static func enable(_ fd: Int32, _ family: IPAddress.Family) {
    var on: Int32 = 1
    let length = socklen_t(MemoryLayout<Int32>.size)
    switch family {
    case .v4: setsockopt(fd, Int32(IPPROTO_IP), IP_RECVERR, &on, length)
    case .v6: setsockopt(fd, Int32(IPPROTO_IPV6), IPV6_RECVERR, &on, length)
    }
  }

  /// Takes what is queued and calls `unreachable` for each destination that answered port, host or network unreachable. Other
  /// errors (a smaller path MTU) only need to be taken.
  static func take(_ fd: Int32, unreachable: (SocketAddress, Int32) -> Void) {
    for _ in 0..<Limits.errorsPerTurn {
      guard let (address, code) = takeOne(fd) else { return }
      if let address, code == ECONNREFUSED || code == EHOSTUNREACH || code == ENETUNREACH { unreachable(address, code) }
    }
  }

  private static func takeOne(_ fd: Int32) -> (SocketAddress?, Int32)? {
    var storage = sockaddr_storage()
    // struct cmsghdr { size_t len; int level; int type; } and then struct sock_extended_err, whose first member is the errno
    let headerBytes = 16
    var control = [UInt8](repeating: 0, count: 512)
    return withUnsafeMutablePointer(to: &storage) { storage in
      control.withUnsafeMutableBytes { control in
        var header = msghdr()
        header.msg_name = UnsafeMutableRawPointer(storage)
        header.msg_namelen = socklen_t(MemoryLayout<sockaddr_storage>.size)
        header.msg_control = control.baseAddress
        header.msg_controllen = control.count
        guard recvmsg(fd, &header, Int32(MSG_ERRQUEUE) | Int32(MSG_DONTWAIT)) >= 0 else { return nil }
        guard header.msg_controllen >= headerBytes + 4 else { return (nil, 0) }
        let code = control.loadUnaligned(fromByteOffset: headerBytes, as: UInt32.self)
        return (SocketAddress(storage), Int32(truncatingIfNeeded: code))
      }
    }
  }
}
