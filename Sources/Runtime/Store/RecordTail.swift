import Foundation
import Glibc
import LineFiles
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
  private var lines = LineReader(lineBytes: Limits.streamedRecordBytes)
  private var inode: UInt64 = 0
  private var head: UInt64 = 0

  init(path: String) { self.path = path }

  var isOpen: Bool { lines.isOpen }

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
    if head == 0, offset >= Self.headBytes { head = readHead() }
    return RecordPosition(inode: inode, offset: offset, head: offset >= Self.headBytes ? head : 0)
  }

  /// Continues with the line at `offset`.
  func seek(_ offset: Int64) { lines.seek(offset) }

  func next() -> Step {
    if isOpen, !lines.hasLine, !isSame(head: head, lines.offset) { return .replaced }
    switch lines.next() {
    case .line(let line): return .line(Array(line), end: lines.offset)
    case .tooLong: return .line(nil, end: lines.offset)
    case .end: return .end(hasRest: lines.hasRest)
    }
  }

  /// After `end`: whether the file was moved away and its successor is open now, from its beginning.
  func advance() -> Bool {
    var there = stat()
    guard stat(path, &there) == 0, UInt64(there.st_ino) != inode else { return false }
    guard let ours = lines.status else { return open(path) }
    let between = rotated().first { file in file.changed > Time(ours) && file.inode != inode && file.inode != UInt64(there.st_ino)
    }
    if let between, open(between.path) { return true }
    return open(path)
  }

  /// Bytes of the open file after `offset`.
  func bytes(after offset: Int64) -> Int64 {
    max(0, Int64(lines.status?.st_size ?? 0) - offset)
  }

  // MARK: the file

  /// The first bytes hold the id of the file's first call.
  private static let headBytes: Int64 = 128

  private func readHead() -> UInt64 {
    let bytes = lines.octets(at: 0, count: Int(Self.headBytes))
    guard bytes.count == Int(Self.headBytes) else { return 0 }
    let hash = FNV1a(bytes).value
    return hash == 0 ? 1 : hash
  }

  private func isSame(head: UInt64, _ offset: Int64) -> Bool {
    guard let status = lines.status, Int64(status.st_size) >= offset else { return false }
    return head == 0 || readHead() == head
  }

  private func open(_ path: String) -> Bool {
    guard lines.open(path), let status = lines.status else { return false }
    inode = UInt64(status.st_ino)
    head = 0
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
