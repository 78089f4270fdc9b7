import Glibc
import TrunklinePlatform

/// A file that gets its name only when it is complete: until then it is `NAME.part`. Octets are gathered and written in large
/// pieces.
struct OutputFile: ~Copyable {
  static let ending = ".part"
  let path: String
  private let fd: Int32
  private var gathered: [UInt8] = []
  /// Octets so far, including the gathered ones.
  private(set) var count = 0

  /// Throws if a file of either name exists.
  init(path: String) throws(SystemError) {
    guard access(path, F_OK) != 0 else { throw SystemError("make a recording", code: EEXIST) }
    let opened = open(path + Self.ending, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o640)
    guard opened >= 0 else { throw SystemError("make a recording") }
    (self.path, fd) = (path, opened)
  }

  deinit { close(fd) }

  mutating func append(_ bytes: [UInt8]) {
    gathered += bytes
    count += bytes.count
  }

  var gatheredCount: Int { gathered.count }

  /// Writes the gathered octets to the file system. After a throw a part of them may be written.
  mutating func flush() throws(SystemError) {
    var written = 0
    while written < gathered.count {
      let result = gathered.withUnsafeBytes { write(fd, $0.baseAddress.map { $0 + written }, $0.count - written) }
      if result > 0 {
        written += result
      } else if errno != EINTR {
        let error = SystemError("write a recording")
        count -= gathered.count - written
        gathered.removeAll()
        throw error
      }
    }
    gathered.removeAll(keepingCapacity: true)
  }

  /// Overwrites octets that are in the file already.
  mutating func overwrite(_ bytes: [UInt8], at offset: Int) throws(SystemError) {
    let result = bytes.withUnsafeBytes { pwrite(fd, $0.baseAddress, $0.count, off_t(offset)) }
    guard result == bytes.count else { throw SystemError("write a recording") }
  }

  /// Keeps the first `size` octets, and cuts off the rest.
  mutating func cut(to size: Int) {
    if ftruncate(fd, off_t(size)) == 0 { count = size }
  }

  /// Renames the file. It does not wait for the disk, which would delay all other recordings.
  mutating func finish() throws(SystemError) {
    guard rename(path + Self.ending, path) == 0 else { throw SystemError("name a recording") }
  }
}
