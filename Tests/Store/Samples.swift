import AppSessions
import CallFlow
import CallModel
import Devices
import Foundation
import PushPolicy
import Synchronization
import TrunklineAppProtocol
import TrunklineBytes

@testable import Store

func journalEntry(_ number: UInt64, start: Int64? = nil) -> JournalEntry {
  JournalEntry(
    call: CallID(high: 1, low: number), sipCallId: "call-\(number)@carrier", direction: .incoming, trunk: "carrier",
    from: "+15550000001",
    to: "+15551230001", user: "alice", start: start ?? Int64(number))
}

func record(_ number: UInt64) -> CallRecord { CallRecord(orphan: journalEntry(number), at: 1_000) }

/// A folder for one test, removed at the end.
final class Folder {
  let path = FileManager.default.temporaryDirectory.appendingPathComponent("trunkline-\(UUID().uuidString)").path
  init() throws { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) }
  deinit { try? FileManager.default.removeItem(atPath: path) }
  func read(_ name: String) throws -> String { try String(contentsOfFile: path + "/" + name, encoding: .utf8) }
}

/// A sink or journal that fails while the test requires it.
final class Faulty: Journal, RecordSink {
  let journal = MemoryJournal()
  let sink = MemoryRecords()
  let broken = Mutex<(journal: Bool, records: Bool)>((false, false))
  private func check(_ part: (journal: Bool, records: Bool), _ isJournal: Bool) throws {
    if isJournal ? part.journal : part.records { throw StoreError(isJournal ? "journal is broken" : "the disk is full") }
  }
  func add(_ lines: [JournalEntry]) throws {
    try check(broken.withLock { $0 }, true)
    journal.add(lines)
  }
  func remove(_ calls: [CallID]) throws {
    try check(broken.withLock { $0 }, true)
    journal.remove(calls)
  }
  func lines() -> [JournalEntry] { journal.lines() }
  func append(_ records: [CallRecord]) throws {
    try check(broken.withLock { $0 }, false)
    sink.append(records)
  }
  func recorded(among calls: Set<CallID>) -> [CallID: CallRecord] { sink.recorded(among: calls) }
}

/// Collects confirmations from the store thread.
final class Confirmations: Sendable {
  private let list = Mutex<[CallID]>([])
  var calls: [CallID] { list.withLock { $0 } }
  func note(_ call: CallID) { list.withLock { $0.append(call) } }
}

func device(_ user: String, _ name: String, at: Int64 = 1) -> Device {
  var device = Device(key: DeviceKey(user: user, device: name), at: at)
  device.bindings = [
    PushBinding(PushTarget(.apns, token: "ab" + hexString(UInt64(at)), topic: "org.example.voip"), registeredAt: at)
  ]
  return device
}

/// A device store that fails while the test requires it.
final class FaultyDevices: LocalDeviceStore {
  let inner = MemoryDevices()
  let isBroken = Mutex(false)
  func devices(of user: String) -> [Device] { inner.devices(of: user) }
  func page(after user: String?, users: Int) -> [Device] { inner.page(after: user, users: users) }
  func apply(_ changes: [DeviceChange]) throws {
    if isBroken.withLock({ $0 }) { throw StoreError("the disk is full") }
    inner.apply(changes)
  }
}

/// A program that holds the write lock of a SQLite file until the test ends it: Python's sqlite3.
final class OtherProgram {
  private let process = Process()
  private let input = Pipe()

  init(_ path: String) throws {
    let output = Pipe()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [
      "python3", "-c",
      "import sqlite3,sys; c=sqlite3.connect(sys.argv[1],isolation_level=None); c.execute('BEGIN IMMEDIATE'); print('held',flush=True); sys.stdin.read()",
      path,
    ]
    (process.standardInput, process.standardOutput) = (input, output)
    try process.run()
    _ = output.fileHandleForReading.availableData
  }

  func stop() {
    try? input.fileHandleForWriting.close()
    process.waitUntilExit()
  }
}
