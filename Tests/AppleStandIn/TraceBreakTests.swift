import Foundation
import Testing
import TrunklineBytes

@testable import AppleStandIn

/// Each rule broken once, by the app or by a system that is not as the rules have it: the trace says so.
@Suite struct TraceBreakTests {
  typealias Side = TraceVerdict.Finding.Side

  struct Break: CustomTestStringConvertible, Sendable {
    let rule: SystemMachine.Rule
    let side: Side
    let how: String
    /// Of the phone that makes the trace; it is judged by the strict ones.
    var rules: @Sendable (inout SystemRules) -> Void = { _ in }
    var behaviour = TestApp.Behaviour()
    /// Further rules that the same deed breaks.
    var besides: Set<SystemMachine.Rule> = []
    let play: @Sendable (TraceRig) -> TraceVerdict
    var testDescription: String { "\(rule.rawValue) by the \(side.rawValue): \(how)" }

    init(
      _ rule: SystemMachine.Rule, by side: Side, _ how: String,
      _ rules: @escaping @Sendable (inout SystemRules) -> Void = { _ in },
      _ behaviour: TestApp.Behaviour = .init(), besides: Set<SystemMachine.Rule> = [],
      _ play: @escaping @Sendable (TraceRig) -> TraceVerdict
    ) {
      (self.rule, self.side, self.how, self.rules) = (rule, side, how, rules)
      (self.behaviour, self.besides, self.play) = (behaviour, besides, play)
    }
  }

  @Test(arguments: Self.pushes + Self.actions + Self.audio + Self.seconds + Self.phone)
  func `a rule that is broken once is named, with line, time and sentence, and no other`(one: Break) throws {
    let rig = TraceRig(one.rules, one.behaviour)
    let verdict = one.play(rig)
    let text = verdict.text(name: "trace") + "\n" + rig.phone.trace
    let finding = try #require(verdict.findings.first { $0.rule == one.rule && $0.side == one.side }, "\(text)")
    #expect(verdict.contradicted.subtracting(one.besides) == [one.rule], "\(text)")
    #expect(finding.position.line > 1 && finding.position.line <= rig.lines.count + 5 && finding.text.count > 10)
    #expect(verdict.exitCode == 1 && verdict.problem == nil)
    let said =
      "line \(finding.position.line), \(LogLine.text(finding.position.time)) s, by the \(one.side.rawValue): \(finding.text)"
    #expect(verdict.text(name: "trace").contains(said) && !verdict.confirmed.contains(one.rule))
  }

  @Test func `every rule is broken by one, or it is said why no trace can show it`() {
    let broken = Set((Self.pushes + Self.actions + Self.audio + Self.seconds + Self.phone).map(\.rule))
    // R11 allows something, and forbids nothing; R14 is the Call Directory's
    let other = SystemMachine.Rule.allCases.filter { !broken.contains($0) }
    #expect(other == [.r11, .r14] && SystemMachine.Rule.r14.unseen != nil)
  }

  private static let silent = {
    var behaviour = TestApp.Behaviour()
    behaviour.reports = false
    return behaviour
  }()
  private static let slow = {
    var behaviour = TestApp.Behaviour()
    behaviour.fulfils = false
    return behaviour
  }()

  /// With lines put behind the first that has this text, at its time.
  private static func adding(_ lines: [String], after text: String, _ rig: TraceRig) -> TraceVerdict {
    var isDone = false
    return rig.judged { line in
      guard !isDone, line.contains(text) else { return [line] }
      isDone = true
      return [line] + lines.map { "\(line.prefix { $0 != " " }) \($0)" }
    }
  }
  private static func replacing(_ old: String, _ new: String, _ rig: TraceRig) -> TraceVerdict {
    rig.judged { [$0.replacingOccurrences(of: old, with: new)] }
  }
  private static func without(_ texts: [String], _ rig: TraceRig) -> TraceVerdict {
    rig.judged { line in texts.contains { line.contains($0) } ? [] : [line] }
  }

  // MARK: pushes and reports

  static let pushes = [
    Break(.r1, by: .app, "it does not report", { _ in }, silent) { rig in
      rig.push()
      return rig.judged()
    },
    Break(.r1, by: .system, "the app lives on", { $0.killsUnreported = false }, silent) { rig in
      rig.push()
      rig.wait(10)
      rig.phone.route(.bluetooth)
      return rig.judged()
    },
    Break(.r1, by: .system, "killed for nothing") { rig in
      rig.push()
      return adding(["system kill rule=R1"], after: "app pushHandled", rig)
    },
    Break(.r2, by: .system, "a push after three kills", { $0.killsBeforeSilence = 9 }, silent, besides: [.r1]) { rig in
      for _ in 0..<4 { rig.push() }
      return rig.judged()
    },
    Break(.r3, by: .system, "in the background without a call it need not be reported", { $0.mustReport = .atRandom }) { rig in
      for _ in 0..<6 {
        rig.push()
        rig.tap(.decline)
      }
      return rig.judged()
    },
    Break(.r4, by: .system, "a UUID is taken twice") { rig in
      rig.push()
      rig.push()
      return replacing("error=2", "error=none", rig)
    },
    Break(.r4, by: .system, "the refused report does not count") { rig in
      rig.push()
      rig.push()
      return adding(["system kill rule=R1"], after: "app pushHandled id=2", rig)
    },
    Break(.r5, by: .system, "a refused call is shown", { $0.doesNotDisturb = true }) { rig in
      rig.push()
      return adding(
        ["system didBegin", "system perform action=1 do=answer call=\(TraceRig.first) timeout=60.000"], after: "error=3", rig)
    },
    Break(.r5, by: .system, "an error that no rule knows", { $0.doesNotDisturb = true }) { rig in
      rig.push()
      return replacing("error=3", "error=7", rig)
    },
    Break(.r10, by: .app, "the end is reported twice") { rig in
      rig.push()
      rig.reportEnd()
      rig.reportEnd()
      return rig.judged()
    },
    Break(.r10, by: .system, "a call that is over is held") { rig in
      rig.answered()
      rig.reportEnd()
      return adding(
        ["system perform action=9 do=hold call=\(TraceRig.first) on=true timeout=5.000"], after: "app ended", rig)
    },
    Break(.r15, by: .system, "the entitlement is missing", { $0.hasFilteringEntitlement = false }) { rig in
      rig.phone.notificationExtension { CXProvider.reportNewIncomingVoIPPushPayload(["call": TraceRig.first]) { _ in } }
      rig.wait(2)
      return rig.judged()
    },
    Break(.r21, by: .app, "no background mode voip", { $0.hasVoIPBackgroundMode = false }) { rig in
      rig.push()
      return rig.judged()
    },
    Break(.r21, by: .system, "no background mode voip, and no reset") { rig in
      rig.push()
      rig.wait(10)
      rig.tap(.decline)
      return replacing("by=AppleStandIn", "by=TrunklineClient voip=false", rig)
    },
    Break(.r22, by: .app, "another thread reports", { _ in }, elsewhere) { rig in
      rig.push()
      return rig.judged()
    },
  ]
  private static let elsewhere = {
    var behaviour = TestApp.Behaviour()
    behaviour.reportsElsewhere = true
    return behaviour
  }()

  // MARK: actions

  static let actions = [
    Break(.r6, by: .app, "completed after its time", { _ in }, slow) { rig in
      rig.answered()
      rig.wait(61)
      rig.app?.completeLast()
      return rig.judged()
    },
    Break(.r6, by: .system, "an answer has 30 s", { $0.answerTime = .seconds(30) }) { rig in
      rig.answered()
      return rig.judged()
    },
    Break(.r6, by: .system, "the time is over, and nobody says so", { _ in }, slow) { rig in
      rig.answered()
      rig.wait(70)
      rig.phone.route(.bluetooth)
      return without(["timedOut"], rig)
    },
    Break(.r6, by: .system, "timed out before its time", { _ in }, slow) { rig in
      rig.answered()
      return adding(["system timedOut action=1 do=answer call=\(TraceRig.first)"], after: "perform action=1", rig)
    },
    Break(.r7, by: .system, "the next action before the first is completed") { rig in
      rig.answered()
      rig.tap(.mute(true), then: 0.1)
      rig.tap(.digits("1"), then: 0.1)
      return without(["fulfill action=2"], rig)
    },
    Break(.r7, by: .system, "a third call is taken") { rig in
      rig.open()
      for _ in 0..<3 { rig.dial() }
      return replacing("error=7", "error=none", rig)
    },
    Break(.r7, by: .system, "a call that nobody reported is answered") { rig in
      rig.push()
      rig.tap(.answer)
      return rig.judged { [$0.contains("perform") ? $0.replacingOccurrences(of: TraceRig.first, with: TraceRig.second) : $0] }
    },
    Break(.r12, by: .system, "no didBegin before the first action") { rig in
      rig.answered()
      return without(["didBegin"], rig)
    },
    Break(.r13, by: .system, "unmuted in the middle of a call") { rig in
      rig.answered()
      rig.tap(.mute(true), then: 5)
      rig.phone.route(.bluetooth)
      rig.wait(1)
      return adding(
        ["system perform action=8 do=mute call=\(TraceRig.first) on=false timeout=5.000", "app fulfill action=8"],
        after: "user route", rig)
    },
    Break(.r24, by: .system, "muted in the middle of a call") { rig in
      rig.answered()
      rig.wait(5)
      rig.phone.route(.bluetooth)
      rig.wait(1)
      return adding(
        ["system perform action=8 do=mute call=\(TraceRig.first) on=true timeout=5.000", "app fulfill action=8"],
        after: "user route", rig)
    },
    Break(.r16, by: .system, "a call rings for 30 s", { $0.ringTime = .seconds(30) }) { rig in
      rig.push()
      rig.wait(40)
      return rig.judged()
    },
    Break(.r16, by: .system, "a call rings for 100 s", { $0.ringTime = .seconds(100) }) { rig in
      rig.push()
      rig.wait(90)
      rig.tap(.decline)
      return rig.judged()
    },
    Break(.r17, by: .app, "Recents has a handle of another kind") { rig in
      rig.open()
      rig.app?.report(UUID(), "jane", type: .generic)
      rig.wait(1)
      rig.tap(.decline)
      if let recent = rig.phone.recents.first { rig.phone.tapRecent(recent) }
      return rig.judged()
    },
    Break(.r17, by: .system, "Recents calls a handle of another kind") { rig in
      rig.open()
      return adding(["system startCall handle=jane kind=generic"], after: "user foreground", rig)
    },
    Break(.r18, by: .system, "a callback on another queue") { rig in
      rig.answered()
      return rig.judged { line in
        [
          line.contains("didActivate")
            ? line + " queue=other" : line.replacingOccurrences(of: "by=AppleStandIn", with: "by=TrunklineClient")
        ]
      }
    },
    Break(.r19, by: .app, "the delegate is gone", besides: [.r31]) { rig in
      rig.open()
      rig.app?.provider.setDelegate(nil, queue: nil)
      rig.app?.report(UUID(), "+1666")
      rig.wait(1)
      return rig.judged()
    },
  ]

  // MARK: audio

  static let audio = [
    Break(.r8, by: .app, "it activates the session itself") { rig in
      rig.push()
      rig.inSession { try $0.setActive(true) }
      rig.tap(.answer)
      return rig.judged()
    },
    Break(.r8, by: .system, "no didActivate", { $0.activationTime = nil }) { rig in
      rig.answered()
      rig.wait(6)
      rig.tap(.end)
      return rig.judged()
    },
    Break(.r8, by: .system, "didActivate while it rings") { rig in
      rig.push()
      return adding(["system didActivate"], after: "didBegin", rig)
    },
    Break(.r8, by: .system, "no didDeactivate after the last call") { rig in
      rig.answered()
      rig.tap(.end, then: 10)
      rig.push(TraceRig.second)
      return without(["didDeactivate"], rig)
    },
    Break(.r9, by: .system, "a cellular call does not hold") { rig in
      rig.answered()
      rig.phone.cellularCall(true)
      rig.wait(6)
      rig.tap(.end)
      return without(["do=hold", "action=2", "didDeactivate"], rig)
    },
    Break(.r9, by: .system, "the end of a cellular call resumes") { rig in
      rig.answered()
      rig.phone.cellularCall(true)
      rig.wait(6)
      rig.phone.cellularCall(false)
      return adding(
        ["system perform action=8 do=hold call=\(TraceRig.first) on=false timeout=5.000", "app fulfill action=8"],
        after: "cellular on=false", rig)
    },
    Break(.r20, by: .app, "setCategory in a call") { rig in
      rig.answered()
      rig.tap(.speaker(true))
      rig.inSession { try $0.setCategory(.playAndRecord, mode: .voiceChat) }
      return rig.judged()
    },
    Break(.r20, by: .system, "the speaker stays", { $0.categoryClearsSpeaker = false }) { rig in
      rig.answered()
      rig.tap(.speaker(true))
      rig.inSession { try $0.setCategory(.playAndRecord, mode: .voiceChat) }
      rig.wait(1)
      rig.tap(.end)
      return rig.judged()
    },
    Break(.r23, by: .system, "asked on a locked screen") { rig in
      rig.phone.lock()
      rig.answered()
      return adding(["system microphonePrompt"], after: "didActivate", rig)
    },
    Break(.r23, by: .system, "not silent without permission") { rig in
      rig.phone.microphone(.denied)
      rig.answered()
      rig.wait(6)
      rig.tap(.end)
      return without(["capture silent=true"], rig)
    },
    Break(.r28, by: .system, "no moment of 0 Hz", { $0.zeroRateTime = nil }) { rig in
      rig.answered()
      rig.phone.route(.bluetooth)
      rig.wait(1)
      return rig.judged()
    },
    Break(.r28, by: .system, "0 Hz for five seconds", { $0.zeroRateTime = .seconds(5) }) { rig in
      rig.answered()
      rig.phone.route(.bluetooth)
      rig.wait(6)
      return rig.judged()
    },
    Break(.r28, by: .system, "24 kHz") { rig in
      rig.answered()
      rig.phone.route(.bluetooth)
      rig.wait(1)
      return replacing("rate=8000", "rate=24000", rig)
    },
  ]

  // MARK: second calls

  /// What the first call's hold leaves in the trace.
  private static let unheld = ["do=hold", "fulfill action=2", "didDeactivate", "3.050 system didActivate"]

  static let seconds = [
    Break(.r25, by: .system, "the first one is not held") { rig in
      rig.answered()
      rig.push(TraceRig.second)
      rig.tap(.holdAndAnswer)
      // as the SDK sees it: without the taps
      return rig.judged { line in
        if unheld.contains(where: { line.contains($0) }) || line.contains(" user ") { return [] }
        return [line.replacingOccurrences(of: "by=AppleStandIn", with: "by=TrunklineClient")]
      }
    },
    Break(.r25, by: .system, "the second one is answered first") { rig in
      rig.answered()
      rig.push(TraceRig.second)
      rig.tap(.holdAndAnswer, then: 6)
      return without(unheld, rig)
    },
    Break(.r26, by: .system, "the other one rings on", { $0.answerEndsOtherRinging = false }) { rig in
      rig.push()
      rig.push(TraceRig.second)
      rig.tap(.answer, then: 7)
      rig.tap(.end)
      return rig.judged()
    },
    Break(.r26, by: .system, "the second one is answered") { rig in
      rig.push()
      rig.push(TraceRig.second)
      rig.phone.tap(exactly: .answer(Identifier(high: 0x2222_2222_2222_4222, low: 0x8222_2222_2222_2222)))
      rig.wait(1)
      return rig.judged { line in
        line.contains(" user ") ? [] : [line.replacingOccurrences(of: "by=AppleStandIn", with: "by=TrunklineClient")]
      }
    },
  ]

  // MARK: the phone

  static let phone = [
    Break(.r27, by: .system, "sockets live for two minutes", { $0.socketLife = .seconds(120) }) { rig in
      rig.open()
      rig.phone.background()
      rig.wait(100)
      rig.push()
      return rig.judged()
    },
    Break(.r27, by: .system, "sockets die in a call") { rig in
      rig.answered()
      return adding(["system socketsDie seconds=0"], after: "didActivate", rig)
    },
    Break(.r29, by: .system, "the keychain opens before the first unlock") { rig in
      rig.phone.restart()
      rig.push()
      return adding(["system unlockedOnce"], after: "pushHandled", rig)
    },
    Break(.r29, by: .system, "the keychain is closed though the app is in front") { rig in
      rig.open()
      return adding(["app keychain open=false"], after: "user foreground", rig)
    },
    Break(.r30, by: .app, "a second provider") { rig in
      rig.phone.launch { [notes = rig.notes] in (notes.start()(), CXProvider(configuration: CXProviderConfiguration())) }
      return rig.judged()
    },
    Break(.r31, by: .app, "no delegate", { _ in }, undelegated, besides: [.r19]) { rig in
      rig.push()
      return rig.judged()
    },
  ]
  private static let undelegated = {
    var behaviour = TestApp.Behaviour()
    behaviour.setsDelegate = false
    return behaviour
  }()
}
