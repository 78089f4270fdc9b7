import Foundation
import Testing

/// A function has at most 60 lines (docs/contributing.md). `swift format` puts its closing brace below its first word, which is how
/// it is measured here.
@Suite struct FunctionLengthTests {
  private static let most = 60

  struct Function {
    var line: Int
    var length: Int
    var text: String
  }

  @Test func `no function has more than 60 lines`() throws {
    let tree = SourceTree()
    for file in tree.files {
      let text = try String(contentsOf: tree.root.deletingLastPathComponent().appendingPathComponent(file.path), encoding: .utf8)
      for function in Self.functions(text) where function.length > Self.most {
        Issue.record("\(file.path):\(function.line) has \(function.length) lines; divide it: \(function.text)")
      }
    }
  }

  @Test func `functions are measured by their indentation`() {
    let text = """
      struct S {
        func short() -> Int { 1 }
        init(
          a: Int
        ) where T: P {
          self.a = a
        }
        mutating func requirement()
        var b: Int
        private static func `a name`() {

          if x {
          }
        }
      }
      """
    #expect(Self.functions(text).map(\.length) == [5, 5])
    #expect(Self.functions(text).map(\.line) == [3, 10])
  }

  /// The functions and initialisers of more than one line.
  static func functions(_ text: String) -> [Function] {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    return lines.indices.compactMap { start in
      let line = lines[start]
      guard isDeclaration(line) else { return nil }
      let indentation = line.prefix { $0 == " " }
      for end in lines.indices.dropFirst(start + 1) where !lines[end].isEmpty {
        let depth = lines[end].prefix { $0 == " " }.count
        if depth > indentation.count { continue }
        let rest = lines[end].dropFirst(depth)
        if depth == indentation.count, rest.first == "}" {
          return Function(line: start + 1, length: end - start + 1, text: String(line.dropFirst(depth)))
        }
        // the rest of a declaration that needs several lines
        guard depth == indentation.count, [")", "{", "-", ">"].contains(rest.first) || rest.hasPrefix("where ") else {
          return nil
        }
      }
      return nil
    }
  }

  private static func isDeclaration(_ line: Substring) -> Bool {
    for word in line.split(separator: " ") {
      if word == "func" { return true }
      if ["init", "subscript"].contains(where: { word.hasPrefix($0 + "(") || word.hasPrefix($0 + "<") }) { return true }
      // attributes and modifiers come first
      guard word.hasPrefix("@") || modifiers.contains(word) else { return word.hasPrefix("init?(") }
    }
    return false
  }

  private static let modifiers: Set<Substring> = [
    "public", "package", "internal", "fileprivate", "private", "open", "final", "static", "class", "override", "required",
    "convenience", "mutating", "nonmutating", "borrowing", "consuming", "nonisolated", "isolated", "indirect",
  ]
}
