public import CallModel
import Foundation
import Synchronization

/// The journal as an append-only file: `+` and a journal entry as JSON, or `-` and the call whose record is written. All waiting
/// lines cost one `write`, where a transaction of SQLite costs a dozen system calls.
///
/// Live lines are also in memory; a file that is mostly history is rewritten, or emptied if no line is live. A kill at any
/// instant leaves whole lines and at most one partial line at the end, which the next start cuts off.
public final class JournalFile: Journal {
  private let file: Mutex<LiveLines>

  /// Opens or creates the file, readable by its owner only, and reads the live lines.
  public init(path: String) throws { file = Mutex(try LiveLines(path: path)) }

  public func add(_ lines: [JournalEntry]) throws { try change(adding: lines, removing: []) }
  public func remove(_ calls: [CallID]) throws { try change(adding: [], removing: calls) }

  public func change(adding lines: [JournalEntry], removing calls: [CallID]) throws {
    try file.withLock { try $0.change(adding: lines, removing: calls) }
  }

  public func lines() throws -> [JournalEntry] { try file.withLock { try $0.lines() } }
}

/// The open file, and its live lines.
private struct LiveLines: ~Copyable {
  private let path: String
  private var fd: Int32 = -1
  private var size = 0
  /// The JSON of each live line.
  private var live: [CallID: [UInt8]] = [:]
  private var liveBytes = 0
  private var text: [UInt8] = []
  private let encoder = RecordEncoder()

  init(path: String) throws {
    self.path = path
    fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
    guard fd >= 0 else { throw fault("cannot open") }
    try load()
  }

  deinit { if fd >= 0 { close(fd) } }

  mutating func change(adding lines: [JournalEntry], removing calls: [CallID]) throws {
    text.removeAll(keepingCapacity: true)
    let gone = calls.filter { live[$0] != nil }
    for call in gone {
      text.append(UInt8(ascii: "-"))
      text += call.description.utf8
      text.append(UInt8(ascii: "\n"))
    }
    var added: [(CallID, [UInt8])] = []
    for line in lines {
      let json = try encoder.encode(line)
      text.append(UInt8(ascii: "+"))
      text += json
      text.append(UInt8(ascii: "\n"))
      added.append((line.call, json))
    }
    guard !text.isEmpty else { return }
    try write(text)
    size += text.count
    for call in gone { forget(call) }
    for (call, json) in added {
      forget(call)
      live[call] = json
      liveBytes += json.count
    }
    if size > Limits.journalBytes, size > 2 * liveBytes { compact() }
  }

  func lines() throws -> [JournalEntry] {
    let decoder = JSONDecoder()
    let lines = try live.values.map { try decoder.decode(JournalEntry.self, from: Data($0)) }
    return lines.sorted { ($0.start, $0.call.description) < ($1.start, $1.call.description) }
  }

  private mutating func forget(_ call: CallID) {
    if let json = live.removeValue(forKey: call) { liveBytes -= json.count }
  }

  // MARK: the file

  private mutating func load() throws {
    let bytes = try contents()
    let whole = bytes.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
    if whole < bytes.count, ftruncate(fd, off_t(whole)) != 0 { throw fault("cannot repair") }
    size = whole
    for line in bytes[..<whole].split(separator: UInt8(ascii: "\n")) {
      let rest = line.dropFirst()
      // An unreadable line names no call: it is skipped.
      switch line.first {
      case UInt8(ascii: "+"):
        guard let call = try? JSONDecoder().decode(JournalEntry.self, from: Data(rest)).call else { continue }
        forget(call)
        live[call] = Array(rest)
        liveBytes += rest.count
      case UInt8(ascii: "-"): if let call = CallID(String(decoding: rest, as: UTF8.self)) { forget(call) }
      default: continue
      }
    }
    if live.isEmpty, size > 0 { compact() }
  }

  private func contents() throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: max(0, Int(lseek(fd, 0, SEEK_END))))
    var have = 0
    while have < bytes.count {
      let count = bytes.withUnsafeMutableBytes { pread(fd, $0.baseAddress! + have, $0.count - have, off_t(have)) }
      guard count > 0 else { throw fault("cannot read") }
      have += count
    }
    return bytes
  }

  /// All or nothing.
  private mutating func write(_ bytes: [UInt8]) throws {
    do throws(StoreError) {
      try put(bytes, fd)
    } catch {
      // A partial line must not stay: the next line would be appended to it.
      _ = ftruncate(fd, off_t(size))
      throw error
    }
  }

  private func put(_ bytes: [UInt8], _ fd: Int32) throws(StoreError) {
    var done = 0
    while done < bytes.count {
      let count = bytes.withUnsafeBytes { Glibc.write(fd, $0.baseAddress! + done, $0.count - done) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw fault("cannot write") }
      done += count
    }
  }

  /// Rewrites the file with the live lines only. If that fails, the file stays as it is, with the same meaning.
  private mutating func compact() {
    if live.isEmpty {
      if ftruncate(fd, 0) == 0 { size = 0 }
      return
    }
    let next = open(path + ".new", O_RDWR | O_APPEND | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard next >= 0 else { return }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(liveBytes + 2 * live.count)
    for json in live.values { bytes += [UInt8(ascii: "+")] + json + [UInt8(ascii: "\n")] }
    guard (try? put(bytes, next)) != nil, rename(path + ".new", path) == 0 else {
      close(next)
      unlink(path + ".new")
      return
    }
    close(fd)
    (fd, size) = (next, bytes.count)
  }

  private func fault(_ what: String) -> StoreError {
    let why = errno == ENOSPC ? "the disk is full" : String(cString: strerror(errno))
    return StoreError("\(what) the journal \(path): \(why)")
  }
}
