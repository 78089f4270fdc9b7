import CallFlow
import CallModel
import Foundation
import Testing
import TrunklineAppProtocol

/// docs/integrate/records.md against the record's type: every field, every end reason and every stage, and none that is not there.
@Suite struct RecordPageTests {
  private let lines: [String]
  private let sample: Data

  init() throws {
    let text = try String(contentsOf: DocumentsTests.root.appendingPathComponent("docs/integrate/records.md"), encoding: .utf8)
    lines = text.components(separatedBy: "\n")
    sample = Data(try #require(DocumentsTests.samples("json record", in: lines).first).lines.joined(separator: "\n").utf8)
  }

  /// What stands as code in the first column of a section's table; nil: before the first section.
  private func named(_ section: String?) -> [String] {
    let start = section.flatMap { lines.firstIndex(of: "## " + $0) } ?? 0
    let rows = lines[(start + 1)...].prefix { !$0.hasPrefix("## ") }.filter { $0.hasPrefix("| `") }
    return rows.flatMap { row in row.split(separator: "|")[0].matches(of: /`([A-Za-z.]+)`/).map { String($0.1) } }
  }

  /// `a.b` of each value; the stages of `times` and the names of `parameters` are no fields, and both directions have the same.
  private func paths(_ value: Any, _ path: String = "") -> Set<String> {
    if let object = value as? [String: Any], path != "times", path != "parameters" {
      return object.reduce(into: []) { $0.formUnion(paths($1.value, path.isEmpty ? $1.key : path + "." + $1.key)) }
    }
    if let array = value as? [Any] { return array.reduce(into: []) { $0.formUnion(paths($1, path)) } }
    return [path.hasPrefix("fromApp.") ? "fromTrunk" + path.dropFirst("fromApp".count) : path]
  }

  /// Where a nil is, as deep as it goes.
  private func missing(_ value: Any, _ path: String = "") -> [String] {
    let mirror = Mirror(reflecting: value)
    if mirror.displayStyle == .optional { return mirror.children.first.map { missing($0.value, path) } ?? [path] }
    return mirror.children.flatMap { missing($0.value, path + "." + ($0.label ?? "")) }
  }

  @Test func `the sample has every field, and no other`() throws {
    let record = try JSONDecoder().decode(CallRecord.self, from: sample)
    // a test call's result alone has it, which is in no record
    #expect(missing(record) == [".appStats.last.audio"])
    let again = try JSONSerialization.jsonObject(with: JSONEncoder().encode(record))
    #expect(paths(again) == paths(try JSONSerialization.jsonObject(with: sample)))
  }

  @Test func `the table names every field, and no other`() throws {
    let leaves = paths(try JSONSerialization.jsonObject(with: sample))
    let all = leaves.union(
      leaves.flatMap { path in
        path.indices.filter { path[$0] == "." }.map { String(path[..<$0]) }
      }
    ).union(["fromApp"])
    let table = named(nil)
    #expect(leaves.subtracting(table) == [] && Set(table).subtracting(all) == [])
    #expect(table.count == Set(table).count)
  }

  @Test func `every end reason and every stage has its row`() {
    #expect(named("End reasons").sorted() == EndReason.allCases.map(\.rawValue).sorted())
    #expect(named("Stages").sorted() == CallStage.allCases.map(\.rawValue).sorted())
  }
}
