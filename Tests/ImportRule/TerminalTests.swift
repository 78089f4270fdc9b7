import Foundation
import Testing

/// What callers, apps and servers have written reaches a terminal through `Console` and `complain` alone, which make it safe.
@Suite struct TerminalTests {
  @Test func `no command prints by itself`() throws {
    let tree = SourceTree()
    let commands = tree.files.filter {
      $0.path.contains("Sources/Trunkline/Commands/") || $0.path.hasSuffix("Trunkline/Trunkline.swift")
    }
    #expect(commands.count > 20)
    for file in commands {
      let text = try String(contentsOf: tree.root.deletingLastPathComponent().appendingPathComponent(file.path), encoding: .utf8)
      for line in text.split(separator: "\n")
      where line.contains("print(") || line.contains("standardOutput") || line.contains("standardError") {
        Issue.record("\(file.path): write by Console.line, .json, .page or .data, or complain: \(line)")
      }
    }
  }
}
