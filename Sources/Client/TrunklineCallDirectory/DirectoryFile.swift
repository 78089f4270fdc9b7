#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// An open file. Read by `pread` into small buffers and not mapped: if another process cuts a mapped file, ours ends with
/// SIGBUS; and pages that `pread` reads do not count as this process's memory.
final class DirectoryFile {
  let path: String
  /// Bytes when it was opened.
  let size: Int
  private let descriptor: Int32

  /// Opens for reading.
  init(reading path: String) throws(DirectoryError) {
    descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    let fault = errno
    let name = Self.name(path)
    self.path = path
    guard descriptor >= 0 else {
      size = 0
      throw fault == ENOENT ? .missing(name) : .system(call: "open", path: name, errno: fault)
    }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else {
      size = 0
      throw .system(call: "fstat", path: name, errno: errno)
    }
    size = Int(status.st_size)
    guard status.st_mode & S_IFMT == S_IFREG else { throw .damaged(name, .notADirectory) }
  }

  /// Makes an empty file, or empties one that a killed process left.
  init(writing path: String) throws(DirectoryError) {
    (self.path, size) = (path, 0)
    descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw .system(call: "open", path: Self.name(path), errno: errno) }
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// The last component: the rest of a path on a telephone does not help a reader.
  var name: String { Self.name(path) }
  static func name(_ path: String) -> String { path.split(separator: "/").last.map(String.init) ?? path }

  /// Fills `buffer` from its start. - Returns: bytes read; less than wanted only where the file ends.
  func read(_ wanted: Int, at offset: Int, into buffer: inout [UInt8]) throws(DirectoryError) -> Int {
    var done = 0
    let wanted = min(wanted, buffer.count)
    while done < wanted {
      let from = done
      let count = buffer.withUnsafeMutableBytes { bytes in
        bytes.baseAddress.map { pread(descriptor, $0 + from, wanted - from, off_t(offset + from)) } ?? 0
      }
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw .system(call: "pread", path: name, errno: errno) }
      if count == 0 { break }
      done += count
    }
    return done
  }

  func write(_ bytes: [UInt8], at offset: Int) throws(DirectoryError) {
    var done = 0
    while done < bytes.count {
      let from = done
      let count = bytes.withUnsafeBytes { bytes in
        bytes.baseAddress.map { pwrite(descriptor, $0 + from, bytes.count - from, off_t(offset + from)) } ?? 0
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw .system(call: "pwrite", path: name, errno: errno) }
      done += count
    }
  }

  /// Writes the file to the disk, before the rename publishes it.
  func synchronise() throws(DirectoryError) {
    guard fsync(descriptor) == 0 else { throw .system(call: "fsync", path: name, errno: errno) }
  }
}
