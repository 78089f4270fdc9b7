import Glibc

/// The position of the stream in the records file: which file, and the offset after the last delivered line.
struct RecordPosition: Hashable {
  var inode: UInt64
  var offset: Int64
  /// Hash of the file's first bytes, as a file system reuses the inode of a removed file. 0: unknown.
  var head: UInt64 = 0

  /// Three hexadecimal numbers of constant length: overwriting the last text needs no further block of a full disk.
  var text: String { [inode, UInt64(max(0, offset)), head].map(Self.hexadecimal).joined(separator: " ") + "\n" }

  init(inode: UInt64, offset: Int64, head: UInt64 = 0) { (self.inode, self.offset, self.head) = (inode, offset, head) }

  /// Nil: the text is not a position.
  init?(_ text: some StringProtocol) {
    let parts = text.split(whereSeparator: \.isWhitespace)
    guard parts.count == 3, text.utf8.count == Self.textBytes, let inode = UInt64(parts[0], radix: 16),
      let offset = UInt64(parts[1], radix: 16).flatMap({ Int64(exactly: $0) }), let head = UInt64(parts[2], radix: 16)
    else { return nil }
    self.init(inode: inode, offset: offset, head: head)
  }

  static let textBytes = 51

  private static func hexadecimal(_ number: UInt64) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }
}

/// The small file beside the records file that keeps its `RecordPosition`: `calls.jsonl.shipped`. Blocks; used by one thread.
final class RecordPositionFile {
  let path: String
  private var fd: Int32 = -1

  init(path: String) { self.path = path }
  deinit { if fd >= 0 { close(fd) } }

  /// Nil: the file does not exist or is unreadable.
  func read() -> RecordPosition? {
    guard open() else { return nil }
    var bytes = [UInt8](repeating: 0, count: RecordPosition.textBytes + 1)
    let count = pread(fd, &bytes, bytes.count, 0)
    return RecordPosition(String(decoding: bytes.prefix(max(0, count)), as: UTF8.self))
  }

  func write(_ position: RecordPosition) throws(StoreError) {
    guard open() else { throw fault() }
    let text = position.text
    let count = text.withCString { pwrite(fd, $0, text.utf8.count, 0) }
    guard count == text.utf8.count else {
      if count >= 0 { errno = ENOSPC }
      throw fault()
    }
  }

  private func open() -> Bool {
    if fd < 0 { fd = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o640) }
    return fd >= 0
  }

  private func fault() -> StoreError {
    let why = errno == ENOSPC ? "the disk is full" : String(cString: strerror(errno))
    return StoreError("cannot write \(path), which has the position in the stream of records: \(why)")
  }
}
