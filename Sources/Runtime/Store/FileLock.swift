import Glibc

/// A lock on a file that ends with the process, also by `kill -9`: two gateways must not share a store.
final class FileLock: Sendable {
  private let fd: Int32

  init(path: String) throws(StoreError) {
    let fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
    guard fd >= 0 else { throw StoreError("cannot open \(path): \(String(cString: strerror(errno)))") }
    guard flock(fd, LOCK_EX | LOCK_NB) == 0 else {
      let holder = Self.holder(fd)
      close(fd)
      throw StoreError("the store is in use by another process\(holder) (lock \(path)); each gateway needs its own store.sqlite")
    }
    _ = ftruncate(fd, 0)
    let text = "\(getpid())\n"
    _ = text.withCString { pwrite(fd, $0, text.utf8.count, 0) }
    self.fd = fd
  }

  deinit { close(fd) }

  private static func holder(_ fd: Int32) -> String {
    var bytes = [UInt8](repeating: 0, count: 20)
    let count = pread(fd, &bytes, bytes.count, 0)
    let digits = bytes.prefix(max(0, count)).prefix { (48...57).contains($0) }
    return digits.isEmpty ? "" : " with process id \(String(decoding: digits, as: UTF8.self))"
  }
}
