public import CallModel
import Foundation
import Synchronization

/// Records as JSON lines in a file that only grows. When the file was moved away (log rotation) the next append makes a new one.
public final class RecordFile: RecordSink {
  private let file: Mutex<RecordLines>

  /// Opens or creates the file, and cuts off a last line that a dying process left without its end.
  public init(path: String) throws { file = Mutex(try RecordLines(path: path)) }

  public func append(_ records: [CallRecord]) throws { try file.withLock { try $0.append(records) } }

  public func recorded(among calls: Set<CallID>) throws -> [CallID: CallRecord] {
    try file.withLock { try $0.recorded(among: calls) }
  }
}

/// The open file.
private struct RecordLines: ~Copyable {
  private let path: String
  private var fd: Int32 = -1
  private let encoder = RecordEncoder()

  init(path: String) throws {
    self.path = path
    try open()
    try cutTornLine()
  }

  deinit { if fd >= 0 { close(fd) } }

  mutating func append(_ records: [CallRecord]) throws {
    try reopenIfMoved()
    var data: [UInt8] = []
    for record in records { data += try encoder.encode(record) + [0x0a] }
    let before = lseek(fd, 0, SEEK_END)
    var written = 0
    while written < data.count {
      let count = data.withUnsafeBytes { write(fd, $0.baseAddress! + written, $0.count - written) }
      if count > 0 {
        written += count
        continue
      }
      if count < 0, errno == EINTR { continue }
      let error = fault("cannot write")
      // Half a line must not stay: the next append would continue it.
      if before >= 0 { _ = ftruncate(fd, before) }
      throw error
    }
  }

  func recorded(among calls: Set<CallID>) throws -> [CallID: CallRecord] {
    guard !calls.isEmpty else { return [:] }
    let size = lseek(fd, 0, SEEK_END)
    let start = max(0, Int(size) - Limits.searchedBytes)
    var bytes = [UInt8](repeating: 0, count: Int(size) - start)
    var have = 0
    while have < bytes.count {
      let count = bytes.withUnsafeMutableBytes { pread(fd, $0.baseAddress! + have, $0.count - have, off_t(start + have)) }
      guard count > 0 else { throw fault("cannot read") }
      have += count
    }
    var found: [CallID: CallRecord] = [:]
    struct Line: Decodable { var call: CallID }
    for line in bytes.split(separator: 0x0a) {
      guard let call = try? JSONDecoder().decode(Line.self, from: Data(line)).call, calls.contains(call) else { continue }
      found[call] = try? JSONDecoder().decode(CallRecord.self, from: Data(line))
    }
    return found
  }

  private mutating func open() throws {
    fd = Glibc.open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0o640)
    guard fd >= 0 else { throw fault("cannot open") }
  }

  private func cutTornLine() throws {
    var size = lseek(fd, 0, SEEK_END)
    let whole = size
    var byte: UInt8 = 0
    while size > 0, pread(fd, &byte, 1, size - 1) == 1, byte != 0x0a { size -= 1 }
    if size != whole, ftruncate(fd, size) != 0 { throw fault("cannot repair") }
  }

  private mutating func reopenIfMoved() throws {
    var ours = stat()
    var there = stat()
    if fd >= 0, fstat(fd, &ours) == 0, stat(path, &there) == 0, ours.st_ino == there.st_ino, ours.st_dev == there.st_dev {
      return
    }
    if fd >= 0 { close(fd) }
    try open()
  }

  private func fault(_ what: String) -> StoreError {
    let why = errno == ENOSPC ? "the disk is full" : String(cString: strerror(errno))
    return StoreError("\(what) the records file \(path): \(why)")
  }
}
