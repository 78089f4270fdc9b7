import Foundation
import Testing

/// Every row of docs/reference/sip.md names a test that exists and runs.
@Suite struct SIPTableTests {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()
  private static let verdicts = ["implemented", "deviates", "refused", "read"]

  struct Row {
    var line: Int
    var subject: String
    var verdict: String
    var tests: [String]
  }

  /// The rows of a Markdown text: four columns, the last with test names in backticks.
  static func rows(_ text: String) -> [Row] {
    text.components(separatedBy: "\n").enumerated().compactMap { number, line in
      guard line.hasPrefix("|"), !line.hasPrefix("|-"), !line.contains("| verdict |") else { return nil }
      let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      guard cells.count == 4 else { return Row(line: number + 1, subject: line, verdict: "", tests: []) }
      let names = cells[3].components(separatedBy: "`").enumerated().compactMap { $0.offset % 2 == 1 ? $0.element : nil }
      return Row(line: number + 1, subject: cells[0], verdict: cells[1], tests: names)
    }
  }

  /// Test names by whether they run: a `.disabled` trait between `@Test` and the name, or on the suite, switches them off.
  static func tests(in text: String) -> [(name: String, isEnabled: Bool)] {
    var found: [(name: String, isEnabled: Bool)] = []
    var isSuiteEnabled = true
    var traits: String?
    // A long name stands on a line of its own.
    let joined = text.replacing(/func\n +`/, with: "func `")
    for line in joined.components(separatedBy: "\n") {
      if line.hasPrefix("@Suite") { isSuiteEnabled = !line.contains(".disabled") }
      if line.contains("@Test") { traits = "" }
      guard let before = traits else { continue }
      guard let start = line.range(of: "func `"), let end = line[start.upperBound...].firstIndex(of: "`") else {
        traits = before + line
        continue
      }
      let isEnabled = isSuiteEnabled && !(before + line[..<start.lowerBound]).contains(".disabled")
      found.append((String(line[start.upperBound..<end]), isEnabled))
      traits = nil
    }
    return found
  }

  private static func allTests() throws -> [String: Bool] {
    var found: [String: Bool] = [:]
    let folder = root.appendingPathComponent("Tests")
    guard let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil) else { return [:] }
    for case let file as URL in files where file.pathExtension == "swift" && !file.path.contains("/.build/") {
      for test in tests(in: try String(contentsOf: file, encoding: .utf8)) { found[test.name] = test.isEnabled }
    }
    return found
  }

  @Test func `every row of the SIP table names a test that exists and is not disabled`() throws {
    let rows = Self.rows(try String(contentsOf: Self.root.appendingPathComponent("docs/reference/sip.md"), encoding: .utf8))
    let tests = try Self.allTests()
    #expect(rows.count >= 26, "only \(rows.count) rows")
    for row in rows {
      #expect(Self.verdicts.contains(row.verdict), "sip.md:\(row.line): verdict \"\(row.verdict)\" of: \(row.subject)")
      #expect(!row.tests.isEmpty, "sip.md:\(row.line): no test for: \(row.subject)")
      for name in row.tests {
        #expect(tests[name] == true, "sip.md:\(row.line): \(tests[name] == nil ? "no test" : "disabled:") `\(name)`")
      }
    }
  }

  @Test func `a row without test and a disabled test are seen`() {
    let rows = Self.rows(
      "| RFC 1 | implemented | x | `a`, `b c` |\n| RFC 2 | refused | y | none |\n| broken |\n|---|---|---|---|")
    #expect(rows.map(\.tests) == [["a", "b c"], [], []])
    #expect(rows.map(\.verdict) == ["implemented", "refused", ""])
    let tests = Self.tests(
      in: "@Test(.disabled(\"why\"))\n func `a`() {}\n @Test func\n  `b`() {}\n @Test(arguments: [1])\n func `c`(n: Int) {}")
    #expect(tests.map(\.name) == ["a", "b", "c"] && tests.map(\.isEnabled) == [false, true, true])
  }
}
