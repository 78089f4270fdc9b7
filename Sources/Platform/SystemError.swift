import Glibc
import TrunklineBytes

/// A refused system call: the operation, the address, and what the operator can do. Prints as one line.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The operation, such as `bind udp`.
  public let operation: String
  /// The address concerned, if any.
  public let address: SocketAddress?
  /// The value of `errno`.
  public let code: Int32
  /// The configuration setting that named the address, such as `listen.sip.udp`.
  public let setting: String?

  public init(_ operation: String, address: SocketAddress? = nil, setting: String? = nil, code: Int32 = errno) {
    (self.operation, self.address, self.setting, self.code) = (operation, address, setting, code)
  }

  public var isAddressInUse: Bool { code == EADDRINUSE }
  public var isOutOfDescriptors: Bool { code == EMFILE || code == ENFILE }
  /// The call would have blocked, or was interrupted; not an error for a non-blocking socket.
  public var isRetry: Bool { code == EAGAIN || code == EWOULDBLOCK || code == EINTR }

  public var description: String {
    var text = "cannot \(operation)"
    if let address { text += " \(address)" }
    if let setting { text += " (\(setting))" }
    text += ": \(Self.message(code))"
    if let advice { text += "; \(advice)" }
    return text
  }

  /// What the operator can do.
  public var advice: String? {
    switch code {
    case EADDRINUSE: "another process holds this address: stop it, or set \(setting ?? "another port")"
    case EADDRNOTAVAIL: "this machine has no such address: `ip address` lists those it has"
    case EACCES, EPERM:
      operation.hasPrefix("send")
        ? "a rule of this machine's firewall, or a full connection-tracking table, refuses it: `nft list ruleset`, `conntrack -S`"
        : "ports below 1024 need CAP_NET_BIND_SERVICE"
    case EMFILE: "this process is out of file descriptors: raise `ulimit -n` (systemd: LimitNOFILE)"
    case ENFILE: "the machine is out of file descriptors: raise fs.file-max"
    case EAFNOSUPPORT: "this machine has no IPv6, or it is switched off"
    default: nil
    }
  }

  private static func message(_ code: Int32) -> String {
    var buffer = [CChar](repeating: 0, count: 128)
    guard strerror_r(code, &buffer, buffer.count - 1) == 0 else { return "error \(code)" }
    return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
