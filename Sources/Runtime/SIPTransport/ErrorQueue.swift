import CTrunklineLinux
import Glibc
import TrunklineBytes
import TrunklinePlatform

/// ICMP errors of a UDP socket with IP_RECVERR (ip(7)): each contains the address that the lost datagram was sent to.
enum ErrorQueue {
  static func enable(_ fd: Int32, _ family: IPAddress.Family) {
    var on: Int32 = 1
    let length = socklen_t(MemoryLayout<Int32>.size)
    switch family {
    case .v4: setsockopt(fd, Int32(IPPROTO_IP), IP_RECVERR, &on, length)
    case .v6: setsockopt(fd, Int32(IPPROTO_IPV6), IPV6_RECVERR, &on, length)
    }
  }

  /// Reads the queued errors and calls `unreachable` for each destination that answered port, host or network unreachable. Other
  /// errors (a smaller path MTU) are only removed.
  static func drain(_ fd: Int32, unreachable: (SocketAddress, Int32) -> Void) {
    for _ in 0..<Limits.errorsPerStep {
      guard let (address, code) = readOne(fd) else { return }
      if let address, code == ECONNREFUSED || code == EHOSTUNREACH || code == ENETUNREACH { unreachable(address, code) }
    }
  }

  private static func readOne(_ fd: Int32) -> (SocketAddress?, Int32)? {
    var storage = sockaddr_storage()
    var control = [UInt8](repeating: 0, count: 512)
    return withUnsafeMutablePointer(to: &storage) { storage in
      control.withUnsafeMutableBytes { control in
        var header = msghdr()
        header.msg_name = UnsafeMutableRawPointer(storage)
        header.msg_namelen = socklen_t(MemoryLayout<sockaddr_storage>.size)
        header.msg_control = control.baseAddress
        header.msg_controllen = control.count
        guard recvmsg(fd, &header, Int32(MSG_ERRQUEUE) | Int32(MSG_DONTWAIT)) >= 0 else { return nil }
        // the message may also contain our address (IP_PKTINFO)
        let code = clx_queued_error(&header)
        return code == 0 ? (nil, 0) : (SocketAddress(storage), code)
      }
    }
  }
}
