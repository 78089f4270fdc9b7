import CallFlow
import CallModel
import Foundation
import JSONWebToken
import LineFiles
import Testing

@testable import Store

@Suite struct StoreFilesTests {
  @Test func `a second process on the same store is told so`() throws {
    let folder = try Folder()
    let first = try SQLiteFile(path: folder.path + "/a.db")
    let error = #expect(throws: StoreError.self) { try SQLiteFile(path: folder.path + "/a.db") }
    #expect(
      error?.description == "the store is in use by another process with process id \(getpid()) (lock \(folder.path)/a.db.lock); "
        + "each gateway needs its own store.sqlite")
    _ = first
  }

  @Test func `a store that cannot be opened says why`() throws {
    let folder = try Folder()
    let missing = #expect(throws: StoreError.self) { try SQLiteFile(path: folder.path + "/no/a.db") }
    #expect(missing?.description == "cannot open \(folder.path)/no/a.db.lock: No such file or directory")
    try "this is no database, however long one looks at it, and it is long enough for a header".write(
      toFile: folder.path + "/b.db", atomically: true, encoding: .utf8)
    let strange = #expect(throws: StoreError.self) { try SQLiteFile(path: folder.path + "/b.db") }
    #expect(strange?.description == "cannot open the store \(folder.path)/b.db: the file is not a SQLite database")
  }

  @Test(arguments: 1..<SQLiteFile.steps.count) func `a file of an earlier version is migrated`(version: Int) throws {
    let folder = try Folder()
    let path = folder.path + "/a.db"
    _ = try SQLiteFile(path: path, steps: Array(SQLiteFile.steps.prefix(version)))
    let file = try SQLiteFile(path: path)
    let phone = device("alice", "phone")
    try SQLiteDevices(file).apply([.stored(phone)])
    #expect(try SQLiteDevices(file).all() == [phone])
  }

  @Test func `grants of login tokens survive the process, and what is in the way is passed over`() throws {
    let folder = try Folder()
    let path = folder.path + "/a.db"
    var grant = TokenGrant(numbers: ["+15551230001"], name: "Alice", maxCalls: 2, issuedAt: 1_700_000_000)
    grant.diversions["busy"] = .init(user: "bob")
    let alice = UserGrants.Entry(user: "alice", grant: grant, seen: 7)
    let bob = UserGrants.Entry(user: "bob", grant: TokenGrant(), seen: 8)
    do {
      let file = try SQLiteFile(path: path)
      let store = SQLiteGrants(file)
      try store.apply([.stored(bob), .stored(UserGrants.Entry(user: "alice", grant: TokenGrant(), seen: 1))])
      try store.apply([.stored(alice), .removed(user: "bob"), .removed(user: "nobody")])
      try file.write("a claim of tomorrow") {
        try $0.execute(sql: "INSERT INTO token_grant VALUES ('carol', '{\"faxes\":[]}', 1, 1)")
      }
    }
    #expect(try SQLiteGrants(SQLiteFile(path: path)).grants() == [alice])
  }

  @Test func `a grant waits for a store that cannot be written, and only its last state`() throws {
    let folder = try Folder()
    let file = try SQLiteFile(path: folder.path + "/a.db")
    let (memory, store) = (Faulty(), SQLiteGrants(file))
    var writer = StoreWriter(journal: memory, records: memory, devices: MemoryDevices(), grants: store)
    writer.handle(.grants([.stored(.init(user: "alice", grant: TokenGrant(numbers: ["1"]), seen: 1))]))
    writer.handle(.grants([.stored(.init(user: "alice", grant: TokenGrant(numbers: ["2"]), seen: 2))]))
    #expect(writer.waitingChanges == 1)
    writer.flush()
    #expect(writer.waitingChanges == 0 && writer.problem == nil)
    #expect(try store.grants().map(\.grant.numbers) == [["2"]])
  }

  @Test func `a file of a later version is left alone`() throws {
    let folder = try Folder()
    let path = folder.path + "/a.db"
    _ = try SQLiteFile(path: path, steps: SQLiteFile.steps + [("of tomorrow", { @Sendable _ in })])
    let error = #expect(throws: StoreError.self) { try SQLiteFile(path: path) }
    #expect(
      error?.description
        == "cannot open the store \(path): a later version of trunkline wrote it: use that version, or another file "
        + "for store.sqlite")
  }

  @Test func `a record is one line of JSON that reads back`() throws {
    let folder = try Folder()
    try RecordFile(path: folder.path + "/calls.jsonl").append([record(1), record(2)])
    let lines = try folder.read("calls.jsonl").split(separator: "\n")
    #expect(try lines.map { try JSONDecoder().decode(CallRecord.self, from: Data($0.utf8)) } == [record(1), record(2)])
    #expect(lines.first?.contains("\"reason\":\"gatewayRestart\"") == true)
    #expect(lines.first?.contains("\"sipCallId\":\"call-1@carrier\"") == true)
  }

  @Test func `half a line that a dying process left is cut off`() throws {
    let folder = try Folder()
    try "{\"call\":1}\n{\"call\":".write(toFile: folder.path + "/calls.jsonl", atomically: true, encoding: .utf8)
    _ = try RecordFile(path: folder.path + "/calls.jsonl")
    #expect(try folder.read("calls.jsonl") == "{\"call\":1}\n")
  }

  @Test func `a process killed at any octet leaves whole records, which a start finds`() throws {
    let folder = try Folder()
    let path = folder.path + "/calls.jsonl"
    try RecordFile(path: path).append([record(1), record(2)])
    let octets = Array(try folder.read("calls.jsonl").utf8)
    for cut in 0...octets.count {
      try Data(octets[..<cut]).write(to: URL(fileURLWithPath: path))
      let whole = octets[..<cut].count { $0 == 0x0a }
      let file = try RecordFile(path: path)
      try file.append([record(3)])
      let found = try file.recorded(among: [record(1).call, record(2).call, record(3).call])
      #expect(Set(found.keys) == Set((([1, 2] as [UInt64]).prefix(whole) + [3]).map { record($0).call }), "cut at \(cut)")
    }
  }

  @Test func `a file that was moved away is made anew`() throws {
    let folder = try Folder()
    let file = try RecordFile(path: folder.path + "/calls.jsonl")
    try file.append([record(1)])
    try FileManager.default.moveItem(atPath: folder.path + "/calls.jsonl", toPath: folder.path + "/calls.1")
    try file.append([record(2)])
    #expect(try folder.read("calls.1").split(separator: "\n").count == 1)
    #expect(try folder.read("calls.jsonl").split(separator: "\n").count == 1)
  }

  @Test(.enabled(if: FileManager.default.fileExists(atPath: "/dev/full")))
  func `a full disk is an error that leaves nothing behind`() throws {
    let file = try RecordFile(path: "/dev/full")
    let error = #expect(throws: AppendLogError.self) { try file.append([record(1)]) }
    #expect(error?.description == "cannot write the records file /dev/full: the disk is full")
  }
}
