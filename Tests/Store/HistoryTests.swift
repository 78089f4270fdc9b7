import AppSessions
import CallFlow
import CallModel
import Foundation
import Logging
import Synchronization
import Testing
import TrunklineAppProtocol
import TrunklinePlatform

@testable import Store

private let phone = DeviceKey(user: "alice", device: "phone")
private let tablet = DeviceKey(user: "alice", device: "tablet")

/// Calls of a user, made from records.
@Suite struct HistoryTests {
  private let folder: Folder
  private let file: DirectoryFile
  private let settings = HistorySettings()

  init() throws {
    folder = try Folder()
    file = try DirectoryFile(path: folder.path + "/a.db.directory")
  }

  private func record(
    _ number: UInt64, _ reason: EndReason, connected: Bool = false, device: String? = nil, outgoing: Bool = false,
    _ more: (inout CallRecord) -> Void = { _ in }
  ) -> CallRecord {
    var line = journalEntry(number, start: Int64(number) * 1_000)
    if outgoing { (line.direction, line.from, line.to) = (.outgoing, line.to, "+15557770000") }
    if connected { line.connect = line.start + 100 }
    var record = CallRecord(orphan: line, at: line.start + 500)
    record.end = .init(reason, by: .app)
    (record.device, record.account) = (device, "default")
    more(&record)
    return record
  }
  private func outcomes(_ device: DeviceKey) throws -> [HistoryEntry.Outcome] {
    try file.page(HistoryList(), of: device, accounts: []).calls.map(\.outcome)
  }

  @Test func `each end has its outcome, for the user who had it and for those it rang for, and each device sees its own`() throws
  {
    var diversion = CallRecord.Diversion(.noAnswer)
    diversion.user = "bob"
    var toNumber = CallRecord.Diversion(.noAnswer)
    toNumber.number = "+15558887777"
    let records = [
      record(1, .remoteHangup, connected: true, device: "phone"), record(2, .callerCancelled), record(3, .unanswered),
      record(4, .declined), record(5, .busy), record(6, .dnd), record(7, .blocked), record(8, .mediaFailed),
      record(9, .remoteHangup, connected: true) { $0.diversions = [toNumber] },
      record(10, .remoteHangup, connected: true, device: "desk") {
        ($0.user, $0.otherUsers, $0.diversions) = ("bob", ["alice"], [diversion])
      },
      record(11, .remoteHangup, connected: true, device: "desk") { ($0.user, $0.otherUsers) = ("bob", ["alice"]) },
      record(12, .callerCancelled) { ($0.user, $0.otherUsers) = ("bob", ["alice"]) },
      record(13, .localEnd, connected: true, device: "tablet", outgoing: true), record(14, .busy, outgoing: true),
      record(15, .localEnd, outgoing: true), record(16, .localEnd), record(17, .notFound) { $0.user = nil },
    ]
    #expect(Set(try file.add(records, settings).keys) == ["alice", "bob"])
    let expected: [HistoryEntry.Outcome] = [
      .answered, .missed, .missed, .declined, .busy, .filtered, .blocked, .failed, .diverted, .diverted, .answeredElsewhere,
      .missed,
      .answered, .busy, .cancelled, .declined,
    ]
    let seen = try outcomes(phone)
    #expect(seen.count == 16)
    for (index, outcome) in expected.enumerated() {
      let call = CallID(high: 1, low: UInt64(index + 1))
      let entry = try file.page(HistoryList(), of: phone, accounts: []).calls.first { $0.call == call }
      let isOther = index == 12
      #expect(entry?.outcome == (isOther ? .answeredElsewhere : outcome), "call \(index + 1)")
    }
    let mine = try file.page(HistoryList(), of: tablet, accounts: []).calls
    #expect(mine.first { $0.call == CallID(high: 1, low: 1) }?.outcome == .answeredElsewhere)
    #expect(mine.first { $0.call == CallID(high: 1, low: 13) }?.outcome == .answered)
    let bob = try file.page(HistoryList(), of: DeviceKey(user: "bob", device: "desk"), accounts: []).calls
    #expect(Set(bob.map(\.outcome)) == [.answered, .missed] && bob.count == 3)
  }

  @Test func `pages come newest first and end; a record that comes twice is one call; names are the directory's`() throws {
    let records = (1...120).map { record(UInt64($0), .callerCancelled) }
    _ = try file.add(records, settings)
    #expect(try file.add(records, settings).isEmpty)
    var list = ContactList()
    try list.add(Contact(15_550_000_001, label: "Ann"))
    try list.finish()
    _ = try file.write(list, into: "user:alice", replaces: true, now: 1)
    var (list2, seen, pages) = (HistoryList(limit: 50), [HistoryEntry](), 0)
    while true {
      let page = try file.page(list2, of: phone, accounts: [])
      seen += page.calls
      pages += 1
      guard let next = page.next else { break }
      list2.before = next
    }
    #expect(seen.count == 120 && pages == 3 && seen.map(\.id) == seen.map(\.id).sorted(by: >))
    #expect(seen.first?.peer == Handle(k: .phone, h: "+15550000001", n: "Ann") && seen.first?.acct == "default")
    #expect(try file.names(["+15550000001", "+1", "x", "+15550000009"], of: phone, accounts: []).map(\.n) == ["Ann"])
  }

  @Test func `the oldest calls go beyond the number of a user, and by age`() throws {
    let few = HistorySettings(keep: .seconds(100), perUser: 10)
    _ = try file.add((1...25).map { record(UInt64($0), .unanswered) } + [record(99, .unanswered) { $0.user = "bob" }], few)
    #expect(
      try file.page(HistoryList(), of: phone, accounts: []).calls.map { $0.start } == (16...25).reversed().map { $0 * 1_000 })
    #expect(try file.dropOld(few, now: 121_000) == 5, "those that ended before 21 s")
    #expect(try file.page(HistoryList(), of: phone, accounts: []).calls.count == 5)
    #expect(try file.add([record(40, .unanswered)], HistorySettings(perUser: 0)).isEmpty)
  }

  @Test func `what is erased of a user is gone, and only that`() throws {
    _ = try file.add([record(1, .unanswered), record(2, .unanswered) { $0.user = "bob" }], settings)
    var list = ContactList()
    try list.add(Contact(15_550_000_001, label: "Ann", isBlocked: true))
    try list.finish()
    for scope in ["user:alice", "account:default"] { _ = try file.write(list, into: scope, replaces: true, now: 5) }
    let before = try file.answer(.init(DirectoryGet()), to: phone, accounts: ["default"], now: 6).answer.version
    #expect(try file.erase(user: "alice", now: 7) == .init(calls: 1, contacts: 1, views: 1))
    #expect(try file.erase(user: "alice", now: 8) == .init())
    #expect(try outcomes(phone).isEmpty && outcomes(DeviceKey(user: "bob", device: "x")) == [.missed])
    #expect(try file.blocked(in: "user:alice").isEmpty && file.blocked(in: "account:default").count == 1)
    #expect(try #require(file.versions()["user:alice"]) > 5)
    let after = try file.answer(.init(DirectoryGet(have: before)), to: phone, accounts: ["default"], now: 9)
    #expect(after.answer.from == nil && after.answer.version > before)
    let bytes = try [UInt8](Data(contentsOf: URL(fileURLWithPath: folder.path + "/a.db.directory")))
    #expect(!bytes.isEmpty)
  }

  @Test
  func
    `the thread: records become calls that devices learn of, an import reaches devices and the call machine, a request is answered`()
    throws
  {
    let heard = Mutex<[SessionCommand]>([])
    let blocked = Mutex<[String: [Int64]]>([:])
    let service = try DirectoryService(path: folder.path + "/b.directory", history: settings, logger: Logger(label: "test"))
    try service.start(send: { command in heard.withLock { $0.append(command) } }) { scope, numbers in
      blocked.withLock { $0[scope] = numbers }
      return true
    }
    let session = SessionID("s")
    let tell: @Sendable (SessionCommand) -> Void = { command in heard.withLock { $0.append(command) } }
    #expect(!service.handle(.connected(phone, session, DeviceInfo(), resumed: false), send: tell), "control hears of it, too")
    service.written([record(1, .callerCancelled)])
    var list = ContactList()
    try list.add(Contact(15_550_000_001, label: "Ann", isBlocked: true))
    try list.finish()
    let imported = Mutex<DirectoryFile.Change?>(nil)
    let done = try EventDescriptor()
    service.handle(list, into: "account:default", replaces: true) { result in
      imported.withLock { $0 = try? result.get() }
      done.signal()
    }
    // a device that was not notified of the import may be answered before it
    #expect(done.wait(milliseconds: 30_000))
    let ask = RequestToken(device: phone, request: .init(high: 1, low: 1))
    #expect(service.handle(.request(phone, session, ask, .dirGet(DirectoryGet()), call: nil), send: tell))
    #expect(service.handle(.request(phone, session, ask, .histList(HistoryList()), call: nil), send: tell))
    #expect(!service.handle(.request(phone, session, ask, .deviceDel, call: nil), send: tell))
    service.stop()
    let version = try #require(imported.withLock { $0 }).version
    #expect(blocked.withLock { $0 } == ["account:default": [15_550_000_001]])
    let all = heard.withLock { $0 }
    #expect(all.contains(.directory(scope: "account:default", version: version)))
    #expect(all.contains(.notify(phone, .dirChanged(DirectoryChanged(version: version)))))
    #expect(all.contains(.notify(phone, .histChanged(HistoryChanged(id: 1)))))
    let part = DirectoryPart(version: version, block: [15_550_000_001], identify: [.init(15_550_000_001, "Ann")])
    #expect(all.contains(.notify(phone, .dirFull(part), re: ask.request)))
    #expect(
      all.contains { if case .notify(phone, .ok(let success), re: ask.request) = $0 { success.hist != nil } else { false } })
    #expect(service.counterNames.contains("trunkline_directory_contacts"))
  }

  /// The thread does not run: everything waits.
  @Test
  func `a user has a share of the queue and is refused in words beyond it; others' requests and sessions that come have room`()
    throws
  {
    let heard = Mutex<[SessionCommand]>([])
    let service = try DirectoryService(path: folder.path + "/c.directory", history: settings, logger: Logger(label: "test"))
    let tell: @Sendable (SessionCommand) -> Void = { command in heard.withLock { $0.append(command) } }
    let others = DeviceKey(user: "bob", device: "x")
    for number in 0..<200 as Range<UInt64> {
      let ask = RequestToken(device: phone, request: .init(high: 1, low: number))
      #expect(service.handle(.request(phone, SessionID("s"), ask, .dirGet(DirectoryGet()), call: nil), send: tell))
    }
    #expect(heard.withLock { $0.count } == 200 - Limits.directoryPerUser)
    #expect(
      heard.withLock { $0 }.allSatisfy {
        if case .notify(phone, .err(let failure), _) = $0 { failure.code == .overload } else { false }
      })
    let ask = RequestToken(device: others, request: .init(high: 2, low: 1))
    #expect(service.handle(.request(others, SessionID("t"), ask, .dirGet(DirectoryGet()), call: nil), send: tell))
    _ = service.handle(.connected(phone, SessionID("s"), DeviceInfo(), resumed: false), send: tell)
    #expect(heard.withLock { $0.count } == 200 - Limits.directoryPerUser, "neither was refused")
    #expect(service.queue.depth() == Limits.directoryPerUser + 2)
  }

  @Test func `devices with the same directories get one answer, which is made once for each version`() throws {
    let file = try DirectoryFile(path: folder.path + "/d.directory")
    func take(_ label: String) throws {
      var list = ContactList()
      for number in 0..<3_000 { try list.add(Contact(15_550_000_000 + Int64(number), label: "\(label) \(number)")) }
      try list.finish()
      _ = try file.write(list, into: "user:alice", replaces: true, now: 5)
    }
    func ask(_ device: String) throws -> [DirectoryPart] {
      try file.answer(.init(DirectoryGet()), to: DeviceKey(user: "alice", device: device), accounts: ["default"], now: 6).parts
    }
    try take("Ann")
    let first = try ask("d0")
    for number in 1..<16 { #expect(try ask("d\(number)") == first) }
    #expect(file.answers.withLock { $0.hits } == 15)
    try take("Bob")
    #expect(try ask("d0").first?.identify?.first?.l == "Bob 0" && file.answers.withLock { $0.hits } == 15)
  }

  @Test func `a store reports records once they are in their file, orphans too`() throws {
    let told = Mutex<[CallID]>([])
    let path = folder.path + "/store.db"
    let journal = try JournalFile(path: path + ".started")
    try journal.add([journalEntry(1)])
    let store = try CallStore(
      sqlite: path, records: folder.path + "/calls.jsonl", readiness: .init(), logger: Logger(label: "test"),
      written: { records in told.withLock { $0 += records.map(\.call) } })
    store.end(newRecord(2))
    store.stop()
    #expect(told.withLock { $0 } == [CallID(high: 1, low: 1), CallID(high: 1, low: 2)])
  }
}

private func newRecord(_ number: UInt64) -> CallRecord { CallRecord(orphan: journalEntry(number), at: 1_000) }

extension DirectoryService {
  fileprivate var counterNames: [String] { metrics.map(\.name) }
}
