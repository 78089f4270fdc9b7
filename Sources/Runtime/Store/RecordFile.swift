public import CallModel
import Foundation
import LineFiles
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
  private var log: AppendLog
  private let encoder = RecordEncoder()

  init(path: String) throws { log = try AppendLog(path: path, named: "the records file", mode: 0o640) }

  mutating func append(_ records: [CallRecord]) throws {
    try log.reopenIfMoved()
    try log.append(records.flatMap { try encoder.encode($0) + [0x0a] })
  }

  func recorded(among calls: Set<CallID>) throws -> [CallID: CallRecord] {
    guard !calls.isEmpty else { return [:] }
    var found: [CallID: CallRecord] = [:]
    struct Line: Decodable { var call: CallID }
    for line in try log.contents(last: Limits.searchedBytes).split(separator: 0x0a) {
      guard let call = try? JSONDecoder().decode(Line.self, from: Data(line)).call, calls.contains(call) else { continue }
      found[call] = try? JSONDecoder().decode(CallRecord.self, from: Data(line))
    }
    return found
  }
}
