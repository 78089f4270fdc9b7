import Foundation
import Glibc
import TrunklineBytes

/// Whole lines of the records file from any byte on, through log rotation: a moved file is read to its end, then its successors,
/// the current one last. Blocks; used by the thread that writes the file, so that a moved one no longer grows.
final class RecordTail {
  enum Step: Equatable {
    /// Without its line break; nil: longer than `Limits.streamedRecordBytes`. `end`: the offset after the line.
    case line([UInt8]?, end: Int64)
    /// No whole line is left. `hasRest`: a partial line is.
    case end(hasRest: Bool)
    /// The file has been cut or rewritten: the lines read from it are void.
    case replaced
  }

  private let path: String
  private var fd: Int32 = -1
  private var inode: UInt64 = 0
  private var head: UInt64 = 0
  /// The offset of `buffer` in the file.
  private var base: Int64 = 0
  private var buffer: [UInt8] = []
  private var cursor = 0
  private var isSkipping = false

  init(path: String) { self.path = path }
  deinit { if fd >= 0 { close(fd) } }

  var isOpen: Bool { fd >= 0 }

  /// Opens the file of `position`, wherever it was moved in its folder. False: the file does not exist, and the current one, if
  /// any (`isOpen`), is open from its beginning.
  func open(at position: RecordPosition?) -> Bool {
    if let position {
      for candidate in [path] + rotated().map(\.path) where open(candidate) {
        if inode == position.inode, isSame(head: position.head, position.offset) {
          seek(position.offset)
          return true
        }
      }
    }
    _ = open(path)
    return position == nil
  }

  /// The position after `offset` of the open file.
  func position(_ offset: Int64) -> RecordPosition {
    if head == 0, offset >= Self.headBytes { head = Self.head(fd) }
    return RecordPosition(inode: inode, offset: offset, head: offset >= Self.headBytes ? head : 0)
  }

  /// Continues with the line at `offset`.
  func seek(_ offset: Int64) {
    (base, cursor, isSkipping) = (offset, 0, false)
    buffer.removeAll(keepingCapacity: true)
  }

  func next() -> Step {
    while true {
      if let end = lineEnd() {
        let line = isSkipping || end - cursor > Limits.streamedRecordBytes ? nil : Array(buffer[cursor..<end])
        (cursor, isSkipping) = (end + 1, false)
        return .line(line, end: base + Int64(cursor))
      }
      base += Int64(cursor)
      buffer.removeFirst(cursor)
      cursor = 0
      if buffer.count > Limits.streamedRecordBytes {
        base += Int64(buffer.count)
        buffer.removeAll(keepingCapacity: true)
        isSkipping = true
      }
      switch refill() {
      case nil: return .replaced
      case 0: return .end(hasRest: isSkipping || !buffer.isEmpty)
      default: continue
      }
    }
  }

  private func lineEnd() -> Int? {
    buffer.withUnsafeBytes { bytes in
      guard let start = bytes.baseAddress, cursor < bytes.count,
        let found = memchr(start + cursor, 0x0a, bytes.count - cursor)
      else { return nil }
      return UnsafeRawPointer(found) - start
    }
  }

  /// After `end`: whether the file was moved away and its successor is open now, from its beginning.
  func advance() -> Bool {
    var there = stat()
    guard stat(path, &there) == 0, UInt64(there.st_ino) != inode else { return false }
    var ours = stat()
    guard fd >= 0, fstat(fd, &ours) == 0 else { return open(path) }
    let between = rotated().first { file in file.changed > Time(ours) && file.inode != inode && file.inode != UInt64(there.st_ino)
    }
    if let between, open(between.path) { return true }
    return open(path)
  }

  /// Bytes of the open file after `offset`.
  func bytes(after offset: Int64) -> Int64 {
    var status = stat()
    return fd >= 0 && fstat(fd, &status) == 0 ? max(0, Int64(status.st_size) - offset) : 0
  }

  // MARK: the file

  /// The first bytes hold the id of the file's first call.
  private static let headBytes: Int64 = 128

  private static func head(_ fd: Int32) -> UInt64 {
    var bytes = [UInt8](repeating: 0, count: Int(headBytes))
    guard pread(fd, &bytes, bytes.count, 0) == bytes.count else { return 0 }
    let hash = FNV1a(bytes).value
    return hash == 0 ? 1 : hash
  }

  private func isSame(head: UInt64, _ offset: Int64) -> Bool {
    var status = stat()
    guard fstat(fd, &status) == 0, status.st_size >= offset else { return false }
    return head == 0 || Self.head(fd) == head
  }

  /// The number of bytes read; nil: the file was replaced.
  private func refill() -> Int? {
    guard fd >= 0 else { return 0 }
    let position = base + Int64(buffer.count)
    guard isSame(head: head, position) else { return nil }
    let count = withUnsafeTemporaryAllocation(byteCount: Limits.streamReadBytes, alignment: 16) { room in
      let count = pread(fd, room.baseAddress, room.count, off_t(position))
      if count > 0 { buffer.append(contentsOf: UnsafeRawBufferPointer(rebasing: room[..<count])) }
      return count
    }
    return max(0, count)
  }

  private func open(_ path: String) -> Bool {
    let next = Glibc.open(path, O_RDONLY | O_CLOEXEC)
    var status = stat()
    guard next >= 0 else { return false }
    guard fstat(next, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      close(next)
      return false
    }
    if fd >= 0 { close(fd) }
    (fd, inode, head) = (next, UInt64(status.st_ino), 0)
    seek(0)
    return true
  }

  // MARK: rotation

  private struct Time: Comparable {
    var seconds: Int
    var nanoseconds: Int
    init(_ status: stat) { (seconds, nanoseconds) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec) }
    static func < (a: Time, b: Time) -> Bool { (a.seconds, a.nanoseconds) < (b.seconds, b.nanoseconds) }
  }
  private struct Rotated {
    var path: String
    var inode: UInt64
    var changed: Time
  }

  /// `calls.jsonl.1`, `calls.jsonl-20261124`: files that log rotation has moved and not compressed yet, the oldest first.
  private func rotated() -> [Rotated] {
    let url = URL(fileURLWithPath: path)
    let (folder, name) = (url.deletingLastPathComponent().path, url.lastPathComponent)
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return names.filter { other in
      guard other.hasPrefix(name + ".") || other.hasPrefix(name + "-") else { return false }
      return ![".shipped", ".gz", ".xz", ".zst", ".bz2", ".lock", ".new"].contains { other.hasSuffix($0) }
    }.prefix(Limits.rotatedFiles).compactMap { other in
      var status = stat()
      let path = folder + "/" + other
      guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
      return Rotated(path: path, inode: UInt64(status.st_ino), changed: Time(status))
    }.sorted { $0.changed < $1.changed }
  }
}
