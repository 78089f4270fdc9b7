import Foundation
import Testing

/// The articles and docstrings of the SDK: what they show as Swift compiles, and `Scripts/docs` has nothing to complain of.
@Suite struct DocumentationTests {
  static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()
  private static let libraries = ["AppleStandIn", "TrunklineClient", "TrunklineCallKit", "TrunklineCallDirectory"]

  /// What the compiler reads: the samples of this target, the quick start and the sample app.
  private static func compiled() throws -> [[String]] {
    let folders =
      ["Tests/Documentation/Samples", "Tests/QuickStart/App"]
      + ["App", "Extensions", "Sources"].map { "Examples/SamplePhone/" + $0 }
    return try folders.flatMap { try files(under: $0, "swift").map(\.lines) }
  }

  struct File {
    var path: String
    var lines: [String]
  }

  private static func files(under folder: String, _ ending: String) throws -> [File] {
    let base = root.appendingPathComponent(folder)
    let all = FileManager.default.enumerator(atPath: base.path)?.compactMap { $0 as? String } ?? []
    return try all.filter { $0.hasSuffix("." + ending) }.sorted().map { path in
      let text = try String(contentsOf: base.appendingPathComponent(path), encoding: .utf8)
      return File(path: folder + "/" + path, lines: text.components(separatedBy: "\n"))
    }
  }

  @Test func `each Swift block of the articles and docstrings stands word for word in a file that is compiled`() throws {
    let compiled = try Self.compiled()
    var blocks = 0
    for library in Self.libraries {
      let articles = try Self.files(under: "Sources/Client/\(library)/\(library).docc", "md")
      #expect(!articles.isEmpty, "no articles of \(library)")
      let comments = try Self.files(under: "Sources/Client/\(library)", "swift").map {
        File(path: $0.path, lines: CodeBlocks.docstrings($0.lines))
      }
      for file in articles + comments {
        for block in CodeBlocks.swift(file.lines) {
          blocks += 1
          let isCompiled = compiled.contains { CodeBlocks.stands(block.lines, in: $0) }
          #expect(
            isCompiled, "\(file.path):\(block.line): not in Tests/Documentation/Samples:\n\(block.lines.joined(separator: "\n"))")
        }
      }
    }
    #expect(blocks >= 20, "blocks were not found")
  }

  @Test func `a docstring has its code behind a fence, so that it is found`() throws {
    for library in Self.libraries {
      for file in try Self.files(under: "Sources/Client/\(library)", "swift") {
        let lines = CodeBlocks.docstrings(file.lines)
        for number in CodeBlocks.indented(lines) {
          Issue.record("\(file.path):\(number + 1): write ```swift around this code: \(lines[number])")
        }
      }
    }
  }

  @Test func `a block that differs by a word, or is cut, is not in the file`() {
    let file = ["enum A {", "  static func f() {", "    let a = 1", "    if a > 0 {", "      g(a)", "    }", "  }", "}"]
    #expect(CodeBlocks.stands(["let a = 1", "if a > 0 {", "  g(a)", "}"], in: file))
    #expect(!CodeBlocks.stands(["let a = 1", "if a > 0 {", "g(a)", "}"], in: file))
    #expect(!CodeBlocks.stands(["let a = 2"], in: file) && !CodeBlocks.stands([], in: file))
    #expect(!CodeBlocks.stands(["let a = 1", "g(a)"], in: file) && !CodeBlocks.stands(["t a = 1"], in: file))
    let article = ["```swift", "let a = 1", "```", "```xml", "<key>", "```", "- in a list:", "  ```swift", "  g(a)", "  ```"]
    #expect(CodeBlocks.swift(article).map(\.lines) == [["let a = 1"], ["g(a)"]])
    #expect(CodeBlocks.docstrings(["/// A", "  ///   b", "let c"]) == ["A", "  b", ""])
    #expect(CodeBlocks.indented(["A", "", "    let code", "", "- list", "    goes on"]) == [2])
  }
}
