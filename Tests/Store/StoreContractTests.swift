import CallFlow
@testable import Store
import Testing

/// What every journal and every sink must do; a new store adds a case to `kinds`.
@Suite struct StoreContractTests {
  enum Kind: String, CaseIterable { case memory, file }

  func journal(_ kind: Kind, _ folder: Folder) throws -> any Journal {
    kind == .memory ? MemoryJournal() : try SQLiteJournal(path: folder.path + "/trunkline.db")
  }
  func sink(_ kind: Kind, _ folder: Folder) throws -> any RecordSink {
    kind == .memory ? MemoryRecords() : try RecordFile(path: folder.path + "/calls.jsonl")
  }

  @Test(arguments: Kind.allCases) func `a journal holds lines until they are removed, oldest first`(kind: Kind) throws {
    let folder = try Folder()
    let journal = try journal(kind, folder)
    try journal.add([startLine(2), startLine(1)])
    try journal.add([startLine(3)])
    #expect(try journal.lines() == [startLine(1), startLine(2), startLine(3)])
    try journal.remove([startLine(2).call, startLine(9).call])
    #expect(try journal.lines() == [startLine(1), startLine(3)])
  }

  @Test(arguments: Kind.allCases) func `a line given twice is one line`(kind: Kind) throws {
    let folder = try Folder()
    let journal = try journal(kind, folder)
    try journal.add([startLine(1), startLine(1)])
    try journal.add([startLine(1, start: 7)])
    #expect(try journal.lines() == [startLine(1, start: 7)])
  }

  @Test(arguments: Kind.allCases) func `a sink knows the calls it has records of`(kind: Kind) throws {
    let folder = try Folder()
    let sink = try sink(kind, folder)
    try sink.append([record(1), record(2)])
    #expect(try sink.recorded(among: [record(1).call, record(3).call]) == [record(1).call])
    #expect(try sink.recorded(among: []) == [])
  }
}
