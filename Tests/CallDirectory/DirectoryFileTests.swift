import Foundation
import Testing
import TrunklineCallDirectory

/// The directory file: which bytes are written, and which files are refused.
@Suite struct DirectoryFileTests {
  private func error(_ body: () throws(DirectoryError) -> Void) -> DirectoryError? {
    do throws(DirectoryError) {
      try body()
      return nil
    } catch { return error }
  }
  private func refusal(_ bytes: [UInt8]) throws -> DirectoryError? {
    let rig = try Rig()
    try rig.put(bytes, rig.current())
    return error { () throws(DirectoryError) in try rig.store.verify(rig.name) }
  }
  private func damage(_ bytes: [UInt8]) throws -> DirectoryError.Damage? {
    guard case .damaged("example.app.directory1.current", let damage)? = try refusal(bytes) else { return nil }
    return damage
  }
  /// Two shared labels, three blocked and three identified numbers.
  private static var whole: FileCraft {
    var craft = FileCraft()
    craft.version = 7
    craft.shared = [FileCraft.label("Bank"), FileCraft.label("Spam")]
    craft.blocked = [15_550_000_001, 1, 2].flatMap { FileCraft.varint($0) }
    craft.identified =
      FileCraft.varint(15_550_000_001) + [1] + FileCraft.varint(1) + [2] + FileCraft.varint(300) + [0] + FileCraft.label("Ärztin")
    (craft.blockedCount, craft.identifiedCount) = (3, 3)
    return craft
  }

  @Test func `a file made by the format's table is loaded as the table states`() throws {
    let rig = try Rig()
    try rig.put(Self.whole.bytes(), rig.current())
    #expect(try rig.store.verify(rig.name) == 7 && rig.store.version == 7)
    #expect(rig.reload() == nil)
    var model = Model()
    model.blocked = [15_550_000_001, 15_550_000_002, 15_550_000_004]
    model.labels = [15_550_000_001: "Bank", 15_550_000_002: "Spam", 15_550_000_302: "Ärztin"]
    #expect(model.differences(rig) == [])
  }

  @Test func `the store writes exactly the format's table: labels that repeat once, the most frequent first`() throws {
    let rig = try Rig()
    let entries: [DirectoryEntry] = [
      .labelled(9, "Spam"), .labelled(2, "Bank"), .blocked(2), .labelled(1, "Spam"), .labelled(400, "Ärztin"),
      .labelled(3, "Bank"),
      .labelled(7, "Spam"), .blocked(1),
    ]
    try rig.store.replace(with: entries, version: 9)
    var craft = FileCraft()
    craft.version = 9
    craft.shared = [FileCraft.label("Spam"), FileCraft.label("Bank")]
    craft.blocked = [15_550_000_001, 1].flatMap { FileCraft.varint($0) }
    craft.identified =
      FileCraft.varint(15_550_000_001) + [1, 1, 2, 1, 2, 4, 1, 2, 1] + FileCraft.varint(391) + [0] + FileCraft.label("Ärztin")
    (craft.blockedCount, craft.identifiedCount) = (2, 6)
    #expect(try rig.bytes(rig.current()) == craft.bytes())
    #expect(try rig.files() == ["example.app.directory1.current"], "no temporary file stays")
  }

  @Test func `an empty directory is a file of 64 bytes`() throws {
    let rig = try Rig()
    let summary = try rig.store.replace(with: [])
    #expect(summary.version == 1 && summary.blocked == 0 && summary.identified == 0 && summary.entries == [0])
    #expect(try rig.bytes(rig.current()).count == 64 && rig.reload() == nil)
  }

  @Test func `a missing file, a folder, and a file of another kind or format are refused by name`() throws {
    let rig = try Rig()
    #expect(error { () throws(DirectoryError) in try rig.store.verify(rig.name) } == .missing("example.app.directory1.current"))
    try FileManager.default.createDirectory(atPath: rig.current(), withIntermediateDirectories: true)
    #expect(
      error { () throws(DirectoryError) in try rig.store.verify(rig.name) }
        == .damaged("example.app.directory1.current", .notADirectory))
    #expect(try damage([]) == .tooShort)
    #expect(try damage(Array("SQLite format 3".utf8) + [UInt8](repeating: 0, count: 100)) == .notADirectory)
    var craft = Self.whole
    craft.format = 2
    #expect(try refusal(craft.bytes()) == .formatVersion(2))
  }

  @Test func `a file that is cut anywhere, or longer than it says, is refused`() throws {
    let whole = Self.whole.bytes()
    for length in whole.indices { #expect(try damage(Array(whole[..<length])) == (length < 64 ? .tooShort : .length)) }
    #expect(try damage(whole + [0]) == .length)
    #expect(try damage(whole) == nil)
  }

  @Test func `one changed bit anywhere is seen`() throws {
    let whole = Self.whole.bytes()
    for position in whole.indices {
      var bytes = whole
      bytes[position] ^= 0x10
      #expect(try refusal(bytes) != nil, "byte \(position)")
    }
  }

  @Test func `counts and lengths that the file's size does not bear are refused, whatever the checksum says`() throws {
    let changes: [(DirectoryError.Damage, (inout FileCraft) -> Void)] = [
      (.counts, { $0.blockedCount = .max }), (.counts, { $0.identifiedCount = .max }), (.counts, { $0.sharedCount = .max }),
      (.length, { $0.blockedBytes = .max }), (.length, { $0.identifiedBytes = UInt64(Int64.max) }),
      (.length, { $0.sharedBytes = .max }), (.length, { $0.reserved = 1 }), (.length, { $0.headerLength = 72 }),
      (.trailingBytes, { $0.blockedCount = 2 }), (.trailingBytes, { $0.identifiedCount = 1 }), (.entry, { $0.blockedCount = 4 }),
      (.dictionary, { $0.sharedCount = 1 }), (.dictionary, { $0.sharedCount = 3 }),
    ]
    for (index, (expected, change)) in changes.enumerated() {
      var craft = Self.whole
      change(&craft)
      #expect(try damage(craft.bytes()) == expected, "change \(index)")
    }
  }

  @Test func `entries that are doubled, go back, leave the range or name no label are refused`() throws {
    let first = FileCraft.varint(15_550_000_001)
    let lists: [(DirectoryError.Damage, [UInt8], [UInt8])] = [
      (.order, first + [0], []), (.order, first + FileCraft.varint(.max), []),
      (.order, FileCraft.varint(1_000_000_000_000_000) + [1], []),
      (.entry, FileCraft.varint(999_999) + [1], []), (.entry, first + [0x81, 0x00], []), (.entry, first + [0x80], []),
      (.entry, first + [UInt8](repeating: 0xFF, count: 11), []), (.order, [], first + [1, 0, 1]),
      (.label, [], first + [3, 1, 1]),
      (.label, [], first + [0, 0, 1, 1]), (.label, [], first + [1, 1, 0, 200]), (.label, [], first + [1, 1, 0, 2, 0xC3, 0x28]),
      (.entry, [], first + [1, 1]), (.label, [], first + [1, 1] + FileCraft.varint(.max)),
    ]
    for (index, (expected, blocked, identified)) in lists.enumerated() {
      var craft = Self.whole
      if !blocked.isEmpty { (craft.blocked, craft.blockedCount) = (blocked, 2) }
      if !identified.isEmpty { (craft.identified, craft.identifiedCount) = (identified, 2) }
      #expect(try damage(craft.bytes()) == expected, "list \(index)")
    }
  }

  @Test func `labels are cut before the character that does not fit, and one that is too long alone is left out`() throws {
    let rig = try Rig()
    let family = "👨‍👩‍👧‍👦"  // 25 bytes
    let labels = [
      String(repeating: "ä", count: 200), "x" + String(repeating: family, count: 12),
      "e" + String(repeating: "\u{301}", count: 200),
    ]
    try rig.store.replace(with: labels.enumerated().map { .labelled($0.offset, $0.element) })
    #expect(rig.reload() == nil)
    #expect(rig.match(phone(0).value).label == String(repeating: "ä", count: 127))
    #expect(rig.match(phone(1).value).label == "x" + String(repeating: family, count: 10))
    #expect(rig.match(phone(2).value).label == nil)
  }

  @Test func `each error says what to do`() {
    let errors: [DirectoryError] = [
      .noAppGroup("group.x"), .missing("a"), .damaged("a", .checksum), .formatVersion(2), .configuration("No extension is named"),
      .versionNotNewer(given: 1, stored: 2), .baseMissing(needed: 1, stored: nil), .mixedChunks, .tooManyChanges,
      .tooManyEntries(count: 3, extensions: 1, needed: 2), .system(call: "open", path: "a", errno: 13),
    ]
    #expect(Set(errors.map(\.description)).count == errors.count)
    let words = [
      "add ", "let the app", "write", "build", "correct", "nothing needs", "ask for", "apply", "send fewer", "look for",
    ]
    for error in errors { #expect(words.contains { error.description.contains($0) }, "\(error.description)") }
  }

  @Test func `2,000 damaged files: cut, changed and with right checksums, each is refused or loaded in order (fuzz)`() throws {
    let rig = try Rig(entriesPerExtension: 10_000)
    var random = Seeded(42)
    let labels = ["Bank", "Ärztin 🩺", "n"]
    try rig.store.replace(
      with: (0..<16).map { _ in
        let label = labels.randomElement(using: &random).map { $0 + String(Int.random(in: 0..<3, using: &random)) }
        return DirectoryEntry(
          phone(Int.random(in: 0..<200, using: &random)), label: label, isBlocked: Bool.random(using: &random))
      })
    let whole = try rig.bytes(rig.current())
    var (loaded, refused) = (0, 0)
    for seed in 0..<2_000 {
      var random = Seeded(UInt64(seed))
      var bytes = whole
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        guard !bytes.isEmpty else { break }
        let position = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0..<5, using: &random) {
        case 0: bytes.removeSubrange(position...)
        case 1: bytes.remove(at: position)
        case 2: bytes.insert(UInt8.random(in: 0...255, using: &random), at: position)
        default: bytes[position] = UInt8.random(in: 0...255, using: &random)
        }
      }
      let isSealed = seed % 2 == 0
      if isSealed { bytes = FileCraft.sealed(bytes) }
      try Data(bytes).write(to: URL(fileURLWithPath: rig.current()))
      let code = rig.reload()
      if code == nil { loaded += 1 } else { refused += 1 }
      #expect(code == nil || code == 2, "seed \(seed): iOS itself refused with \(code ?? 0) what the loader should have")
      #expect(isSealed || code != nil || bytes == whole, "seed \(seed): a changed file was loaded")
    }
    #expect(loaded > 20 && refused > 200, "\(loaded) loaded, \(refused) refused")
  }
}
