import Bytes
import Foundation
import Testing

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
