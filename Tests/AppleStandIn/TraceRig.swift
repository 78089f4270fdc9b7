import Foundation
import Testing
import TrunklineBytes

@testable import AppleStandIn

/// A phone with an app on virtual time, of which a trace is made: whole scenarios, and each with a rule broken.
struct TraceRig {
  static let first = "11111111-1111-4111-8111-111111111111"
  static let second = "22222222-2222-4222-8222-222222222222"
  let phone: StandInPhone
  let notes = Notes()

  init(_ change: (inout SystemRules) -> Void = { _ in }, _ behaviour: TestApp.Behaviour = .init()) {
    var rules = SystemRules.strict
    change(&rules)
    phone = StandInPhone(rules, clock: .virtual, date: Date(timeIntervalSince1970: 1_000_000))
    phone.install(notes.start(behaviour))
  }

  var app: TestApp? { notes.app }
  var lines: [String] { phone.trace.split(separator: "\n").map(String.init) }

  func judged(_ rules: SystemRules = .strict) -> TraceVerdict { Self.judge(phone.trace, rules) }
  static func judge(_ text: String, _ rules: SystemRules = .strict) -> TraceVerdict {
    TraceCheck.judge(Array(text.utf8), rules: rules)
  }
  /// The trace with lines changed, left out (nil) or doubled by hand.
  func judged(_ change: (String) -> [String]) -> TraceVerdict {
    Self.judge(lines.flatMap(change).map { $0 + "\n" }.joined())
  }

  /// The same as the SDK in the app's process would have traced it: no taps, no network, a trace a process.
  var seenByTheSDK: String {
    let unseen: Set<String> = [
      "user tap", "user tapRecent", "user locked", "user route", "user restarted", "network push", "network cellular",
      "network changed",
      "system launch", "system kill", "system crash", "system capture", "system microphonePrompt", "system socketsDie",
      "system unlockedOnce", "system violation", "app exited", "app extensionPush", "system extensionPushed",
    ]
    var (out, runs): ([String], Bool) = ([], false)
    for line in lines.dropFirst() {
      let words = line.split(separator: " ")
      let name = "\(words[1]) \(words[2])"
      if ["app exited", "system kill", "user restarted"].contains(name) { runs = false }
      if unseen.contains(name) { continue }
      if !runs {
        var header = TraceHeader(.sdk)
        (header.system, header.os, header.hasVoIPBackgroundMode) = ("CallKitSystem", "Version 26.4", true)
        out.append(header.line.description)
        runs = true
      }
      out.append(line)
    }
    return out.map { $0 + "\n" }.joined()
  }

  // MARK: steps

  func push(_ call: String = first, from: String = "+15550001") {
    phone.push(#"{"call":"\#(call)","from":"\#(from)"}"#)
    wait(1)
  }
  func wait(_ seconds: Double) { phone.advance(.milliseconds(Int(seconds * 1_000))) }
  func tap(_ button: StandInPhone.Button, then seconds: Double = 1) {
    phone.tap(button)
    wait(seconds)
  }
  func answered(_ call: String = first) {
    push(call)
    tap(.answer)
  }
  func open() {
    phone.launch(notes.start())
    wait(1)
  }
  func dial(_ call: UUID = UUID(), _ number: String = "+1888") {
    request([CXStartCallAction(call: call, handle: CXHandle(type: .phoneNumber, value: number))])
  }
  func request(_ actions: [CXAction]) {
    phone.inApp { app?.controller.requestTransaction(with: actions) { _ in } }
    wait(1)
  }
  func reportEnd(_ call: String = first) {
    UUID(uuidString: call).map { id in phone.inApp { app?.provider.reportCall(with: id, endedAt: nil, reason: .remoteEnded) } }
    wait(1)
  }
  func inSession(_ body: (AVAudioSession) throws -> Void) {
    try? phone.inApp { try body(AVAudioSession.sharedInstance()) }
    wait(1)
  }
}

/// Whole scenarios, none of which breaks a rule.
struct TraceScenario: CustomTestStringConvertible, Sendable {
  let testDescription: String
  /// Of the phone; the trace is judged by the strict ones, but for `judgedBy`.
  var rules: @Sendable (inout SystemRules) -> Void = { _ in }
  var judgedBy: @Sendable (inout SystemRules) -> Void = { _ in }
  let play: @Sendable (TraceRig) -> Void

  init(
    _ name: String, _ rules: @escaping @Sendable (inout SystemRules) -> Void = { _ in },
    judgedBy: @escaping @Sendable (inout SystemRules) -> Void = { _ in }, _ play: @escaping @Sendable (TraceRig) -> Void
  ) { (testDescription, self.rules, self.judgedBy, self.play) = (name, rules, judgedBy, play) }

  static let all = [
    TraceScenario("answered, held, muted, digits, ended") { rig in
      rig.answered()
      for button in [StandInPhone.Button.hold(true), .hold(false), .mute(true), .mute(false), .digits("12#"), .end] {
        rig.tap(button, then: 7)
      }
    },
    TraceScenario("declined, then ended by the caller, then rung out") { rig in
      rig.push()
      rig.tap(.decline)
      rig.push(TraceRig.second)
      rig.reportEnd(TraceRig.second)
      rig.push("33333333-3333-4333-8333-333333333333")
      rig.wait(70)
    },
    TraceScenario("dialled, connected, ended by the app") { rig in
      rig.open()
      guard let call = UUID(uuidString: TraceRig.first) else { return }
      rig.dial(call)
      rig.phone.inApp { rig.app?.provider.reportOutgoingCall(with: call, startedConnectingAt: nil) }
      rig.wait(3)
      rig.phone.inApp { rig.app?.provider.reportOutgoingCall(with: call, connectedAt: nil) }
      rig.wait(3)
      rig.request([CXEndCallAction(call: call)])
      rig.wait(10)
    },
    TraceScenario("hold and answer, end and answer, by a headset") { rig in
      rig.answered()
      rig.push(TraceRig.second)
      rig.tap(.holdAndAnswer, then: 6)
      rig.tap(.end, then: 6)
      rig.push("33333333-3333-4333-8333-333333333333")
      rig.tap(.endAndAnswer, then: 6)
      rig.push("44444444-4444-4444-8444-444444444444")
      rig.tap(.headset, then: 6)
      rig.tap(.headset, then: 6)
    },
    TraceScenario("two ring, one is answered") { rig in
      rig.push()
      rig.push(TraceRig.second)
      rig.tap(.answer, then: 7)
      rig.tap(.end, then: 7)
    },
    TraceScenario("routes, and setCategory before a call") { rig in
      rig.push()
      rig.inSession { try $0.setCategory(.playAndRecord, mode: .voiceChat) }
      rig.tap(.answer)
      for route in [SystemMachine.Route.bluetooth, .bluetoothWideband, .headphones, .speaker] {
        rig.phone.route(route)
        rig.wait(2)
      }
      rig.tap(.end, then: 7)
    },
    TraceScenario("sockets die in the background; restarted, pushed to before the first unlock") { rig in
      rig.open()
      rig.phone.background()
      rig.wait(40)
      rig.phone.restart()
      rig.push()
      rig.tap(.answer)
      rig.phone.unlock()
      rig.wait(6)
      rig.tap(.end, then: 40)
    },
    TraceScenario(
      "the microphone: not asked on a locked screen, asked in the open, granted", { $0.microphone = .undetermined },
      judgedBy: { $0.microphone = .undetermined }
    ) { rig in
      for isLocked in [true, false] {
        rig.phone.lock(isLocked)
        rig.push()
        rig.tap(.answer, then: 6)
        rig.tap(.end, then: 6)
      }
      rig.phone.microphone(.granted)
      rig.wait(6)
    },
    TraceScenario("called again from Recents, running and not") { rig in
      rig.open()
      rig.push()
      rig.tap(.decline)
      guard let recent = rig.phone.recents.first else { return }
      rig.phone.tapRecent(recent)
      rig.wait(6)
      rig.phone.kill()
      rig.phone.tapRecent(recent)
      rig.wait(6)
    },
    TraceScenario("Focus", { $0.doesNotDisturb = true }) { rig in
      rig.push()
      rig.wait(10)
    },
    TraceScenario("the block list", { $0.blocked = ["+15550001"] }) { rig in
      rig.push()
      rig.push(TraceRig.second, from: "+1666")
      rig.tap(.decline, then: 6)
    },
    TraceScenario("the daemons of calls and of audio crash") { rig in
      for cause in [SystemMachine.ResetCause.callServices, .mediaServices] {
        rig.answered()
        rig.phone.crash(cause)
        rig.wait(8)
      }
    },
    TraceScenario("a cellular call holds, and the user resumes") { rig in
      rig.answered()
      rig.phone.cellularCall(true)
      rig.wait(7)
      rig.phone.cellularCall(false)
      rig.wait(7)
      rig.tap(.hold(false), then: 7)
      rig.tap(.end, then: 7)
    },
    TraceScenario("an unhold without didActivate", { $0.activatesAfterUnhold = false }) { rig in
      rig.answered()
      rig.tap(.hold(true), then: 7)
      rig.tap(.hold(false), then: 7)
      rig.tap(.end, then: 7)
    },
    TraceScenario("an extension's push, and the app's that is refused") { rig in
      rig.phone.notificationExtension { CXProvider.reportNewIncomingVoIPPushPayload(["call": TraceRig.first]) { _ in } }
      rig.wait(2)
      rig.phone.inApp { CXProvider.reportNewIncomingVoIPPushPayload([:]) { _ in } }
      rig.tap(.decline, then: 7)
    },
    TraceScenario("killed in a call, and started by the next push") { rig in
      rig.answered()
      rig.phone.kill()
      rig.push(TraceRig.second)
      rig.tap(.answer, then: 7)
      rig.tap(.end, then: 7)
    },
    TraceScenario("requests are refused: none, unknown, known, too many") { rig in
      rig.open()
      rig.request([])
      rig.request([CXEndCallAction(call: UUID())])
      let calls = [UUID(), UUID(), UUID()]
      for call in calls { rig.dial(call) }
      rig.dial(calls[0])
      rig.request([CXAnswerCallAction(call: calls[0])])
      rig.wait(7)
    },
    TraceScenario(
      "what may happen: ends twice, unmutes, bursts, pushes that need no report",
      { ($0.repeatsEnds, $0.unmutesOnConnect, $0.muteBursts, $0.mustReport) = (true, true, 2, .unlessActive) }
    ) { rig in
      rig.answered()
      rig.phone.background()
      rig.phone.foreground()
      rig.wait(5)
      rig.push(TraceRig.second)
      rig.reportEnd(TraceRig.second)
      rig.tap(.mute(true), then: 5)
      rig.reportEnd()
      rig.wait(7)
    },
    TraceScenario("a headset that ends what it answered", { $0.headsetFault = .endsAnswered }) { rig in
      rig.answered()
      rig.push(TraceRig.second)
      rig.tap(.headset, then: 7)
    },
  ]
}
