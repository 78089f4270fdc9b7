import Foundation
import Testing

@testable import SharedStore

/// The table of docs/design/cluster-shared-store.md lists every command that is sent, with its options and the Redis version that
/// introduced it: none is younger than 6.2. The rule for an ACL user there allows these, and no others.
@Suite struct CommandListTests {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()
  /// Commands of `trunkline records follow`, which has a user of its own, and those for Sentinels, which have users of their own.
  private static let ofNoNode: Set<String> = ["SENTINEL", "XREAD", "XREVRANGE"]

  /// A row of the page: the name in its first cell, the words in capitals of its second, the versions of its last.
  private struct Row {
    var name: String
    var options: Set<String>
    var versions: [(major: Int, minor: Int)]
  }

  private static func lines() throws -> [String] {
    let page = root.appendingPathComponent("docs/design/cluster-shared-store.md")
    return try String(contentsOf: page, encoding: .utf8).components(separatedBy: "\n")
  }

  /// The rows below the heading `Commands` with this number of cells: 4 for commands, 3 for Lua.
  private static func rows(cells count: Int) throws -> [Row] {
    let section = try lines().drop { $0 != "## Commands" }.dropFirst().prefix { !$0.hasPrefix("## ") }
    return section.compactMap { line in
      let cells = line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast()
        .map { $0.trimmingCharacters(in: .whitespaces) }
      guard cells.count == count, let first = cells.first, let last = cells.last, first.hasPrefix("`") else { return nil }
      return Row(
        name: first.replacingOccurrences(of: "`", with: ""),
        options: Set(cells[1].matches(of: /`([A-Z]{2,})`/).map { String($0.1) }),
        versions: last.matches(of: /([0-9]+)\.([0-9]+)/).map { (Int($0.1) ?? .max, Int($0.2) ?? .max) })
    }
  }

  /// All Lua that Redis runs, except the trial of permissions.
  private static let scripts = (SharedStoreScript.allCases.map(\.source) + [SharedStoreScript.mark]).joined(separator: "\n")

  /// Names and options of the commands that scripts call.
  private static func inScripts() -> (names: Set<String>, options: Set<String>) {
    var (names, options) = (Set<String>(), Set<String>())
    for line in scripts.components(separatedBy: "\n") {
      for call in line.components(separatedBy: "redis.call(").dropFirst() {
        let words = call.matches(of: /'([A-Z]{2,})'/).map { String($0.1) }
        guard let name = words.first else { continue }
        names.insert(name)
        options.formUnion(words.dropFirst())
      }
    }
    return (names, options)
  }

  /// Names and options of the commands that the sources make. A call's arguments end at its parenthesis.
  private static func onTheWire() throws -> (names: Set<String>, options: Set<String>) {
    let folder = root.appendingPathComponent("Sources/Runtime/SharedStore")
    var (names, options) = (Set<String>(), Set<String>())
    for file in try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
    where file.pathExtension == "swift" {
      let text = try String(contentsOf: file, encoding: .utf8)
      for call in text.components(separatedBy: "RESPCommand(").dropFirst() {
        var depth = 1
        let arguments = call.prefix { character in
          if character == "(" { depth += 1 }
          if character == ")" { depth -= 1 }
          return depth > 0
        }
        let words = arguments.matches(of: /"([A-Z]{2,})"/).map { String($0.1) }
        guard let name = words.first else { continue }
        names.insert(name)
        options.formUnion(words.dropFirst())
      }
      options.formUnion(text.matches(of: /\.add\("([A-Z]{2,})"\)/).map { String($0.1) })
    }
    return (names, options)
  }

  @Test func `the table has every command and option that is sent, and no other`() throws {
    let rows = try Self.rows(cells: 4)
    let scripts = Self.inScripts()
    let wire = try Self.onTheWire()
    #expect(scripts.names.count > 20 && wire.names.count > 15, "the sources are written in another way: read them so")
    let (sent, listed) = (scripts.names.union(wire.names), Set(rows.map(\.name)))
    #expect(sent == listed, "sent and listed differ in \(sent.symmetricDifference(listed).sorted())")
    #expect(rows.count == listed.count, "a command has two rows")
    let options = scripts.options.union(wire.options)
    let known = rows.reduce(into: Set<String>()) { $0.formUnion($1.options) }
    #expect(options == known, "sent and listed options differ in \(options.symmetricDifference(known).sorted())")
  }

  @Test func `nothing in the table needs more than Redis 6.2`() throws {
    let rows = try Self.rows(cells: 4) + Self.rows(cells: 3)
    for row in rows {
      #expect(!row.versions.isEmpty, "\(row.name) has no version")
      #expect(row.versions.allSatisfy { ($0.major, $0.minor) <= (6, 2) }, "\(row.name) needs more than Redis 6.2")
    }
  }

  @Test func `the table has every function that scripts call`() throws {
    let text = Self.scripts + SharedStoreScript.rights
    let rows = try Self.rows(cells: 3)
    let listed = Set(rows.map(\.name))
    let called = Set(text.matches(of: /\b(redis|cjson|cmsgpack|struct|bit)\.[a-z_]+/).map { String($0.0) })
    #expect(called == listed, "they differ in \(called.symmetricDifference(listed).sorted())")
  }

  @Test func `the rule for an ACL user allows the table's commands, and no other`() throws {
    let rule = try #require(try Self.lines().first { $0.hasPrefix("ACL SETUSER") })
    let allowed = Set(
      rule.split(separator: " ").filter { $0.hasPrefix("+") }.map { word in
        word.dropFirst().prefix { $0 != "|" }.uppercased()
      })
    let rows = try Self.rows(cells: 4)
    let needed = Set(rows.map(\.name)).subtracting(Self.ofNoNode)
    #expect(allowed == needed, "they differ in \(allowed.symmetricDifference(needed).sorted())")
  }

  @Test func `each command of a script is tried at connect`() {
    let tried = Set(SharedStoreScript.rights.matches(of: /\{'([A-Z]+)'/).map { String($0.1) })
    #expect(Self.inScripts().names.isSubset(of: tried), "not tried: \(Self.inScripts().names.subtracting(tried).sorted())")
  }
}
