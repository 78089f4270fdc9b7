import Glibc

/// A file of lines that only grows. Blocks; one thread at a time, and one process.
///
///     var log = try AppendLog(path: "/var/lib/trunkline/calls.jsonl", named: "the records file", mode: 0o640)
///     try log.append(Array("{\"call\":…}\n".utf8))
///
/// Lines for which `append` has returned survive the death of the process; the operating system writes them to the disk within
/// seconds. `LineReader` reads them at the same time.
///
/// | event | the file then |
/// |---|---|
/// | the process died in an append | some of its lines; an incomplete last one is cut off at the next start |
/// | the disk is full after a part of an append | no line of it: it throws, and may be repeated |
/// | that part cannot be cut off | appends throw until it can |
/// | the file was moved away (log rotation), then `reopenIfMoved` | a new file has the path; the moved one is complete |
/// | another process cut it in place | appends continue at its end |
public struct AppendLog: ~Copyable, Sendable {
  public let path: String
  /// Octets, if no other process changes the file.
  public private(set) var size = 0
  private let name: String
  private let mode: mode_t
  private var fd: Int32 = -1
  /// Octets of a failed append that are still at the end.
  private var torn = 0

  /// Opens or creates the file, and cuts off an incomplete last line. `name` is for errors: "the records file"; `isEmptied`: what the
  /// file has is removed.
  public init(path: String, named name: String, mode: mode_t, isEmptied: Bool = false) throws(AppendLogError) {
    (self.path, self.name, self.mode) = (path, name, mode)
    try open(isEmptied ? O_TRUNC : 0)
    let end = lseek(fd, 0, SEEK_END)
    size = wholeLines(before: Int(max(0, end)))
    if size < end, ftruncate(fd, off_t(size)) != 0 { throw fault("cannot repair") }
  }

  deinit { if fd >= 0 { close(fd) } }

  /// All or nothing. `lines` ends with a line break.
  public mutating func append(_ lines: [UInt8]) throws(AppendLogError) {
    try repair()
    let (written, isWhole) = Self.put(lines, fd)
    guard isWhole else {
      let error = fault("cannot write")
      // A partial line must not stay: the next one would continue it.
      torn = written
      try? repair()
      throw error
    }
    size += lines.count
  }

  /// Log rotation moved the file: opens or creates one of its name.
  public mutating func reopenIfMoved() throws(AppendLogError) {
    var (ours, there) = (stat(), stat())
    if fstat(fd, &ours) == 0, stat(path, &there) == 0, ours.st_ino == there.st_ino, ours.st_dev == there.st_dev { return }
    try open(0)
    size = Int(max(0, lseek(fd, 0, SEEK_END)))
    torn = 0
  }

  /// The last `most` octets, of which the first line may be incomplete.
  public func contents(last most: Int = .max) throws(AppendLogError) -> [UInt8] {
    let end = max(0, Int(lseek(fd, 0, SEEK_END)))
    let start = max(0, end - most)
    var bytes = [UInt8](repeating: 0, count: end - start)
    var have = 0
    while have < bytes.count {
      let count = bytes.withUnsafeMutableBytes { pread(fd, $0.baseAddress! + have, $0.count - have, off_t(start + have)) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw fault("cannot read") }
      have += count
    }
    return bytes
  }

  /// Replaces the whole file by these lines. If that fails, it stays as it is.
  public mutating func replace(with lines: [UInt8]) {
    if lines.isEmpty {
      if ftruncate(fd, 0) == 0 { (size, torn) = (0, 0) }
      return
    }
    let next = Glibc.open(path + ".new", O_RDWR | O_APPEND | O_CREAT | O_TRUNC | O_CLOEXEC, mode)
    guard next >= 0 else { return }
    guard Self.put(lines, next).isWhole, rename(path + ".new", path) == 0 else {
      close(next)
      unlink(path + ".new")
      return
    }
    close(fd)
    fd = next
    size = lines.count
    torn = 0
  }

  // MARK: the file

  private mutating func open(_ flag: Int32) throws(AppendLogError) {
    let next = Glibc.open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | flag, mode)
    guard next >= 0 else { throw fault("cannot open") }
    if fd >= 0 { close(fd) }
    fd = next
  }

  private mutating func repair() throws(AppendLogError) {
    guard torn > 0 else { return }
    // Of the end, not of `size`: another process may have cut the file.
    guard ftruncate(fd, max(0, lseek(fd, 0, SEEK_END) - off_t(torn))) == 0 else { throw fault("cannot repair") }
    torn = 0
  }

  /// The length of the file up to its last line break.
  private func wholeLines(before end: Int) -> Int {
    var end = end
    var bytes = [UInt8](repeating: 0, count: min(end, 65_536))
    while end > 0 {
      let start = max(0, end - bytes.count)
      guard pread(fd, &bytes, end - start, off_t(start)) == end - start else { return end }
      if let last = bytes[..<(end - start)].lastIndex(of: 0x0a) { return start + last + 1 }
      end = start
    }
    return 0
  }

  private static func put(_ bytes: [UInt8], _ fd: Int32) -> (written: Int, isWhole: Bool) {
    var done = 0
    while done < bytes.count {
      let count = bytes.withUnsafeBytes { write(fd, $0.baseAddress! + done, $0.count - done) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return (done, false) }
      done += count
    }
    return (done, true)
  }

  private func fault(_ what: String) -> AppendLogError { AppendLogError(what, name: name, path: path) }
}

/// Why a file of lines cannot be opened, read or written, and what an operator can do.
public struct AppendLogError: Error, Sendable, Equatable, CustomStringConvertible {
  public let description: String

  /// With the reason in `errno`.
  public init(_ what: String, name: String, path: String) {
    let why = errno == ENOSPC ? "the disk is full" : String(cString: strerror(errno))
    description = "\(what) \(name) \(path): \(why)"
  }
}
