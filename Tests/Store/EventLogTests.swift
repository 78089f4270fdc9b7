import AppSessions
import CallFlow
import EventJournal
import Foundation
import Testing

@testable import Store

/// Events beside journal entries and records: wherever a process dies, each call has both ends.
@Suite struct EventLogTests {
  private let folder: Folder
  private let store = Faulty()
  init() throws { folder = try Folder() }

  private func log() throws -> EventLog { try EventLog(.init(folder: folder.path + "/events", source: "/trunkline/test")) }
  private func writer(_ log: EventLog) -> StoreWriter {
    StoreWriter(journal: store, records: store, devices: MemoryDevices(), events: log)
  }
  private func events() -> [StoredEvent] { EventReader(folder: folder.path + "/events").read(after: 0, most: 1_000).events }
  private func kinds() -> [String] { events().map(\.kind) }
  private func began(_ number: UInt64) -> StoreWriter.Command {
    let line = journalEntry(number)
    return .event(
      .init(
        .callStarted, at: 1_000,
        .call(.init(call: line.call, direction: .incoming, trunk: "carrier", from: line.from, to: line.to))))
  }

  @Test func `an event is a CloudEvent, and the end of a call has its record`() throws {
    var writer = writer(try log())
    writer.handle(began(1))
    writer.handle(.ended(record(1)))
    writer.flush()
    #expect(writer.eventsWritten == 2 && kinds() == ["call.started", "call.ended"])
    let last = try #require(events().last)
    let event = try #require(JSONSerialization.jsonObject(with: Data(last.json)) as? [String: Any])
    #expect(event["specversion"] as? String == "1.0" && event["type"] as? String == "trunkline.call.ended")
    #expect(event["time"] as? String == "1970-01-01T00:00:01.000Z" && event["source"] as? String == "/trunkline/test")
    #expect((event["data"] as? [String: Any])?["call"] as? String == record(1).call.description)
  }

  @Test func `a process that died before the record: one record, one end, whichever was there`() throws {
    var first = writer(try log())
    for number in 1...3 as ClosedRange<UInt64> {
      first.handle(began(number))
      first.handle(.started(journalEntry(number)) { _ in })
    }
    first.flush()
    // 1 has neither; 2 has the event of its end; 3 has its record
    var told = record(2)
    told.end.detail = "told"
    _ = try log().append([try log().entry(told)])
    try store.append([record(3)])
    var next = writer(try log())
    #expect(try next.recover(nowMilliseconds: 9_000).map(\.call) == [journalEntry(1).call])
    #expect(store.sink.all.count == 3 && store.lines().isEmpty)
    #expect(store.sink.all.first { $0.call == journalEntry(2).call } == told)
    let ends = events().filter { $0.kind == "call.ended" }.map(\.subject)
    #expect(Set(ends) == Set((1...3).map { journalEntry($0).call.description }) && ends.count == 3)
    #expect(try next.recover(nowMilliseconds: 9_000).isEmpty)
    #expect(events().count == 6)
  }

  @Test func `with other nodes only those stay open that nobody has told of`() throws {
    var first = writer(try log())
    for number in 1...2 as ClosedRange<UInt64> { first.handle(.started(journalEntry(number)) { _ in }) }
    first.flush()
    try store.append([record(2)])
    var next = writer(try log())
    #expect(try next.inherit().map(\.call) == [journalEntry(1).call])
    #expect(kinds() == ["call.ended"] && store.lines() == [journalEntry(1)])
  }

  @Test func `a journal entry stays until the end of its call is told`() throws {
    var writer = writer(try log())
    writer.handle(.started(journalEntry(1)) { _ in })
    writer.flush()
    // nothing can be written there: a folder of the next segment's name is in its way
    let journal = folder.path + "/events"
    try FileManager.default.createDirectory(
      atPath: journal + "/00000000000000000001.events", withIntermediateDirectories: true)
    writer.handle(.ended(record(1)))
    writer.flush()
    #expect(writer.problem?.contains("event journal") == true)
    #expect(store.sink.all == [record(1)] && store.lines() == [journalEntry(1)])
    try FileManager.default.removeItem(atPath: journal + "/00000000000000000001.events")
    writer.flush()
    #expect(writer.problem == nil && kinds() == ["call.ended"] && store.lines().isEmpty)
  }
}
