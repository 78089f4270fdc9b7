import Foundation

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// A connected Unix stream socket, blocking. One thread reads; any may write.
public final class UnixSocket: @unchecked Sendable {  // `write` is guarded by `lock`; `fd` does not change
  /// Nil: the path is too long, or no process listens there.
  public convenience init?(path: String) {
    let fd = Self.make()
    guard fd >= 0 else { return nil }
    let isConnected = Self.withAddress(path) { connect(fd, $0, $1) == 0 } ?? false
    guard isConnected else {
      close(fd)
      return nil
    }
    self.init(owning: fd)
  }

  private let fd: Int32
  private let lock = NSLock()

  public init(owning fd: Int32) { self.fd = fd }
  deinit { close(fd) }

  /// A socket that listens at `path`, which must not exist; nil if it cannot.
  public static func listen(_ path: String) -> Int32? {
    let fd = make()
    guard fd >= 0 else { return nil }
    let isBound = withAddress(path) { bind(fd, $0, $1) == 0 } ?? false
    guard isBound, chmod(path, 0o600) == 0, systemListen(fd, 8) == 0 else {
      close(fd)
      return nil
    }
    return fd
  }

  /// The bytes received; empty at the end.
  public func read() -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: 4_096)
    while true {
      let count = recv(fd, &bytes, bytes.count, 0)
      if count < 0, errno == EINTR { continue }
      return count > 0 ? Array(bytes[..<count]) : []
    }
  }

  /// Writes all bytes; false if the peer has disconnected.
  @discardableResult
  public func write(_ bytes: [UInt8]) -> Bool {
    lock.withLock {
      var start = 0
      while start < bytes.count {
        let count = bytes[start...].withUnsafeBytes { send(fd, $0.baseAddress, $0.count, Self.flags) }
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return false }
        start += count
      }
      return true
    }
  }

  /// Ends a `read` that waits.
  public func end() { shutdown(fd, Int32(SHUT_RDWR)) }

  // MARK: the C library

  #if canImport(Glibc)
    private static let flags = Int32(MSG_NOSIGNAL)
    private static func make() -> Int32 { socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0) }
    private static func systemListen(_ fd: Int32, _ count: Int32) -> Int32 { Glibc.listen(fd, count) }
  #else
    private static let flags: Int32 = 0
    private static func make() -> Int32 {
      let fd = socket(AF_UNIX, SOCK_STREAM, 0)
      var isOn: Int32 = 1
      if fd >= 0 { setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &isOn, 4) }
      return fd
    }
    private static func systemListen(_ fd: Int32, _ count: Int32) -> Int32 { Darwin.listen(fd, count) }
  #endif

  private static func withAddress<T>(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> T) -> T? {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    guard !bytes.isEmpty, bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { return nil }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
    }
  }
}
