public import CallFlow
import Synchronization

/// A journal that dies with the process: for tests and for gateways that keep no state.
public final class MemoryJournal: Journal {
  private let table = Mutex<[CallID: StartLine]>([:])
  public init() {}
  public func add(_ lines: [StartLine]) { table.withLock { table in for line in lines { table[line.call] = line } } }
  public func remove(_ calls: [CallID]) { table.withLock { table in for call in calls { table[call] = nil } } }
  public func lines() -> [StartLine] {
    table.withLock { $0.values.sorted { ($0.start, $0.call.description) < ($1.start, $1.call.description) } }
  }
}

/// Records in memory, in order.
public final class MemoryRecords: RecordSink {
  private let list = Mutex<[CallRecord]>([])
  public init() {}
  public var all: [CallRecord] { list.withLock { $0 } }
  public func append(_ records: [CallRecord]) { list.withLock { $0 += records } }
  public func recorded(among calls: Set<CallID>) -> Set<CallID> {
    list.withLock { Set($0.map(\.call)).intersection(calls) }
  }
}
