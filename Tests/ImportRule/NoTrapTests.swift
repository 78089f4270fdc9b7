import Foundation
import Testing

/// The SDK never traps in a customer's app: an error is a state, a `PhoneError`, or false.
@Suite struct NoTrapTests {
  /// The construct in a line of Swift that could trap, or that stores data in a forbidden store; nil if there is none.
  static func offence(_ line: String) -> String? {
    // Most lines contain none of the hints, and a regular expression is slow.
    guard hints.contains(where: line.contains) else { return nil }
    let code = line.replacing(/(^|[^:])\/\/.*/, with: "")
    // not \b: to Unicode a point between letters is no boundary
    let words = /(?:^|[^A-Za-z0-9_])(fatalError|preconditionFailure|precondition|assertionFailure|assert|abort|exit)\s*\(/
    if let word = code.firstMatch(of: words) { return String(word.output.1) }
    if let word = code.firstMatch(of: /(?:^|[^A-Za-z0-9_])(unsafelyUnwrapped|unowned|UserDefaults)(?:$|[^A-Za-z0-9_])/) {
      return String(word.output.1)
    }
    if let word = code.firstMatch(of: /(?:^|[^A-Za-z0-9_])((?:try|as)!)/) { return String(word.output.1) }
    return code.firstMatch(of: /[A-Za-z0-9_)\]>?`]!($|[^=])/) == nil ? nil : "a forced unwrap"
  }

  private static let hints = [
    "!", "fatal", "precondition", "assert", "abort", "exit", "unsafelyUnwrapped", "unowned", "UserDefaults",
  ]

  @Test func `nothing in Client can trap by its own hand`() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
      .appendingPathComponent("Sources/Client")
    let files = try #require(FileManager.default.enumerator(at: root, includingPropertiesForKeys: nil))
    var count = 0
    for case let file as URL in files where file.pathExtension == "swift" {
      count += 1
      for (number, line) in try String(contentsOf: file, encoding: .utf8).components(separatedBy: "\n").enumerated() {
        let offence = Self.offence(line)
        #expect(offence == nil, "\(file.lastPathComponent):\(number + 1): \(line)")
      }
    }
    #expect(count > 120, "only \(count) files under \(root.path)")
  }

  @Test func `the rule refuses what it should`() {
    for (line, word) in [
      ("fatalError()", "fatalError"), ("  else { preconditionFailure(\"x\") }", "preconditionFailure"),
      ("precondition(a > b)", "precondition"), ("assert(x)", "assert"), ("let a = try! b()", "try!"), ("let a = b as! C", "as!"),
      ("exit(1)", "exit"), ("unowned let a: B", "unowned"), ("a.unsafelyUnwrapped", "unsafelyUnwrapped"),
      ("UserDefaults.standard", "UserDefaults"),
    ] { #expect(Self.offence(line) == word, "\(line)") }
    for line in [
      "let a = b!", "b!.c", "b![0]", "f(b!)", "f(b!, c)", "b()!", "b[0]!", "var a: B!", "let a: [B<C>!]", "b!(c)", "b! + c",
      "[b!: c]", "let u = \"wss://x\".first!",
    ] { #expect(Self.offence(line) == "a forced unwrap", "\(line)") }
    for line in [
      "a != b", "a!=b", "!a", "f(!a)", "a && !b", "dispatchPrecondition(condition: .onQueue(queue))", "// fatalError()",
      "a // b!", "/// `x!` is not written here", "unownedExecutor", "case .exit: break",
    ] { #expect(Self.offence(line) == nil, "\(line)") }
  }
}
