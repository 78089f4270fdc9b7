import AppSessions
import CallFlow
import CallModel
import Devices
import Synchronization

@testable import Store

/// A journal that dies with the process.
final class MemoryJournal: Journal {
  private let table = Mutex<[CallID: JournalEntry]>([:])
  func add(_ lines: [JournalEntry]) { table.withLock { table in for line in lines { table[line.call] = line } } }
  func remove(_ calls: [CallID]) { table.withLock { table in for call in calls { table[call] = nil } } }
  func lines() -> [JournalEntry] {
    table.withLock { $0.values.sorted { ($0.start, $0.call.description) < ($1.start, $1.call.description) } }
  }
}

/// Records in memory, in order.
final class MemoryRecords: RecordSink {
  private let list = Mutex<[CallRecord]>([])
  var all: [CallRecord] { list.withLock { $0 } }
  func append(_ records: [CallRecord]) { list.withLock { $0 += records } }
  func recorded(among calls: Set<CallID>) -> [CallID: CallRecord] {
    list.withLock { Dictionary($0.filter { calls.contains($0.call) }.map { ($0.call, $0) }) { _, last in last } }
  }
}

/// Devices that are forgotten with the process.
final class MemoryDevices: LocalDeviceStore {
  private let table = Mutex<[DeviceKey: Device]>([:])

  func devices(of user: String) -> [Device] {
    table.withLock {
      $0.values.filter { $0.key.user == user }.sorted { ($0.firstSeen, $0.key.device) < ($1.firstSeen, $1.key.device) }
    }
  }

  func page(after user: String?, users: Int) -> [Device] {
    let ids = table.withLock { Set($0.keys.map(\.user)) }.filter { id in
      user.map { $0.utf8.lexicographicallyPrecedes(id.utf8) } ?? true
    }
    return ids.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.prefix(users).flatMap { devices(of: $0) }
  }

  func apply(_ changes: [DeviceChange]) {
    table.withLock { table in
      for change in changes {
        switch change {
        case .stored(let device): table[device.key] = device
        case .removed(let key): table[key] = nil
        }
      }
    }
  }
}
