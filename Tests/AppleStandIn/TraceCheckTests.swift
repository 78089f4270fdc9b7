import Foundation
import Testing
import TrunklineBytes

@testable import AppleStandIn

/// Traces of the stand-in against the rules by which it was made.
@Suite struct TraceCheckTests {
  @Test(arguments: TraceScenario.all) func `a whole scenario contradicts no rule`(scenario: TraceScenario) {
    let rig = TraceRig(scenario.rules)
    scenario.play(rig)
    var rules = SystemRules.strict
    scenario.judgedBy(&rules)
    let verdict = rig.judged(rules)
    #expect(rig.phone.violations == [] && rig.lines.count > 8)
    #expect(verdict.findings.isEmpty && verdict.problem == nil, "\(verdict.text(name: "trace"))\n\(rig.phone.trace)")
  }

  @Test(arguments: TraceScenario.all) func `nor does it as the SDK sees it, without taps and network`(scenario: TraceScenario) {
    let rig = TraceRig(scenario.rules)
    scenario.play(rig)
    let verdict = TraceRig.judge(rig.seenByTheSDK)
    #expect(verdict.findings.isEmpty && verdict.problem == nil, "\(verdict.text(name: "trace"))\n\(rig.seenByTheSDK)")
  }

  @Test func `of a trace whose beginning was dropped nothing is judged that may have begun before`() {
    for scenario in TraceScenario.all {
      let rig = TraceRig(scenario.rules)
      scenario.play(rig)
      var header = TraceHeader(.sdk)
      header.dropped = 1
      let lines = rig.seenByTheSDK.split(separator: "\n").filter { !$0.contains(" app trace ") }
      guard rig.seenByTheSDK.components(separatedBy: " app trace ").count == 2 else { continue }
      for count in 1..<lines.count {
        let text = ([header.line.description] + lines.dropFirst(count).map(String.init)).map { $0 + "\n" }.joined()
        let verdict = TraceRig.judge(text)
        #expect(verdict.findings.isEmpty, "\(verdict.text(name: "trace"))\n\(text)")
      }
    }
  }
}

/// The rules as check-trace prints them, against the page that has their sources.
@Suite struct RuleTitleTests {
  @Test func `every rule has its row, and is in doubt where the row has a question mark`() throws {
    let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appendingPathComponent("docs/design/apple-stand-in.md")
    let rows = try String(contentsOf: page, encoding: .utf8).split(separator: "\n")
    for rule in SystemMachine.Rule.allCases {
      let row = try #require(rows.first { $0.hasPrefix("| \(rule.rawValue) ") }, "\(rule.rawValue) has no row")
      #expect(row.contains("`?`") == (rule.uncertainty != nil), "\(row)")
      #expect(!rule.title.isEmpty)
    }
  }
}

/// Traces that are cut, mixed up, of others, or large.
@Suite struct TraceBadInputTests {
  private func rig() -> TraceRig {
    let rig = TraceRig()
    rig.answered()
    rig.tap(.hold(true), then: 7)
    rig.tap(.hold(false), then: 7)
    rig.tap(.end, then: 7)
    return rig
  }

  @Test func `a trace that is cut anywhere is judged as far as it goes, and contradicts nothing`() {
    var header = TraceHeader(.standIn)
    let rig = rig()
    header.lines = rig.lines.count - 1
    let bytes = Array(([header.line.description] + rig.lines.dropFirst()).map { $0 + "\n" }.joined().utf8)
    let whole = TraceCheck.judge(bytes)
    #expect(whole.exitCode == 0, "\(whole.text(name: "trace"))")
    for end in stride(from: 0, to: bytes.count - 1, by: 3) {
      let verdict = TraceCheck.judge(Array(bytes[..<end]))
      #expect(verdict.findings.isEmpty, "\(verdict.text(name: "trace"))")
      // within the last line the count is whole already
      if bytes[end...].dropLast().contains(10) {
        #expect(verdict.exitCode == 2 && verdict.text(name: "cut").contains("cut cannot be read to its end. line "))
      }
    }
    // without its beginning it is none
    let rest = TraceCheck.judge(Array(bytes[(bytes.count / 2)...]))
    #expect(rest.exitCode == 2 && rest.lines == 0)
  }

  @Test func `what was contradicted before the cut counts`() {
    let rig = TraceRig { $0.answerTime = .seconds(30) }
    rig.answered()
    let verdict = TraceRig.judge(rig.phone.trace + "9.000 app repo=")
    #expect(verdict.exitCode == 1 && verdict.problem != nil && verdict.contradicted == [.r6])
  }

  @Test func `a clock that goes back or jumps ends the judgement at its line`() {
    let rig = rig()
    for (old, new) in [("8.050 ", "7.050 "), ("8.050 ", "200000.050 ")] {
      let text = rig.lines.map { $0.hasPrefix(old) ? new + $0.dropFirst(old.count) : $0 }.map { $0 + "\n" }.joined()
      let verdict = TraceRig.judge(text)
      #expect(verdict.problem?.text.contains("the clock") == true || text == rig.phone.trace, "\(verdict.text(name: "t"))")
    }
    let doubled = TraceRig.judge(rig.phone.trace + rig.lines.dropFirst().map { $0 + "\n" }.joined())
    #expect(doubled.problem?.line == rig.lines.count + 1 && doubled.exitCode == 2)
  }

  @Test func `a newer format, another call system and nothing at all are no traces for these rules`() {
    let rig = rig()
    let newer = TraceRig.judge(rig.phone.trace.replacingOccurrences(of: "version=1", with: "version=2"))
    #expect(newer.exitCode == 2 && newer.text(name: "t").contains("use a newer trunkline-lab"))
    var header = TraceHeader(.sdk)
    header.system = "NoCallSystem"
    let other = TraceRig.judge("\(header.line)\n0.000 app launched\n")
    #expect(other.exitCode == 2 && other.problem?.text.contains("record it with CallKitSystem") == true)
    #expect(TraceCheck.judge([]).exitCode == 2)
    #expect(TraceCheck.judge((0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 131) }).exitCode == 2)
  }

  @Test func `words that no rule knows are passed over, and words without their fields`() {
    let rig = rig()
    let events = [
      "app rather new=1", "system perform", "system perform action=x do=answer call=y",
      "system perform action=1 do=jump call=1111",
      "system reported", "system timedOut", "app fulfill", "app report", "app report call=1", "app request", "user tap",
      "user tap button=wink", "system route", "system deliver", "app ended", "system requested id=77 error=x", "app connected",
    ]
    for event in events where !["system perform", "system route"].contains(event) {
      let lines = rig.lines.prefix(13) + ["0.500 \(event)"] + rig.lines.dropFirst(13)
      let verdict = TraceRig.judge(lines.map { $0 + "\n" }.joined())
      #expect(verdict.problem == nil && verdict.findings.isEmpty, "\(event): \(verdict.text(name: "t"))")
    }
  }

  @Test func `two megabytes of traces are judged in one go, and of very many contradictions a thousand are kept`() {
    let text = rig().phone.trace
    let many = TraceRig.judge(String(repeating: text, count: 2 << 20 / text.utf8.count))
    #expect(many.exitCode == 0 && many.lines > 20_000 && many.headers.count > 600)
    let broken = text.replacingOccurrences(of: "timeout=60.000", with: "timeout=30.000")
    let wrong = TraceRig.judge(String(repeating: broken, count: 4 << 20 / broken.utf8.count))
    #expect(wrong.findings.count == 1_000 && wrong.furtherFindings > 10 && wrong.text(name: "t").count < 20_000)
  }
}
