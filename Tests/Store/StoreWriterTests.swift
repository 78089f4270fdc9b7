import AppSessions
import CallFlow
import CallModel
import Devices
import Testing

@testable import Store

@Suite struct StoreWriterTests {
  let store = Faulty()
  let confirmed = Confirmations()

  func started(_ number: UInt64) -> StoreWriter.Command { .started(journalEntry(number)) { [confirmed] in confirmed.note($0) } }

  @Test func `a line is confirmed once it is stored, and gone once its call has a record`() {
    var writer = StoreWriter(journal: store, records: store, devices: MemoryDevices())
    writer.handle(started(1))
    writer.handle(started(2))
    #expect(confirmed.calls.isEmpty)
    writer.flush()
    #expect(confirmed.calls == [journalEntry(1).call, journalEntry(2).call])
    writer.handle(.ended(record(1)))
    writer.flush()
    #expect(store.sink.all == [record(1)])
    #expect(store.lines() == [journalEntry(2)])
    #expect(writer.problem == nil)
  }

  @Test func `removals wait for the next lines, or until the store is idle`() {
    var writer = StoreWriter(journal: store, records: store, devices: MemoryDevices())
    writer.handle(started(1))
    writer.flush(isIdle: false)
    writer.handle(.ended(record(1)))
    writer.flush(isIdle: false)
    #expect(store.sink.all == [record(1)])
    #expect(store.lines() == [journalEntry(1)] && writer.hasRemovals)
    writer.handle(started(2))
    writer.flush(isIdle: false)
    #expect(store.lines() == [journalEntry(2)] && !writer.hasRemovals)
    writer.handle(.ended(record(2)))
    writer.flush(isIdle: false)
    writer.flush()
    #expect(store.lines().isEmpty && !writer.hasRemovals)
  }

  @Test func `orphans of a killed process get one record gatewayRestart`() throws {
    try store.add([journalEntry(1), journalEntry(2)])
    try store.append([record(2)])  // died between record and removal
    var writer = StoreWriter(journal: store, records: store, devices: MemoryDevices())
    #expect(try writer.recover(nowMilliseconds: 5_000).count == 1)
    #expect(store.sink.all.map(\.call) == [record(2).call, record(1).call])
    #expect(store.sink.all.last?.end.reason == .gatewayRestart)
    #expect(store.sink.all.last?.times["ended"] == 5_000)
    #expect(store.lines().isEmpty)
    #expect(try writer.recover(nowMilliseconds: 6_000).isEmpty)
  }

  @Test func `a call that was connected when its process died keeps when that was`() throws {
    var writer = StoreWriter(journal: store, records: store, devices: MemoryDevices())
    writer.handle(started(1))
    writer.flush()
    var line = journalEntry(1)
    line.connect = 2_000
    writer.handle(.started(line) { _ in })
    writer.flush()
    var next = StoreWriter(journal: store, records: store, devices: MemoryDevices())
    #expect(try next.recover(nowMilliseconds: 5_000).count == 1)
    let record = try #require(store.sink.all.last)
    #expect(record.times == ["start": 1, "connected": 2_000, "ended": 5_000])
    #expect(record.connectedMs == 3_000 && record.end == .init(.gatewayRestart, by: .gateway, sip: 200))
  }

  @Test func `records wait while the file is full and all go out when it is not`() {
    var writer = StoreWriter(journal: store, records: store, devices: MemoryDevices())
    store.broken.withLock { $0.records = true }
    for number in 1...3 as ClosedRange<UInt64> {
      writer.handle(started(number))
      writer.handle(.ended(record(number)))
      writer.flush()
      #expect(writer.problem == "the disk is full")
    }
    #expect(writer.waitingRecords == 3)
    #expect(store.lines().count == 3, "the journal keeps the calls: a kill now loses none")
    store.broken.withLock { $0.records = false }
    writer.flush()
    #expect(writer.problem == nil)
    #expect(store.sink.all.map(\.call) == (1...3).map { record($0).call })
    #expect(store.lines().isEmpty)
  }

  @Test func `a broken journal holds up no record and confirms nothing`() {
    var writer = StoreWriter(journal: store, records: store, devices: MemoryDevices())
    store.broken.withLock { $0.journal = true }
    writer.handle(started(1))
    writer.handle(started(2))
    writer.handle(.ended(record(1)))
    writer.flush()
    #expect(writer.problem == "journal is broken")
    #expect(store.sink.all == [record(1)])
    #expect(confirmed.calls.isEmpty)
    store.broken.withLock { $0.journal = false }
    writer.flush()
    #expect(confirmed.calls == [journalEntry(2).call])
    #expect(store.lines() == [journalEntry(2)])
  }

  @Test func `ten thousand records wait, the next are counted as lost`() {
    var writer = StoreWriter(journal: store, records: store, devices: MemoryDevices())
    store.broken.withLock { $0.records = true }
    for number in 0..<UInt64(Limits.waitingRecords + 5) { writer.handle(.ended(record(number))) }
    #expect(writer.waitingRecords == 10_000)
    #expect(writer.popLost() == 5)
    #expect(writer.popLost() == 0)
    store.broken.withLock { $0.records = false }
    writer.flush()
    #expect(store.sink.all.count == 10_000)
  }

  @Test func `of a device only its last state waits, and a failing device store holds up no record`() throws {
    let devices = FaultyDevices()
    var writer = StoreWriter(journal: store, records: store, devices: devices)
    devices.isBroken.withLock { $0 = true }
    for number in 1...50 as ClosedRange<Int64> { writer.handle(.devices([.stored(device("alice", "phone", at: number))])) }
    writer.handle(.devices([.stored(device("bob", "phone")), .removed(DeviceKey(user: "bob", device: "phone"))]))
    writer.handle(.ended(record(1)))
    writer.flush()
    #expect(writer.problem == "the disk is full" && writer.waitingChanges == 2)
    #expect(store.sink.all == [record(1)])
    devices.isBroken.withLock { $0 = false }
    writer.flush()
    #expect(writer.problem == nil && writer.waitingChanges == 0)
    #expect(try devices.inner.all() == [device("alice", "phone", at: 50)])
  }
}
