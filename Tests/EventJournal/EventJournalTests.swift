import Foundation
import LineFiles
import Testing
import TrunklineBytes

@testable import EventJournal

@Suite struct EventJournalTests {
  private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("events-\(UUID().uuidString)").path

  private func entry(_ subject: String, kind: String = "call.started", bytes: Int = 10) -> EventJournal.Entry {
    .init(at: 1_000, kind: kind, subject: subject) { cursor in
      Array(#"{"id":"\#(cursor)","x":"\#(String(repeating: "x", count: bytes))"}"#.utf8)
    }
  }

  private func segments() -> [EventFolder.Segment] { EventFolder(path: folder).segments() }

  @Test func everyReaderGetsTheSameOctetsInOrder() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let journal = try EventJournal(folder: folder, mostBytes: 1 << 20, segmentBytes: 200)
    let reader = EventReader(folder: folder)
    #expect(reader.read(after: 0, most: 10).events.isEmpty)
    for number in 1...20 { try journal.append([entry("call \(number)"), entry("50%")]) }
    #expect(segments().count > 3)
    var all: [StoredEvent] = []
    while true {
      let (events, isGap) = reader.read(after: all.last?.position ?? 0, most: 3)
      #expect(!isGap)
      if events.isEmpty { break }
      all += events
    }
    #expect(all.map(\.position) == Array(1...40))
    #expect(all[0].subject == "call 1" && all[1].subject == "50%")
    #expect(String(decoding: all[39].json, as: UTF8.self).contains(#""id":"\#(journal.epoch)-40""#))
    // after the middle of a segment, by another reader; and a later event by the first one
    #expect(EventReader(folder: folder).read(after: 17, most: 1).events.map(\.position) == [18])
    try journal.append([entry("late")])
    #expect(reader.read(after: 40, most: 10).events.map(\.subject) == ["late"])
    #expect(reader.range == (1, 41))
  }

  @Test func aKilledProcessLeavesWholeLinesAndTheNextGoesOnBehindThem() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    var journal: EventJournal? = try EventJournal(folder: folder)
    try journal?.append([entry("a"), entry("b")])
    let epoch = try #require(journal).epoch
    journal = nil
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: segments()[0].path))
    try file.seekToEnd()
    try file.write(contentsOf: Data("3 1000 call.started c {\"half".utf8))
    try file.close()
    let next = try EventJournal(folder: folder)
    #expect(next.last == 2 && next.epoch == epoch)
    try next.append([entry("c")])
    #expect(EventReader(folder: folder).read(after: 0, most: 10).events.map(\.subject) == ["a", "b", "c"])
  }

  @Test func theOldestGoAndWhoWasTooSlowIsTold() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let journal = try EventJournal(folder: folder, mostBytes: 3_000, segmentBytes: 1_000)
    let slow = EventReader(folder: folder)
    for number in 1...100 {
      try journal.append([entry("\(number)", bytes: 100)])
      journal.trim(now: 0)
      if number == 2 { #expect(slow.read(after: 0, most: 1).events.map(\.position) == [1]) }
      #expect(segments().reduce(0) { $0 + $1.bytes } <= 3_000)
    }
    let (events, isGap) = EventReader(folder: folder).read(after: 5, most: 10)
    #expect(isGap)
    #expect(events[0].position > 60)
    // a reader whose open file was removed
    var (after, found) = (UInt64(1), false)
    for _ in 0..<100 {
      let (events, isGap) = slow.read(after: after, most: 10)
      found = found || isGap
      guard let last = events.last else { break }
      after = last.position
    }
    #expect(found && after == 100)
    // and by age: tomorrow every event is too old
    journal.trim(now: Int64(Date().timeIntervalSince1970 * 1_000) + 90_000_000)
    #expect(segments().count == 1)
  }

  @Test func whatCannotBeOneLineIsLeftOut() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let journal = try EventJournal(folder: folder)
    struct Fault: Error {}
    let written = try journal.append([
      .init(at: 1, kind: "k", subject: "s") { _ in throw Fault() },
      .init(at: 1, kind: "k", subject: "s") { _ in Array("{\n}".utf8) },
      .init(at: 1, kind: "k", subject: "s") { _ in [UInt8](repeating: 0x20, count: Limits.eventBytes + 1) },
      entry(""),
    ])
    #expect(written == 1)
    #expect(EventReader(folder: folder).read(after: 0, most: 9).events.map(\.position) == [1])
    #expect(throws: AppendLogError.self) { try EventJournal(folder: "/nowhere/at/all") }
  }

  @Test(arguments: [
    "", "-", "0123456-1", "0123456g-1", "01234567-", "01234567--1", "01234567-1-2", "01234567-99999999999999999999",
  ]
  )
  func cursorsThatAreNone(_ text: String) { #expect(EventCursor(text) == nil) }

  @Test func cursorsAreTheIdsOfEvents() {
    let cursor = EventCursor(epoch: "0123abcd", position: 17)
    #expect(EventCursor("\(cursor)") == cursor)
  }

  @Test func `a reader finds any position of a long segment, whatever the lengths of its lines, and the end`() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let journal = try EventJournal(folder: folder)
    for number in 1...400 {
      // every 50th has the maximum length of a line
      try journal.append([entry("\(number)", bytes: number % 50 == 0 ? Limits.eventBytes - 100 : 997 + number * 7)])
    }
    #expect(segments().count == 1 && segments()[0].bytes > 4 * Limits.readBytes)
    #expect(EventReader(folder: folder).range == (1, 400))
    // Around each of the longest lines, and between them.
    for after in UInt64(0)...400 where [0, 1, 49].contains(after % 50) || after % 11 == 0 {
      let look = EventReader(folder: folder).look(after: after, most: 1, entries: 1) { _, _ in true }
      #expect(look.events.map(\.position) == (after < 400 ? [after + 1] : []), "behind \(after)")
      #expect(!look.isGap)
    }
    // an incomplete last line is not an event, and a position in the future finds nothing
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: segments()[0].path))
    try file.seekToEnd()
    try file.write(contentsOf: Data("401 1000 call.started c {\"half".utf8))
    try file.close()
    #expect(EventReader(folder: folder).range == (1, 400))
    #expect(EventReader(folder: folder).look(after: 9_999, most: 1, entries: 1) { _, _ in true }.looked == 0)
  }

  @Test func `a look with a filter that matches nothing, or everything, ends at its bound and continues from there`() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let journal = try EventJournal(folder: folder, mostBytes: 1 << 20, segmentBytes: 20_000)
    for number in 1...1_000 { try journal.append([entry("\(number)", kind: number % 100 == 0 ? "rare" : "call.started")]) }
    for kind in ["none", "rare", "call.started"] {
      let reader = EventReader(folder: folder)
      var (after, found, looks) = (UInt64(0), 0, 0)
      while true {
        let look = reader.look(after: after, most: 50, entries: 64) { found, _ in found == kind }
        #expect(look.looked <= 64 && look.events.count <= 50 && !look.isGap)
        if look.looked == 0 { break }
        (after, found, looks) = (look.after, found + look.events.count, looks + 1)
        #expect(looks <= 1_000)
      }
      #expect(after == 1_000 && found == ["none": 0, "rare": 10, "call.started": 990][kind])
    }
  }

  @Test func `a process killed at any octet of a segment: positions continue, and every reader gets the same events`() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    do {
      let journal = try EventJournal(folder: folder, mostBytes: 1 << 20, segmentBytes: 400)
      for number in 1...17 { try journal.append([entry("\(number)", bytes: number)]) }
    }
    let newest = try #require(segments().last)
    let octets = try [UInt8](Data(contentsOf: URL(fileURLWithPath: newest.path)))
    #expect(segments().count > 2 && octets.count(where: { $0 == 0x0a }) > 1)
    for cut in 0...octets.count {
      try Data(octets[..<cut]).write(to: URL(fileURLWithPath: newest.path))
      let last = newest.first - 1 + UInt64(octets[..<cut].count { $0 == 0x0a })
      // one reader is at the end when the process dies, one begins in the middle afterwards, in another segment
      let early = EventReader(folder: folder)
      #expect(early.read(after: last, most: 9).events.isEmpty)
      let journal = try EventJournal(folder: folder, mostBytes: 1 << 20, segmentBytes: 400)
      #expect(journal.last == last && journal.bytes == segments().reduce(0) { $0 + $1.bytes }, "cut at \(cut)")
      try journal.append([entry("next", bytes: cut % 50)])
      for reader in [early, EventReader(folder: folder)] {
        let look = reader.read(after: last, most: 9)
        #expect(
          look.events.map(\.position) == [last + 1] && look.events.map(\.subject) == ["next"] && !look.isGap, "cut at \(cut)")
      }
      var (after, all) = (UInt64(0), [UInt64]())
      let late = EventReader(folder: folder)
      while let last = late.read(after: after, most: 5).events.last {
        (after, all) = (last.position, all + (after + 1...last.position))
      }
      #expect(all == Array(1...last + 1), "cut at \(cut)")
      for segment in segments() where segment.first > newest.first { unlink(segment.path) }
    }
  }
}
