import Foundation
import Synchronization
import Testing

@testable import AppleStandIn

/// An app's real delegates with a phone in the same process, on virtual time.
@Suite struct StandInPhoneTests {
  private static let call = "11111111-1111-4111-8111-111111111111"
  private static let push = #"{"call":"\#(call)","from":"+15550001"}"#
  private let notes = Notes()

  private func phone(_ change: (inout SystemRules) -> Void = { _ in }, _ behaviour: TestApp.Behaviour = .init()) -> StandInPhone {
    var rules = SystemRules.strict
    change(&rules)
    let phone = StandInPhone(rules, clock: .virtual, date: Date(timeIntervalSince1970: 1_000_000))
    phone.install(notes.start(behaviour))
    return phone
  }

  @Test func `a message that comes after its process ended is ignored and counted`() throws {
    let phone = phone()
    phone.push(Self.push)
    let ended = try #require(phone.process)
    phone.access.withLock { phone.process = nil }  // `kill` and `send` run on two threads at once
    ended.send(.violation(.r30, "of a process that is gone"))
    #expect(phone.violations == [] && ended.ignoredCalls == 1)
  }

  @Test func `a push starts the app, its report rings, an answer talks, and the end is in Recents`() {
    let phone = phone()
    #expect(!phone.isRunning)
    phone.push(Self.push)
    #expect(phone.isRunning && phone.screen.incoming?.title == "+15550001")
    phone.advance(.seconds(1))
    phone.tap(.answer)
    phone.advance(.seconds(1))
    #expect(phone.isAudioActive && phone.screen.incoming == nil && phone.screen.calls.map(\.phase) == [.active])
    phone.tap(.hold(true))
    #expect(phone.screen.calls.first?.isHeld == true && !phone.isAudioActive)
    phone.tap(.hold(false))
    phone.advance(.seconds(59))
    phone.tap(.end)
    #expect(phone.screen.calls.isEmpty && !phone.isAudioActive && phone.violations == [])
    #expect(phone.recents.map(\.outcome) == [.answered] && phone.recents.first?.duration == 60)
    let told = [
      "token 32", "push", "reported ok", "begin", "answer", "activate", "hold true", "deactivate", "hold false", "activate",
    ]
    #expect(notes.calls == told + ["end", "deactivate"])
    #expect(notes.all.contains("call connected=true held=true ended=false"))
    #expect(notes.all.last { $0.hasPrefix("call ") } == "call connected=false held=false ended=true")
  }

  @Test func `R1: a push that is not reported kills the app, whose objects are dead; the next one starts it afresh`() {
    var silent = TestApp.Behaviour()
    silent.reports = false
    let phone = phone({ _ in }, silent)
    phone.push(Self.push)
    #expect(!phone.isRunning && phone.violations == ["R1: the app is killed for a push that it did not report"])
    #expect(notes.app == nil, "its process held it")
    phone.push(Self.push)
    phone.push(Self.push)
    phone.push(Self.push)
    #expect(notes.calls.count { $0 == "push" } == 3)
    #expect(phone.violations.last == "R2: pushes are no longer delivered")
  }

  @Test func `kill ends callbacks, and calls of the dead process are ignored and counted`() throws {
    let phone = phone()
    phone.push(Self.push)
    let old = try #require(notes.app)
    phone.kill()
    #expect(!phone.isRunning && phone.screen.incoming == nil)
    let before = notes.all
    old.report(UUID(), "+1666")
    phone.advance(.seconds(5))
    #expect(phone.ignoredCalls >= 1 && notes.all == before && phone.screen.incoming == nil)
    phone.launch(notes.start())
    #expect(phone.isRunning && notes.app !== old)
  }

  @Test func `R6: an answer that is completed too late, or twice, breaks the rule`() throws {
    var slow = TestApp.Behaviour()
    slow.fulfils = false
    let phone = phone({ _ in }, slow)
    phone.push(Self.push)
    phone.advance(.seconds(1))
    phone.tap(.answer)
    phone.advance(.seconds(60))
    #expect(notes.calls.suffix(2) == ["answer", "timed out"] && phone.violations == [])
    try #require(notes.app).completeLast()
    #expect(phone.violations.count == 1 && phone.violations.first?.hasPrefix("R6: ") == true)
    #expect(phone.recents.map(\.outcome) == [.failed])
  }

  @Test func `R18: callbacks come on the queue that was given, nil is the main queue`() throws {
    let phone = phone()
    phone.push(Self.push)
    phone.advance(.seconds(1))
    phone.tap(.answer)
    #expect(notes.calls.contains("answer") && notes.elsewhere == [])
    try #require(notes.app).provider.setDelegate(notes.app, queue: nil)
    phone.tap(.mute(true))
    #expect(notes.elsewhere == ["mute true"] && phone.screen.calls.first?.isMuted == true)
  }

  @Test func `R19 and CFG-2: without a delegate a report and an action break the rules`() throws {
    var none = TestApp.Behaviour()
    none.setsDelegate = false
    let phone = phone({ _ in }, none)
    phone.push(Self.push)
    phone.advance(.seconds(1))
    #expect(phone.violations.first == "R31: a call is reported before the provider has a delegate")
    #expect(phone.violations.last == "R19: the provider has no delegate for the action")
    // a delegate without a strong reference is released at once
    final class Other: NSObject, CXProviderDelegate { func providerDidReset(_ provider: CXProvider) {} }
    try #require(notes.app).provider.setDelegate(Other(), queue: nil)
    phone.tap(.answer)
    #expect(phone.violations.last == "R19: the provider's delegate was released: it is weak")
  }

  @Test func `CFG-1: a second provider while the first one lives breaks the rule`() {
    let phone = phone()
    phone.launch { [notes] in (notes.start()(), CXProvider(configuration: CXProviderConfiguration())) }
    #expect(phone.violations == ["R30: a second CXProvider is made while the first one lives"])
  }

  @Test func `R22: a push that is reported from another thread is not shown on a locked screen`() {
    var other = TestApp.Behaviour()
    other.reportsElsewhere = true
    let phone = phone({ _ in }, other)
    phone.lock()
    phone.push(Self.push)
    #expect(phone.violations.count == 1 && phone.violations.first?.hasPrefix("R22: ") == true)
    #expect(phone.isRunning && phone.screen.incoming == nil && notes.calls.contains("reported ok"))
  }

  @Test func `R17: an entry of Recents calls again by a supported kind of handle only`() throws {
    let phone = phone()
    phone.launch { [notes] in
      StandInApplication.onContinue { activity in
        let intent = activity.interaction?.intent as? INStartCallIntent
        notes.add("again \(intent?.contacts?.first?.personHandle?.value ?? "")")
      }
      return notes.start()()
    }
    let app = try #require(notes.app)
    for (number, type) in [("+1777", CXHandle.HandleType.phoneNumber), ("jane", .generic)] {
      app.report(UUID(), number, type: type)
      phone.advance(.seconds(1))
      phone.tap(.decline)
    }
    #expect(phone.recents.map(\.outcome) == [.declined, .declined])
    for recent in phone.recents { phone.tapRecent(recent) }
    #expect(notes.calls.filter { $0.hasPrefix("again") } == ["again +1777"])
    #expect(phone.violations.count == 1 && phone.violations.first?.hasPrefix("R17: ") == true)
  }

  @Test func `R20: setCategory in a call flips the speaker button back`() throws {
    let phone = phone()
    phone.push(Self.push)
    phone.advance(.seconds(1))
    phone.tap(.answer)
    phone.advance(.seconds(1))
    phone.tap(.speaker(true))
    phone.advance(.seconds(1))
    #expect(phone.screen.isSpeakerOn)
    let app = try #require(notes.app)
    try phone.inApp {
      #expect(AVAudioSession.sharedInstance().currentRoute.outputs.first?.portType == .builtInSpeaker)
      try AVAudioSession.sharedInstance().setCategory(.playAndRecord, mode: .voiceChat, options: [.allowBluetoothHFP])
    }
    #expect(!phone.screen.isSpeakerOn && phone.violations.count == 1)
    withExtendedLifetime(app) {}
  }

  @Test func `what the app asks for comes to its delegate with its details; refusals have CallKit's codes`() throws {
    let phone = phone()
    phone.launch(notes.start())
    let app = try #require(notes.app)
    let start = CXStartCallAction(call: UUID(), handle: CXHandle(type: .phoneNumber, value: "+1888"))
    start.isVideo = true
    app.controller.request(CXTransaction(action: start)) { [notes] in notes.add("asked \($0 == nil)") }
    phone.advance(.seconds(1))
    #expect(notes.calls.contains("start +1888 video=true \(start.uuid)") && notes.calls.contains("asked true"))
    app.controller.requestTransaction(with: [CXAction]()) { [notes] in notes.add("\(($0 as NSError?)?.code ?? 0)") }
    app.controller.requestTransaction(with: CXEndCallAction(call: UUID())) { [notes] in
      notes.add("\(($0 as NSError?)?.code ?? 0)")
    }
    phone.advance(.zero)
    #expect(notes.calls.suffix(2) == ["3", "4"])
    #expect(phone.inApp { app.controller.callObserver.calls.map(\.isOutgoing) } == [true])
  }

  @Test func `R15: an extension's push starts the app; the app itself is refused`() {
    let phone = phone()
    phone.notificationExtension { [notes] in
      CXProvider.reportNewIncomingVoIPPushPayload(["call": Self.call]) { notes.add("extension \(($0 as NSError?)?.code ?? 0)") }
    }
    #expect(phone.isRunning && phone.screen.incoming != nil && notes.calls.contains("extension 0"))
    phone.inApp { [notes] in
      CXProvider.reportNewIncomingVoIPPushPayload([:]) { notes.add("app \(($0 as NSError?)?.code ?? 0)") }
    }
    phone.advance(.zero)
    #expect(notes.calls.contains("app 1"))
  }

  @Test func `R29: after a restart the keychain is closed until the first unlock`() {
    let phone = phone()
    phone.launch(notes.start())
    phone.restart()
    #expect(!phone.isRunning && phone.screen.isLocked)
    phone.push(Self.push)
    #expect(phone.isRunning && phone.inApp { !StandInApplication.isProtectedDataAvailable })
    phone.unlock()
    #expect(phone.inApp { StandInApplication.isProtectedDataAvailable })
  }

  @Test func `a crash of the calls' daemon resets the provider`() {
    let phone = phone()
    phone.push(Self.push)
    phone.crash(.callServices)
    #expect(notes.calls.last == "reset" && phone.screen.incoming == nil)
  }

  @Test func `two runs give the same log, to the byte`() {
    func run() -> [String] {
      let phone = phone { $0.mustReport = .atRandom }
      phone.push(Self.push)
      phone.advance(.seconds(2))
      phone.tap(.answer)
      phone.cellularCall(true)
      phone.advance(.seconds(3))
      phone.cellularCall(false)
      phone.tap(.end)
      phone.advance(.seconds(60))
      return phone.log
    }
    let log = run()
    for _ in 0..<20 { #expect(run() == log) }
    #expect(log.first == "0.000 network push id=1" && log.contains("2.000 user tap button=answer call=\(Self.call)"))
    #expect(
      log.contains("2.050 system didActivate")
        || log.contains { $0.hasSuffix("perform action=2 do=hold call=\(Self.call) on=true timeout=5.000") })
    #expect(log.allSatisfy { $0.wholeMatch(of: /\d+\.\d{3} (app|system|user|network) \w+( \w+=("[^"]*"|[^ "]+))*/) != nil })
  }

  @Test func `on the real clock timers run by themselves`() {
    let phone = StandInPhone(.strict, clock: .real)
    phone.launch(notes.start())
    phone.push(Self.push)
    #expect(notes.wait(for: "begin"))
    phone.tap(.answer)
    #expect(notes.wait(for: "activate") && phone.violations == [])
  }
}

@Suite struct StandInLaunchTests {
  private final class Starts: Sendable { let count = Atomic<Int>(0) }

  /// The thread that delivers the push and the one of the phone's timers both find a launch due.
  @Test func `a push starts a killed app once, whichever thread sees it first`() {
    for _ in 0..<2_000 {
      let starts = Starts()
      let phone = StandInPhone(.strict, clock: .real)
      phone.install {
        starts.count.add(1, ordering: .relaxed)
        return starts
      }
      phone.push("{}")
      phone.timers.sync {}
      #expect(starts.count.load(ordering: .relaxed) == 1)
    }
  }
}
