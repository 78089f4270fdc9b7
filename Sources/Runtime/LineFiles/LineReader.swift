public import Glibc

/// Whole lines of a file from any offset on, while an `AppendLog` adds to it. Blocks for data that is not in memory; one thread.
///
///     var reader = LineReader(lineBytes: 65_536)
///     guard reader.open(path) else { return }
///     while case .line(let line) = reader.next() { … }
///
/// An incomplete last line is read again each time, as the writer may cut it off and write another. Memory: `lineBytes`.
public struct LineReader: ~Copyable, Sendable {
  public enum Step: Equatable {
    /// Without its line break.
    case line(ArraySlice<UInt8>)
    /// A line of more than `lineBytes` was skipped.
    case tooLong
    /// No whole line is left.
    case end
  }

  /// The offset of the next line.
  public private(set) var offset: Int64 = 0
  private let lineBytes: Int
  private var fd: Int32 = -1
  /// Octets of the file, of which those from `cursor` to `filled` begin at `offset`.
  private var chunk: [UInt8] = []
  private var cursor = 0
  private var filled = 0
  /// The octets before `offset` begin a line that is too long.
  private var isSkipping = false

  public init(lineBytes: Int) { self.lineBytes = lineBytes }

  deinit { if fd >= 0 { close(fd) } }

  public var isOpen: Bool { fd >= 0 }
  /// Of the open file, wherever it was moved; nil: none is open.
  public var status: stat? {
    var status = stat()
    return fd >= 0 && fstat(fd, &status) == 0 ? status : nil
  }
  /// The next line is in memory.
  public var hasLine: Bool { lineEnd != nil }
  /// After `end`: a part of a line follows.
  public var hasRest: Bool { isSkipping || cursor < filled }

  /// Opens the file at its beginning. False: it is not a regular file that can be read, and the former one stays open.
  public mutating func open(_ path: String) -> Bool {
    let next = Glibc.open(path, O_RDONLY | O_CLOEXEC)
    guard next >= 0 else { return false }
    var status = stat()
    guard fstat(next, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      close(next)
      return false
    }
    if fd >= 0 { close(fd) }
    fd = next
    seek(0)
    return true
  }

  /// Continues with the line at `offset`.
  public mutating func seek(_ offset: Int64) { (self.offset, cursor, filled, isSkipping) = (offset, 0, 0, false) }

  public mutating func next() -> Step {
    var isRead = false
    while true {
      if let end = lineEnd {
        defer { advance(to: end + 1) }
        return isSkipping ? .tooLong : .line(chunk[cursor..<end])
      }
      if isRead, filled <= lineBytes { return .end }
      if cursor == 0, filled > lineBytes {
        advance(to: filled)
        isSkipping = true
      }
      fill()
      isRead = true
    }
  }

  /// Reads again from `offset` on: whether a whole line follows.
  public mutating func refill() -> Bool {
    fill()
    return hasLine
  }

  /// At most `count` octets of the open file at any offset.
  public func octets(at offset: Int64, count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { room, have in
      have = max(0, pread(fd, room.baseAddress, room.count, off_t(offset)))
    }
  }

  private var lineEnd: Int? {
    chunk.withUnsafeBytes { bytes in
      guard let start = bytes.baseAddress, cursor < filled, let found = memchr(start + cursor, 0x0a, filled - cursor) else {
        return nil
      }
      return UnsafeRawPointer(found) - start
    }
  }

  private mutating func advance(to end: Int) { (offset, cursor, isSkipping) = (offset + Int64(end - cursor), end, false) }

  private mutating func fill() {
    // one octet more than a line has, for its line break
    if chunk.isEmpty { chunk = [UInt8](repeating: 0, count: lineBytes + 1) }
    cursor = 0
    filled = chunk.withUnsafeMutableBytes { max(0, pread(fd, $0.baseAddress, $0.count, off_t(offset))) }
  }
}
