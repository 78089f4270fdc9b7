import CTrunklineLinux
import Glibc

/// Reports the state of the process to systemd by `$NOTIFY_SOCKET` (sd_notify(3)); does nothing where that is not set.
///
///     let supervisor = Supervisor()
///     supervisor.write("READY=1")
///     if supervisor.watchdogInterval != nil { supervisor.write("WATCHDOG=1") }
///
/// Sends a datagram and never waits. Any thread.
public struct Supervisor: Sendable {
  private let path: [UInt8]
  /// systemd expects `WATCHDOG=1` at least this often (half of WatchdogSec); nil: it does not.
  public let watchdogInterval: Duration?

  public init() {
    self.init(
      socket: getenv("NOTIFY_SOCKET").map { String(cString: $0) }, watchdog: getenv("WATCHDOG_USEC").map { String(cString: $0) })
  }

  /// `socket`: a path, or `@` and an abstract name. `watchdog`: microseconds.
  init(socket: String?, watchdog: String?) {
    let bytes = Array((socket ?? "").utf8)
    let isUsable = (bytes.first == UInt8(ascii: "/") || bytes.first == UInt8(ascii: "@")) && bytes.count < 108
    path = isUsable ? bytes : []
    watchdogInterval = watchdog.flatMap(Int64.init).flatMap { $0 > 0 && isUsable ? .microseconds($0 / 2) : nil }
  }

  /// Lines as in sd_notify(3): `READY=1`, `RELOADING=1`, `STOPPING=1`, `STATUS=…`.
  public func write(_ lines: String) {
    guard !path.isEmpty else { return }
    let fd = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
    guard fd >= 0 else { return }
    defer { close(fd) }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { name in
      name.copyBytes(from: path)
      if path[0] == UInt8(ascii: "@") { name[0] = 0 }
    }
    let length = socklen_t(MemoryLayout<sa_family_t>.size + path.count + (path[0] == UInt8(ascii: "@") ? 0 : 1))
    let bytes = Array(lines.utf8)
    _ = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { sendto(fd, bytes, bytes.count, Int32(MSG_NOSIGNAL), $0, length) }
    }
  }
}
