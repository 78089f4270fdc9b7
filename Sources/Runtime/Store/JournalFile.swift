public import CallModel
import Foundation
import LineFiles
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
  private var log: AppendLog
  /// The JSON of each live line.
  private var live: [CallID: [UInt8]] = [:]
  private var liveBytes = 0
  private var text: [UInt8] = []
  private let encoder = RecordEncoder()

  init(path: String) throws {
    let log = try AppendLog(path: path, named: "the journal", mode: 0o600)
    let lines = try log.contents()
    self.log = consume log
    load(lines)
  }

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
    try log.append(text)
    for call in gone { forget(call) }
    for (call, json) in added {
      forget(call)
      live[call] = json
      liveBytes += json.count
    }
    if log.size > Limits.journalBytes, log.size > 2 * liveBytes { compact() }
  }

  func lines() throws -> [JournalEntry] {
    let decoder = JSONDecoder()
    let lines = try live.values.map { try decoder.decode(JournalEntry.self, from: Data($0)) }
    return lines.sorted { ($0.start, $0.call.description) < ($1.start, $1.call.description) }
  }

  private mutating func forget(_ call: CallID) {
    if let json = live.removeValue(forKey: call) { liveBytes -= json.count }
  }

  private mutating func load(_ lines: [UInt8]) {
    for line in lines.split(separator: UInt8(ascii: "\n")) {
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
    if live.isEmpty, log.size > 0 { compact() }
  }

  /// Rewrites the file with the live lines only. If that fails, the file stays as it is, with the same meaning.
  private mutating func compact() {
    var lines: [UInt8] = []
    lines.reserveCapacity(liveBytes + 2 * live.count)
    for json in live.values { lines += [UInt8(ascii: "+")] + json + [UInt8(ascii: "\n")] }
    log.replace(with: lines)
  }
}
