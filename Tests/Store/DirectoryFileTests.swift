import AppSessions
import Foundation
import Synchronization
import Testing
import TrunklineAppProtocol

@testable import Store

private let phone = DeviceKey(user: "alice", device: "phone")
private let now: Int64 = 1_790_000_000_000

/// Directories in their file: imports, versions, and what a device is sent of them.
@Suite struct DirectoryFileTests {
  private let folder: Folder
  private let file: DirectoryFile

  init() throws {
    folder = try Folder()
    file = try DirectoryFile(path: folder.path + "/a.db.directory")
  }

  private func list(_ contacts: [Contact], removing numbers: [Int64] = []) throws -> ContactList {
    var list = ContactList()
    for contact in contacts { try list.add(contact) }
    for number in numbers { try list.add(Contact(number), isRemoved: true) }
    try list.finish()
    return list
  }
  private func replace(_ contacts: [Contact], in scope: String = "user:alice", at time: Int64 = now) throws
    -> DirectoryFile.Change
  {
    try file.write(list(contacts), into: scope, replaces: true, now: time)
  }
  private func change(
    _ contacts: [Contact], removing numbers: [Int64] = [], in scope: String = "user:alice", at time: Int64 = now
  ) throws -> DirectoryFile.Change {
    try file.write(list(contacts, removing: numbers), into: scope, replaces: false, now: time)
  }
  @Test func `names are found by their words and numbers by their digits, and nothing in a text is a pattern`() throws {
    _ = try replace([
      Contact(15_550_000_001, label: "Ann Example"), Contact(15_550_000_002, label: "Joanna Müller"),
      Contact(15_550_000_003, label: "100 % cotton_shop"),
      Contact(15_550_000_004, isBlocked: true), Contact(4_930_123_456, label: "Öztürk, Ada"),
    ])
    _ = try replace(
      [Contact(15_550_000_001, label: "ann of the account"), Contact(4_420_000_000, label: "annex")], in: "account:work")
    func found(_ text: String, limit: Int? = nil) throws -> [String?] {
      try file.names(for: DirectoryFind(text: text, limit: limit), of: phone, accounts: ["work"]).map(\.n)
    }
    #expect(try found("ann") == ["Ann Example", "annex", "Joanna Müller"])
    #expect(try found("ANN", limit: 1) == ["Ann Example"])
    #expect(try found("müller jo") == ["Joanna Müller"] && found("MÜLLER").isEmpty == false)
    #expect(try found("ÖZTÜRK") == ["Öztürk, Ada"])
    #expect(try found("%") == ["100 % cotton_shop"] && found("_") == ["100 % cotton_shop"] && found("\\").isEmpty)
    #expect(try found("' OR 1=1 --").isEmpty && found("   ").isEmpty && found("\u{0}").isEmpty)
    #expect(try found("0 1234") == ["Öztürk, Ada"] && found("+1 (555) 000-0002") == ["Joanna Müller"] && found("12").isEmpty)
    #expect(
      try file.names(for: DirectoryFind(text: "ann"), of: phone, accounts: []).map(\.h) == ["+15550000001", "+15550000002"])
  }

  @Test func `a directory of 100,000 is searched to its last contact`() throws {
    var list = ContactList()
    for number in 1...100_000 { try list.add(Contact(15_550_000_000 + Int64(number), label: "Contact \(number)")) }
    try list.finish()
    _ = try file.write(list, into: "user:alice", replaces: true, now: now)
    let names = try file.names(for: DirectoryFind(text: "contact 99999", limit: 50), of: phone, accounts: [])
    #expect(names.map(\.h) == ["+15550099999"])
    #expect(try file.names(for: DirectoryFind(text: "contact"), of: phone, accounts: []).count == 20)
  }

  /// All pages of an answer.
  private func ask(_ have: Int? = nil, _ device: DeviceKey = phone, _ accounts: [String] = ["default"]) throws
    -> (version: Int, from: Int?, part: DirectoryPart, pages: Int)
  {
    var get = DirectoryGet(have: have)
    var whole = DirectoryPart(version: 0, block: [], unblock: [], identify: [], unidentify: [])
    var pages = 0
    while true {
      let found = try file.answer(.init(get), to: device, accounts: accounts, now: now)
      #expect(found.parts.count == found.answer.parts)
      for part in found.parts {
        #expect(part.version == found.answer.version && part.from == found.answer.from)
        whole.block? += part.block ?? []
        whole.unblock? += part.unblock ?? []
        whole.identify? += part.identify ?? []
        whole.unidentify? += part.unidentify ?? []
      }
      pages += 1
      guard let next = found.answer.next else { return (found.answer.version, found.answer.from, whole, pages) }
      (get.version, get.after) = (found.answer.version, next)
    }
  }

  private let ann = Contact(15_550_000_001, label: "Ann")
  private let spam = Contact(15_550_000_002, label: "Spam", isBlocked: true)
  private let unlabelled = Contact(49_301_234_567, isBlocked: true)

  @Test func `DIR-1, DIR-5: an import in any order comes back ascending, names and blocks apart; versions are times that grow`()
    throws
  {
    let first = try replace([unlabelled, spam, ann])
    #expect(first == .init(version: Int(now), entries: 3, added: 3, changed: 0, removed: 0))
    let told = try ask()
    #expect(told.version == Int(now) && told.from == nil)
    #expect(told.part.identify?.map(\.n) == [ann.number, spam.number] && told.part.block == [spam.number, unlabelled.number])
    #expect(try file.blocked(in: "user:alice") == [spam.number, unlabelled.number])
    #expect(try replace([ann, spam, unlabelled]).version == Int(now), "the same again is no change")
    #expect(try replace([ann], at: now - 5_000).version == Int(now) + 2, "a clock that went back")
    var all: [Contact] = []
    try file.forEach(in: "user:alice") { all.append($0) }
    #expect(all == [ann])
  }

  @Test func `a long write reports its progress: its thread is not reported as one that hangs`() throws {
    let signs = Mutex(0)
    file.onProgress.withLock { $0 = { signs.withLock { $0 += 1 } } }
    _ = try replace((0..<5_000).map { Contact(15_550_000_000 + Int64($0), isBlocked: true) })
    #expect(signs.withLock { $0 } == 5)
    _ = try replace([])
    #expect(signs.withLock { $0 } == 15)
  }

  @Test func `DIR-2: a device with a version gets the difference: names, blocks and removals`() throws {
    let first = try replace([ann, spam]).version
    _ = try ask()
    #expect(try ask(first).part.block == [] && ask(first).version == first)
    let second = try change([Contact(spam.number, label: "Bill"), unlabelled], removing: [ann.number]).version
    let told = try ask(first)
    #expect(told.version == second && told.from == first)
    #expect(told.part.identify == [.init(spam.number, "Bill")] && told.part.unidentify == [ann.number, unlabelled.number])
    #expect(told.part.block == [unlabelled.number] && told.part.unblock == [ann.number, spam.number])
    #expect(try ask(second).part.identify == [])
  }

  @Test func `a number that leaves one directory of a device stays with what the other contains`() throws {
    let account = Contact(ann.number, label: "Ann at work", isBlocked: true)
    _ = try replace([account], in: "account:default")
    _ = try replace([ann])
    let whole = try ask()
    #expect(whole.part.identify == [.init(ann.number, "Ann")] && whole.part.block == [ann.number])
    _ = try change([], removing: [ann.number])
    let told = try ask(whole.version)
    #expect(told.from == whole.version && told.part.identify == [.init(ann.number, "Ann at work")])
    #expect(told.part.block == [ann.number] && told.part.unidentify == [])
  }

  @Test func `other accounts make another version, and no difference to the one before`() throws {
    _ = try replace([ann])
    _ = try replace([spam], in: "account:work")
    let first = try ask()
    #expect(first.part.identify?.map(\.n) == [ann.number])
    #expect(try file.viewChanged(phone, accounts: ["default"], now: now) == nil)
    let since = try #require(try file.viewChanged(phone, accounts: ["default", "work"], now: now))
    #expect(since > first.version)
    let second = try ask(first.version, phone, ["default", "work"])
    #expect(second.version == since && second.from == nil && second.part.identify?.count == 2)
    #expect(try ask(since, phone, ["default", "work"]).part.identify == [])
  }

  @Test func `a version that nothing is known of is answered with the whole directory under a higher one`() throws {
    let version = try replace([ann]).version
    for have in [1, version - 1, version, version + 1_000_000] {
      let stranger = DeviceKey(user: "alice", device: "d\(have)")
      let told = try ask(have, stranger)
      #expect(told.from == nil && told.version > have && told.part.identify?.count == 1, "\(have)")
    }
    #expect(try ask(nil, DeviceKey(user: "bob", device: "x")).version == 0, "bob has no directory")
  }

  @Test func `many changes at once are not kept one by one: then the whole directory comes, on several pages`() throws {
    let first = try replace([ann]).version
    _ = try ask()
    let many = (0..<30_000).map { Contact(15_551_000_000 + Int64($0), label: "Name \($0)", isBlocked: $0 % 3 == 0) }
    #expect(try replace(many + [ann]).added == 30_000)
    let told = try ask(first)
    #expect(told.from == nil && told.part.identify?.count == 30_001 && told.part.block?.count == 10_000 && told.pages > 3)
    let numbers = told.part.identify?.map(\.n) ?? []
    #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 })
    let part = DirectoryPart(version: 1, identify: many.prefix(600).map { .init($0.number, String(repeating: "\"", count: 255)) })
    #expect(ServerFrame(.dirFull(part), re: .init(high: 1, low: 1)).encoded().count > 65_536, "so long are labels at most")
    _ = try replace(many.prefix(600).map { Contact($0.number, label: String(repeating: "\"", count: 255)) })
    var get = DirectoryGet()
    var seen = 0
    while true {
      let found = try file.answer(.init(get), to: phone, accounts: ["default"], now: now)
      for part in found.parts {
        #expect(ServerFrame(.dirFull(part), re: .init(high: 1, low: 1)).encoded().count <= 65_536)
        seen += part.identify?.count ?? 0
      }
      guard let next = found.answer.next else { break }
      (get.version, get.after) = (found.answer.version, next)
    }
    #expect(seen == 600)
  }

  @Test func `a long difference comes on several pages, each number once`() throws {
    var version = try replace([ann]).version
    _ = try ask()
    let first = version
    for block in 0..<3 {
      version = try change((0..<9_000).map { Contact(15_552_000_000 + Int64(block * 9_000 + $0), label: "x") }).version
    }
    let told = try ask(first)
    #expect(told.version == version && told.from == first && told.part.identify?.count == 27_000 && told.pages > 3)
    #expect(Set(told.part.identify?.map(\.n) ?? []).count == 27_000)
  }

  @Test func `the directory changes between two pages: the answer restarts under the new version`() throws {
    _ = try replace((0..<20_000).map { Contact(15_550_000_000 + Int64($0), label: "x") })
    let first = try file.answer(.init(DirectoryGet()), to: phone, accounts: [], now: now)
    let next = try #require(first.answer.next)
    let second = try change([Contact(15_550_000_000, label: "y")]).version
    let get = DirectoryGet(version: first.answer.version, after: next)
    let anew = try file.answer(.init(get), to: phone, accounts: [], now: now)
    #expect(anew.answer.version == second && anew.parts.first?.identify?.first == .init(15_550_000_000, "y"))
  }

  @Test func `another process's import is seen, and a file that is kept open there does not hinder answers`() throws {
    let stamp = try file.stamp()
    #expect(try file.stamp() == stamp)
    let other = try DirectoryFile(path: folder.path + "/a.db.directory")
    let version = try other.write(list([ann]), into: "user:alice", replaces: true, now: now).version
    #expect(try file.stamp() != stamp && file.versions() == ["user:alice": version])
    _ = try ask()
    let program = try OtherProgram(folder.path + "/a.db.directory")
    #expect(try ask(nil).part.identify?.count == 1)
    program.stop()
  }

  @Test func `a name that is too long, and more contacts than a directory holds, change nothing`() throws {
    _ = try replace([ann])
    #expect(throws: StoreError.self) {
      try file.write(list([spam]), into: "user:" + String(repeating: "x", count: 300), replaces: true, now: now)
    }
    #expect(try file.directories().map(\.name) == ["user:alice"])
    #expect(throws: StoreError.self) { try DirectoryFile(path: folder.path + "/none/x") }
    try "nonsense, and more of it than a header".write(toFile: folder.path + "/bad", atomically: true, encoding: .utf8)
    #expect(throws: StoreError.self) { try DirectoryFile(path: folder.path + "/bad") }
  }
}

/// What an import may contain, and what it may not.
@Suite struct ContactReaderTests {
  private func read(_ text: String, _ form: ContactReader.Form = .csv, removals: Bool = false, limit: Int = 10, step: Int = 7)
    throws
    -> [Contact]
  {
    var reader = ContactReader(form, acceptsRemovals: removals, limit: limit)
    let bytes = Array(text.utf8)
    for start in stride(from: 0, to: bytes.count, by: step) { try reader.read(bytes[start..<min(start + step, bytes.count)]) }
    let list = try reader.finish()
    return (0..<list.count).map { list.contact($0).contact }
  }

  @Test func `a list in any order, cut anywhere, with quotation marks, a BOM and CR LF`() throws {
    let text =
      "\u{feff}number,label,kind\r\n+15550000002,\"Miller, \"\"Bob\"\"\",\r\n15550000001,,block\r\n+4930123456,Zoë,block\r\n"
    for step in [1, 5, 1_000] {
      #expect(
        try read(text, step: step) == [
          Contact(4_930_123_456, label: "Zoë", isBlocked: true), Contact(15_550_000_001, isBlocked: true),
          Contact(15_550_000_002, label: "Miller, \"Bob\""),
        ])
    }
    let lines = #"{"number":"+15550000001","label":"Ann"}"# + "\n" + #"{"number":"4930123456","kind":"block","more":1}"# + "\n"
    #expect(try read(lines, .jsonLines) == [Contact(4_930_123_456, isBlocked: true), Contact(15_550_000_001, label: "Ann")])
    #expect(try read("", .jsonLines) == [])
  }

  private static let bad: [(text: String, line: Int, why: String)] = [
    ("", 1, "the file is empty; it begins with number,label,kind"),
    ("number,label\n", 1, "is not number,label,kind, but \"number,label\""),
    ("number,label,kind\n+15550000001,a,identify", 2, "ends without a line break: is the file whole?"),
    ("number,label,kind\n+15550000001,a\n", 2, "has 2 fields, not number,label,kind"),
    ("number,label,kind\n+15550000001,\"a,identify\n", 2, "a quotation mark is misplaced"),
    ("number,label,kind\n015550000001,a,\n", 2, "\"015550000001\" is not a number: + and 7 to 15 digits, country code first"),
    ("number,label,kind\n+1 555 000,a,\n", 2, "\"+1 555 000\" is not a number: + and 7 to 15 digits, country code first"),
    (
      "number,label,kind\n+1234567890123456,a,\n", 2,
      "\"+1234567890123456\" is not a number: + and 7 to 15 digits, country code first"
    ),
    ("number,label,kind\n+15550000001,,\n", 2, "+15550000001 is neither blocked nor has a label"),
    ("number,label,kind\n+15550000001,a,spam\n", 2, "\"spam\" is not a kind of contact"),
    ("number,label,kind\n+15550000001,,remove\n", 2, "\"remove\" is not a kind of contact"),
    ("number,label,kind\n+15550000001,a\u{7},\n", 2, "the label holds a control character"),
    ("number,label,kind\n+15550000001,\(String(repeating: "x", count: 256)),\n", 2, "the label has more than 255 bytes"),
    ("number,label,kind\n+15550000002,a,\n+15550000001,a,\n15550000002,b,\n", 4, "+15550000002 occurs twice, first in line 2"),
    ("number,label,kind\n" + (0..<11).map { "+1555000000\($0),a,\n" }.joined(), 12, "more than 10 contacts"),
    ("number,label,kind\n" + String(repeating: "x", count: 5_000), 2, "is longer than 4096 bytes"),
  ]

  @Test(arguments: 0..<bad.count) func `a wrong line is named, and nothing is taken`(row: Int) {
    let (text, line, why) = Self.bad[row]
    #expect(throws: ContactReader.Fault(line: line, why: why)) { try read(text) }
  }

  @Test func `bytes that are not UTF-8, and lines that are not JSON`() {
    var reader = ContactReader(.csv)
    #expect(throws: ContactReader.Fault(line: 2, why: "is not UTF-8")) {
      try reader.read(Array("number,label,kind\n".utf8) + [0x2b, 0xff, 0x0a])
    }
    for line in ["nonsense\n", "{}\n", "[1]\n", #"{"number":15550000001,"label":"a"}"# + "\n"] {
      #expect(throws: ContactReader.Fault.self) { try read(line, .jsonLines) }
    }
  }

  @Test func `ten million lines end at the limit, whatever follows`() throws {
    var reader = ContactReader(.csv, limit: 1_000)
    try reader.read("number,label,kind\n".utf8)
    var lines = 0
    #expect(throws: ContactReader.Fault(line: 1_002, why: "more than 1000 contacts")) {
      while lines < 10_000_000 {
        lines += 1
        try reader.read("+\(15_550_000_000 + lines),a,\n".utf8)
      }
    }
    #expect(lines == 1_001, "read no further than that")
  }
}
