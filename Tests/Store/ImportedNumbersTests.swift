import CallFlow
import CallModel
import Foundation
import GRDB
import Testing

@testable import Store

/// The file of `trunkline users import`.
@Suite struct ImportedNumbersTests {
  private func table(_ rows: [(String, String)]) throws -> NumberTable {
    var builder = NumberTable.Builder()
    for (number, user) in rows { try builder.add(number: number, user: user) }
    return builder.finish()
  }

  private func rows(_ table: NumberTable) -> [String] {
    var out: [String] = []
    table.forEach { out.append($0 + " " + $1) }
    return out
  }

  @Test func `an import is read back in its order, and replaces the one before`() throws {
    let folder = try Folder()
    let path = folder.path + "/trunkline.db.numbers"
    #expect(try ImportedNumbers.read(path).isEmpty)
    try ImportedNumbers.replace(path, with: table([("+2", "bob"), ("0301", "alice"), ("+1", "\u{e4}\u{1F4DE}, \"x\"")]))
    #expect(try rows(ImportedNumbers.read(path)) == ["+2 bob", "0301 alice", "+1 \u{e4}\u{1F4DE}, \"x\""])
    try ImportedNumbers.replace(path, with: table([("+3", "bob")]))
    #expect(try rows(ImportedNumbers.read(path)) == ["+3 bob"])
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["trunkline.db.numbers"])
    #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
  }

  @Test func `what an import that was killed left is no hindrance`() throws {
    let folder = try Folder()
    let path = folder.path + "/n"
    try Data("half".utf8).write(to: URL(fileURLWithPath: path + ".new"))
    try ImportedNumbers.replace(path, with: table([("+3", "bob")]))
    #expect(try rows(ImportedNumbers.read(path)) == ["+3 bob"])
  }

  @Test func `a file that cannot be read says what to do`() throws {
    let folder = try Folder()
    let path = folder.path + "/n"
    func why() -> String { (#expect(throws: StoreError.self) { _ = try ImportedNumbers.read(path) })?.description ?? "" }
    try Data(repeating: 65, count: 5_000).write(to: URL(fileURLWithPath: path))
    #expect(why() == "cannot read the imported numbers \(path): the file is not a SQLite database")
    try FileManager.default.removeItem(atPath: path)
    try ImportedNumbers.replace(path, with: table([("+3", "bob")]))
    let queue = try DatabaseQueue(path: path)
    try queue.write { try $0.execute(sql: "UPDATE number SET number = 'x'") }
    #expect(why().hasPrefix("cannot read the imported numbers \(path): \"x\" is not a number"))
    try queue.write { try $0.execute(sql: "PRAGMA user_version = 9") }
    #expect(why() == "cannot read the imported numbers \(path): another version of trunkline made it: import the numbers again")
  }

  @Test func `an import without its folder changes nothing and says so`() throws {
    let folder = try Folder()
    let error = #expect(throws: StoreError.self) {
      try ImportedNumbers.replace(folder.path + "/none/n", with: try table([("+3", "bob")]))
    }
    #expect(error?.description == "cannot open the store's folder \(folder.path)/none: No such file or directory")
  }
}
