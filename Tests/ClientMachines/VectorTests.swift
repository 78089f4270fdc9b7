import Foundation
import Testing
import TrunklineAppProtocol

/// Plays `Tests/Vectors/client` to the machines: events in, frames and states out, written for clients in any language.
/// `TRUNKLINE_GOLDEN=write swift test --filter VectorTests` writes the machines' actions into the files: compare them with
/// docs/reference/protocol.md then.
@Suite struct VectorTests {
  static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("Vectors/client")
  private static let isWriting = ProcessInfo.processInfo.environment["TRUNKLINE_GOLDEN"] == "write"

  /// The line at which a case differs, and how.
  struct Difference {
    var line: Int
    var text: String
  }

  @Test(arguments: ["sessions", "replay", "races", "reasons", "nodes", "questions"]) func `the machines follow the vectors`(
    _ name: String
  ) throws {
    let url = Self.folder.appendingPathComponent("\(name).txt")
    let file = try VectorFile(name: "\(name).txt", text: String(contentsOf: url, encoding: .utf8))
    var seen: [Int: [String]] = [:]
    for one in file.cases {
      // rows form a table, which is never rewritten
      if Self.isWriting, one.rows.isEmpty {
        if let difference = Self.play(one, keeping: &seen) { Issue.record("\(file.name):\(difference.line): \(difference.text)") }
        continue
      }
      for row in one.rows.isEmpty ? [one] : one.rows.map({ one.filled($0) }) {
        guard let difference = Self.play(row) else { continue }
        Issue.record(
          "\(file.name):\(difference.line): \(difference.text)",
          sourceLocation: SourceLocation(
            fileID: "Vectors/\(file.name)", filePath: url.path, line: difference.line, column: 1))
      }
    }
    if Self.isWriting { try file.rewritten(seen).write(to: url, atomically: true, encoding: .utf8) }
  }

  @Test func `no line of the log holds a token, a secret of a push, a description, a name or a whole number, over all vectors`()
    throws
  {
    var lines: [String] = []
    var secrets: Set<String> = []
    for name in ["sessions", "replay", "races", "reasons", "nodes", "questions"] {
      let text = try String(contentsOf: Self.folder.appendingPathComponent("\(name).txt"), encoding: .utf8)
      let held = /"(?:auth|wake|resumeToken|token|sdp|h|n|sid)":"([^"]+)"/
      secrets.formUnion(text.matches(of: held).map { String($0.output.1) })
      for one in try VectorFile(name: name, text: text).cases {
        for row in one.rows.isEmpty ? [one] : one.rows.map({ one.filled($0) }) {
          var phone = try VectorPhone(settings: row.settings, comparesAcks: row.comparesAcks)
          for step in row.steps { _ = try phone.play(step.event) }
          lines += phone.logged
        }
      }
    }
    #expect(lines.count > 500 && secrets.count > 15, "\(lines.count) lines, \(secrets.count) secrets")
    let words = Set(lines.flatMap { $0.split(whereSeparator: { " =\"".contains($0) }).map(String.init) })
    // compared as words: "s1" is a part of many others
    #expect(words.isDisjoint(with: secrets), "\(words.intersection(secrets))")
    let numbers = secrets.filter { $0.hasPrefix("+") }
    for line in lines { #expect(!numbers.contains { line.contains($0.dropFirst()) }, "\(line)") }
  }

  @Test func `there are cases of each theme, and each has a name of its own`() throws {
    let files = try ["sessions", "replay", "races", "reasons", "nodes", "questions"].map {
      try VectorFile(name: $0, text: String(contentsOf: Self.folder.appendingPathComponent("\($0).txt"), encoding: .utf8))
    }
    let names = files.flatMap { $0.cases.map(\.name) }
    #expect(names.count >= 50 && Set(names).count == names.count)
    #expect(files.allSatisfy { $0.cases.count >= 4 })
  }

  @Test func `every reason of the protocol is in the vectors, with the reason that the screen gets`() throws {
    let file = try VectorFile(
      name: "reasons", text: String(contentsOf: Self.folder.appendingPathComponent("reasons.txt"), encoding: .utf8))
    let rows = try #require(file.cases.first { $0.name.hasPrefix("call.ended") }).rows
    let never: Set<String> = ["dnd", "blocked", "localEnd"]
    #expect(Set(rows.map { $0[0] }) == Set(EndReason.allCases.map(\.rawValue)).subtracting(never))
    for row in rows { #expect(EndReason(rawValue: row[0])?.callEndedReason?.rawValue == row[1], "\(row)") }
    for name in never { #expect(EndReason(rawValue: name)?.callEndedReason == nil) }
  }

  @Test func `a wrong line is reported with its number in the file and both texts`() throws {
    let text = """
      # a comment
      case a token
      > start
      < needsToken
      > token t1
      < state connecting
      < connect #2
      """
    let difference = try #require(Self.play(VectorFile(name: "x", text: text).cases[0]))
    #expect(difference.line == 5 && difference.text.contains("- connect #2") && difference.text.contains("+ connect #1"))
  }

  @Test func `what is missing, too much, or in another order is a difference`() throws {
    for outputs in [["state connecting"], ["connect #1", "state connecting"], ["state connecting", "connect #1", "connect #2"]] {
      let text = "case x\n> start\n< needsToken\n> token t1\n" + outputs.map { "< " + $0 }.joined(separator: "\n")
      #expect(Self.play(try VectorFile(name: "x", text: text).cases[0])?.line == 4)
    }
  }

  /// Plays a case; nil: it matches the file.
  private static func play(_ one: VectorFile.Case) -> Difference? {
    do {
      var phone = try VectorPhone(settings: one.settings, comparesAcks: one.comparesAcks)
      for step in one.steps {
        let outputs: [String]
        do { outputs = try phone.play(step.event) } catch { return Difference(line: step.line, text: "\(one.name): \(error)") }
        guard outputs != step.expected.map(canonical) else { continue }
        return Difference(line: step.line, text: diff(one.name, step, outputs))
      }
    } catch { return Difference(line: one.line, text: "\(one.name): \(error)") }
    return nil
  }

  /// Collects the effects by the event's line.
  private static func play(_ one: VectorFile.Case, keeping seen: inout [Int: [String]]) -> Difference? {
    do {
      var phone = try VectorPhone(settings: one.settings, comparesAcks: one.comparesAcks)
      for step in one.steps {
        let outputs: [String]
        do { outputs = try phone.play(step.event) } catch { return Difference(line: step.line, text: "\(one.name): \(error)") }
        if seen[step.line] == nil { seen[step.line] = outputs }
      }
    } catch { return Difference(line: one.line, text: "\(one.name): \(error)") }
    return nil
  }

  private static func diff(_ name: String, _ step: VectorFile.Step, _ outputs: [String]) -> String {
    let expected = step.expected.map(canonical)
    let changes = outputs.difference(from: expected)
    let lost = changes.removals.compactMap { if case .remove(_, let line, _) = $0 { line } else { nil } }
    let extra = changes.insertions.compactMap { if case .insert(_, let line, _) = $0 { line } else { nil } }
    return (["\(name)", "after: \(step.event)"] + lost.map { "- \($0)" } + extra.map { "+ \($0)" }).joined(separator: "\n")
  }

  /// Compares frames as JSON: the order of keys does not matter.
  private static func canonical(_ line: String) -> String {
    guard let brace = line.firstIndex(of: "{"),
      let object = try? JSONSerialization.jsonObject(with: Data(line[brace...].utf8)),
      let data = try? JSONSerialization.data(withJSONObject: object, options: [.sortedKeys, .withoutEscapingSlashes])
    else { return line }
    return line[..<brace] + String(decoding: data, as: UTF8.self)
  }
}
