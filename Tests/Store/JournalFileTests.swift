import CallFlow
import CallModel
import Foundation
import LineFiles
import Testing

@testable import Store

@Suite struct JournalFileTests {
  let folder: Folder
  var path: String { folder.path + "/a.started" }
  init() throws { folder = try Folder() }

  @Test func `lines survive the process, removed ones do not come back`() throws {
    let journal = try JournalFile(path: path)
    try journal.add([journalEntry(1), journalEntry(2), journalEntry(3)])
    try journal.remove([journalEntry(2).call])
    #expect(try JournalFile(path: path).lines() == [journalEntry(1), journalEntry(3)])
  }

  @Test func `half a line that a dying process left is cut off, and what is nonsense names no call`() throws {
    try JournalFile(path: path).add([journalEntry(1)])
    let whole = try folder.read("a.started")
    try (whole + "nonsense\n+{}\n-x\n+{\"call\":").write(toFile: path, atomically: true, encoding: .utf8)
    let journal = try JournalFile(path: path)
    #expect(try journal.lines() == [journalEntry(1)])
    try journal.add([journalEntry(2)])
    #expect(try JournalFile(path: path).lines() == [journalEntry(1), journalEntry(2)])
  }

  @Test func `a process killed at any octet leaves the calls of whole lines`() throws {
    do {
      let journal = try JournalFile(path: path)
      try journal.add([journalEntry(1), journalEntry(2)])
      try journal.change(adding: [journalEntry(3)], removing: [journalEntry(1).call])
    }
    let octets = Array(try folder.read("a.started").utf8)
    let states: [[UInt64]] = [[], [1], [1, 2], [2], [2, 3]]
    for cut in 0...octets.count {
      try Data(octets[..<cut]).write(to: URL(fileURLWithPath: path))
      let calls = states[octets[..<cut].count { $0 == 0x0a }]
      let journal = try JournalFile(path: path)
      #expect(try journal.lines() == calls.map { journalEntry($0) }, "cut at \(cut)")
      try journal.add([journalEntry(4)])
      #expect(try JournalFile(path: path).lines() == (calls + [4]).map { journalEntry($0) }, "cut at \(cut)")
    }
  }

  @Test func `the file stays small, however many calls there were`() throws {
    let journal = try JournalFile(path: path)
    try journal.add([journalEntry(0)])
    var most = 0
    for number in 1...20_000 as ClosedRange<UInt64> {
      try journal.change(adding: [journalEntry(number)], removing: number > 1 ? [journalEntry(number - 1).call] : [])
      if number % 500 == 0 { most = max(most, try size()) }
    }
    #expect(most < Limits.journalBytes + 1_000 * 300, "a line is some 200 octets")
    #expect(try JournalFile(path: path).lines() == [journalEntry(0), journalEntry(20_000)])
    try journal.remove([journalEntry(0).call, journalEntry(20_000).call])
    _ = try JournalFile(path: path)
    #expect(try size() == 0, "a start finds nothing to keep")
  }

  private func size() throws -> Int { try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? -1 }

  @Test func `only its owner reads it`() throws {
    try JournalFile(path: path).add([journalEntry(1)])
    #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
  }

  @Test(.enabled(if: FileManager.default.fileExists(atPath: "/dev/full")))
  func `a full disk is an error, and the line is not taken for stored`() throws {
    let journal = try JournalFile(path: "/dev/full")
    let error = #expect(throws: AppendLogError.self) { try journal.add([journalEntry(1)]) }
    #expect(error?.description == "cannot write the journal /dev/full: the disk is full")
    #expect(try journal.lines().isEmpty)
  }
}
