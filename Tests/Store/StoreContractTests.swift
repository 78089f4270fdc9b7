import AppSessions
import CallFlow
import Devices
import PushPolicy
import Testing

@testable import Store

/// What every journal and every sink must do; a new store adds a case to `kinds`.
@Suite struct StoreContractTests {
  enum Kind: String, CaseIterable { case memory, file }

  func journal(_ kind: Kind, _ folder: Folder) throws -> any Journal {
    switch kind {
    case .memory: MemoryJournal()
    case .file: try JournalFile(path: folder.path + "/trunkline.db.started")
    }
  }
  func sink(_ kind: Kind, _ folder: Folder) throws -> any RecordSink {
    kind == .memory ? MemoryRecords() : try RecordFile(path: folder.path + "/calls.jsonl")
  }

  @Test(arguments: Kind.allCases)
  func `a journal holds lines until they are removed, oldest first`(kind: Kind) throws {
    let folder = try Folder()
    let journal = try journal(kind, folder)
    try journal.add([journalEntry(2), journalEntry(1)])
    try journal.add([journalEntry(3)])
    #expect(try journal.lines() == [journalEntry(1), journalEntry(2), journalEntry(3)])
    try journal.remove([journalEntry(2).call, journalEntry(9).call])
    #expect(try journal.lines() == [journalEntry(1), journalEntry(3)])
  }

  @Test(arguments: Kind.allCases)
  func `what is removed and what is added can come in one step`(kind: Kind) throws {
    let folder = try Folder()
    let journal = try journal(kind, folder)
    try journal.change(adding: [journalEntry(1), journalEntry(2)], removing: [])
    try journal.change(adding: [journalEntry(3)], removing: [journalEntry(1).call, journalEntry(9).call])
    #expect(try journal.lines() == [journalEntry(2), journalEntry(3)])
    try journal.change(adding: [], removing: [journalEntry(2).call, journalEntry(3).call])
    #expect(try journal.lines().isEmpty)
  }

  @Test(arguments: Kind.allCases) func `a line given twice is one line`(kind: Kind) throws {
    let folder = try Folder()
    let journal = try journal(kind, folder)
    try journal.add([journalEntry(1), journalEntry(1)])
    try journal.add([journalEntry(1, start: 7)])
    #expect(try journal.lines() == [journalEntry(1, start: 7)])
  }

  @Test(arguments: Kind.allCases) func `a sink knows the calls it has records of`(kind: Kind) throws {
    let folder = try Folder()
    let sink = try sink(kind, folder)
    try sink.append([record(1), record(2)])
    #expect(try sink.recorded(among: [record(1).call, record(3).call]) == [record(1).call: record(1)])
    #expect(try sink.recorded(among: []).isEmpty)
  }

  func devices(_ kind: Kind, _ folder: Folder) throws -> any LocalDeviceStore {
    kind == .memory ? MemoryDevices() : SQLiteDevices(try SQLiteFile(path: folder.path + "/trunkline.db"))
  }

  @Test(arguments: Kind.allCases) func `TOK-5: a device store holds each device as it was last stored, until it is removed`(
    kind: Kind
  ) throws {
    let folder = try Folder()
    let store = try devices(kind, folder)
    #expect(try store.all().isEmpty)
    var phone = device("alice", "phone", at: 7)
    (phone.platform, phone.model, phone.accounts, phone.revokedAt) = ("ios", "O'Neil \u{1F4DE}", ["a1", "a2"], 12)
    (phone.rings, phone.doNotDisturb, phone.lastSeen) = (false, true, 11)
    phone.bindings.append(
      PushBinding(
        PushTarget(.webPush, token: #"{"endpoint":"https://x"}"#, environment: .sandbox, topic: "t", sealKey: [0, 1, 255]),
        registeredAt: 9,
        isUsable: false))
    try store.apply([.stored(device("alice", "phone")), .stored(device("bob", "phone", at: 3)), .stored(phone)])
    #expect(try store.all() == [device("bob", "phone", at: 3), phone])
    phone.bindings.removeFirst()
    try store.apply([
      .stored(phone), .removed(DeviceKey(user: "bob", device: "phone")), .removed(DeviceKey(user: "x", device: "y")),
    ])
    #expect(try store.all() == [phone])
    try store.apply([.removed(phone.key), .stored(device("alice", "phone", at: 20))])
    #expect(try store.all() == [device("alice", "phone", at: 20)])
  }

  @Test(arguments: Kind.allCases) func `a device store gives a user's devices, the first seen first`(kind: Kind) throws {
    let folder = try Folder()
    let store = try devices(kind, folder)
    try store.apply([
      .stored(device("alice", "tablet", at: 1)), .stored(device("alice", "phone", at: 5)),
      .stored(device("alice2", "phone", at: 3)),
    ])
    #expect(try store.devices(of: "alice") == [device("alice", "tablet", at: 1), device("alice", "phone", at: 5)])
    #expect(try store.devices(of: "alice2") == [device("alice2", "phone", at: 3)])
    #expect(try store.devices(of: "ali").isEmpty && store.devices(of: "").isEmpty)
  }

  @Test(arguments: Kind.allCases) func `pages of a device store hold each user once and whole`(kind: Kind) throws {
    let folder = try Folder()
    let store = try devices(kind, folder)
    let users = ["Zoe", "alice", "bob", "\u{e4}rger", "\u{1F4DE}"]
    try store.apply(users.reversed().flatMap { user in [.stored(device(user, "b", at: 9)), .stored(device(user, "a", at: 10))] })
    var (seen, last): ([String], String?) = ([], nil)
    while true {
      let page = try store.page(after: last, users: 2)
      guard let end = page.last?.key.user else { break }
      #expect(Set(page.map(\.key.user)).count <= 2)
      seen += page.map { $0.key.user + $0.key.device }
      last = end
    }
    #expect(seen == users.flatMap { [$0 + "b", $0 + "a"] })
    #expect(try store.all().map(\.firstSeen) == users.map { _ in 9 } + users.map { _ in 10 })
  }
}
