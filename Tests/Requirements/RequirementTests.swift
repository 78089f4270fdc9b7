import Foundation
import Testing

/// The requirements against the display names of the tests: each is named by one, or said to be open.
@Suite struct RequirementTests {
  struct Row {
    var id: String
    var isOpen: Bool
    var title: String
  }

  private static let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()

  private func rows(_ list: String) throws -> [Row] {
    let text = try String(contentsOf: Self.tests.appendingPathComponent("Vectors/requirements/\(list).txt"), encoding: .utf8)
    return text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { line in
      let words = line.split(separator: " ", maxSplits: 1)
      let rest = words.count > 1 ? words[1].trimmingCharacters(in: .whitespaces) : ""
      return Row(id: String(words[0]), isOpen: rest.hasPrefix("open "), title: rest)
    }
  }

  /// Display names: what stands between the back ticks of `func`, and in `@Test("…")`.
  private func names(_ isWanted: (URL) -> Bool) throws -> [String] {
    let files = FileManager.default.enumerator(at: Self.tests, includingPropertiesForKeys: nil)?.compactMap { $0 as? URL } ?? []
    let ours = files.filter { $0.pathExtension == "swift" && !$0.path.contains("/.build/") }  // a package may be named so
    return try ours.filter { $0.lastPathComponent != "RequirementTests.swift" && isWanted($0) }.flatMap { file in
      // a long name stands on a line of its own
      try String(contentsOf: file, encoding: .utf8).replacing(/func\n +`/, with: "func `").split(separator: "\n").compactMap {
        line -> String? in
        if let range = line.range(of: "func `") { return line[range.upperBound...].split(separator: "`").first.map(String.init) }
        if let range = line.range(of: "@Test(\"") {
          return line[range.upperBound...].split(separator: "\"").first.map(String.init)
        }
        return nil
      }
    }
  }

  /// `INV` is not `INV-1`, and `SRV-1` not `SRV-10`; the `SRV` of a name server is none.
  private func mentions(_ name: String, _ id: String) -> Bool {
    let words = name.split { !$0.isLetter && !$0.isNumber && $0 != "-" }.map(String.init)
    return words.contains(id)
  }

  @Test(arguments: ["gateway", "client"]) func `every requirement is named by a test of its side, or is open`(list: String) throws
  {
    let (rows, names) = (try rows(list), try names { list == "gateway" ? !isClient($0) : isClient($0) })
    #expect(rows.count >= 30 && names.count > 100, "list or tests were not found")
    #expect(Set(rows.map(\.id)).count == rows.count, "an id occurs twice")
    for row in rows {
      let isNamed = names.contains { mentions($0, row.id) }
      if row.isOpen {
        #expect(!isNamed, "\(row.id) has a test: take `open` away")
      } else {
        #expect(isNamed, "no test is named after \(row.id): \(row.title)")
      }
    }
  }

  private func isClient(_ file: URL) -> Bool {
    let folder = file.deletingLastPathComponent().lastPathComponent
    let folders = [
      "TrunklineClient", "TrunklineCallKit", "AppleStandIn", "CallDirectory", "ClientMachines", "AppleSurface", "AppCheck",
    ]
    return folders.contains(folder)
      || (folder == "Scenarios" && file.lastPathComponent.hasPrefix("Handset"))
  }
}
