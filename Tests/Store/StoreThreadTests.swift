import AppSessions
import CallFlow
import Devices
import Glibc
import Logging
import Testing
import TrunklinePlatform

@testable import Store

@Suite struct StoreThreadTests {
  @Test func `what was given before the stop is on disk after it`() throws {
    let folder = try Folder()
    let readiness = Readiness()
    let store = try CallStore(
      sqlite: folder.path + "/a.db", records: folder.path + "/calls.jsonl", readiness: readiness, logger: Logger(label: "test"))
    let confirmed = Confirmations()
    for number in 1...20 as ClosedRange<UInt64> {
      store.start(journalEntry(number)) { confirmed.note($0) }
      if number <= 15 { store.end(record(number)) }
    }
    store.stop()
    #expect(confirmed.calls.count == 20)
    #expect(store.written.value == 15)
    #expect(readiness.isReady)
    #expect(try folder.read("calls.jsonl").split(separator: "\n").count == 15)

    let next = try CallStore(
      journal: MemoryJournal(), records: MemoryRecords(), devices: MemoryDevices(), readiness: readiness,
      logger: Logger(label: "test"))
    next.stop()
    next.stop()
  }

  @Test func `a record that waits for company is written without any, and its line is removed`() throws {
    let store = Faulty()
    let calls = try CallStore(
      journal: store, records: store, devices: MemoryDevices(), readiness: Readiness(), logger: Logger(label: "test"))
    calls.start(journalEntry(1), gathers: true) { _ in }
    calls.wake()
    calls.end(record(1))
    while store.sink.all.isEmpty || !store.lines().isEmpty { sched_yield() }
    #expect(store.sink.all == [record(1)])
    calls.end(record(2))
    while store.sink.all.count < 2 { sched_yield() }
    calls.stop()
  }

  @Test func `a full disk shows in readiness and heals by itself`() throws {
    let faulty = Faulty()
    let readiness = Readiness()
    faulty.broken.withLock { $0.records = true }
    var pace = CallStore.Pace()
    pace.retry = .milliseconds(1)
    let store = try CallStore(
      journal: faulty, records: faulty, devices: MemoryDevices(), readiness: readiness, logger: Logger(label: "test"), pace: pace)
    store.end(record(1))
    while store.failures.value < 3 { sched_yield() }
    #expect(readiness.report.first?.reason == "the disk is full; 1 records and 0 devices wait in memory")
    #expect(store.waiting.value == 1)
    faulty.broken.withLock { $0.records = false }
    while store.written.value < 1 { sched_yield() }
    store.stop()
    #expect(readiness.isReady)
    #expect(faulty.sink.all == [record(1)])
  }

  @Test func `TOK-5: registrations go on while the store is locked, and are there after the next start`() throws {
    let folder = try Folder()
    let (readiness, logger) = (Readiness(), Logger(label: "test"))
    let path = folder.path + "/a.db"
    let store = try CallStore(sqlite: path, records: folder.path + "/calls.jsonl", readiness: readiness, logger: logger)
    // Another program writes: sqlite3 in an operator's shell.
    let other = try OtherProgram(path)
    for number in 0..<100 {
      store.change([.stored(device("alice", "d\(number)")), .stored(device("bob", "phone", at: Int64(number)))])
    }
    while store.failing.value == 0 || readiness.isReady { sched_yield() }
    #expect(store.failing.value == 1 && store.waitingChanges.value >= 1)
    #expect(readiness.report.first?.reason?.contains("locked by another process") == true)
    other.stop()
    store.stop()
    let again = try CallStore(sqlite: path, records: folder.path + "/calls.jsonl", readiness: readiness, logger: logger)
    #expect(again.devices.count == 101 && again.devices.first { $0.key.user == "bob" } == device("bob", "phone", at: 99))
    again.stop()
  }
}
