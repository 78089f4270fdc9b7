import Foundation
import Synchronization
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

@testable import TrunklineCallKit

/// The app's half on the stand-in's CallKit and PushKit: what the phone orders is on the screen, what the user does reaches the phone.
@Suite(.serialized) struct CallKitSystemTests {
  static let jane = Handle(k: .phone, h: "+15550001", n: "Jane Doe")

  /// The phone's part, played by the test: reports each push, keeps what it hears.
  final class App: Sendable {
    let system: CallKitSystem
    private let heard = Mutex<[String]>([])
    private let actions = Mutex<[SystemActionID]>([])
    private let reports: Bool
    private let queue = DispatchQueue(label: "app")

    init(_ settings: CallKitSystem.Settings = .init(), reports: Bool = true) {
      system = CallKitSystem(settings)
      self.reports = reports
      system.attach(to: queue) { [weak self] event in self?.take(event) }
    }

    private func take(_ event: CallSystemEvent) {
      switch event {
      case .pushed(let payload, let mustReport):
        note("pushed \(mustReport)")
        guard reports, mustReport else { return }
        let push = PushPayload(json: payload)
        system.perform(
          .report(push?.call ?? Identifier(high: 1, low: 1), push?.caller ?? Handle(k: .generic, h: "Unknown"), isVideo: false))
      case .perform(let id, let request, let timeout):
        note("perform \(String(describing: request).prefix { $0 != "(" }) \((timeout ?? .zero) > .seconds(3))")
        actions.withLock { $0.append(id) }
      case .reported(_, let refusal): note(refusal.map { "refused \($0)" } ?? "reported")
      case .pushToken(let token): note("token \(token?.token.count ?? 0) \(token?.topic ?? "")")
      case .timedOut: note("timed out")
      case .requestRefused: note("request refused")
      case .audioActivated: note("audio on")
      case .audioDeactivated: note("audio off")
      case .audioChanged(let isReset): note("audio changed \(isReset)")
      case .reset: note("reset")
      case .foreground(let isOn): note("foreground \(isOn)")
      case .translates(_, let what): note("translates \(what.on) \(what.local ?? "") \(what.remote ?? "")")
      case .microphone, .unsupported, .noted: break
      }
    }

    private func note(_ text: String) { heard.withLock { $0.append(text) } }
    var events: [String] { heard.withLock { $0 } }

    /// Completes the oldest action that is open.
    func complete(_ isDone: Bool = true) {
      guard let id = actions.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else { return }
      queue.sync { system.perform(.complete(id, isDone)) }
    }
    /// What the app has put on its own queue is done.
    func drain() { queue.sync {} }
    func perform(_ request: CallSystemRequest) { queue.sync { system.perform(request) } }
  }

  /// A phone with the app installed; what the app was at its last start.
  private func iphone(_ rules: SystemRules = .strict, _ make: @escaping @Sendable () -> App = { App() }) -> (
    StandInPhone, @Sendable () -> App?
  ) {
    let phone = StandInPhone(rules, clock: .virtual)
    let last = Held()
    phone.install {
      let app = make()
      last.set(app)
      return app
    }
    return (phone, { last.value })
  }
  private final class Held: Sendable {
    private let app = Mutex<App?>(nil)
    func set(_ app: App) { self.app.withLock { $0 = app } }
    var value: App? { app.withLock { $0 } }
  }

  private func payload(_ call: String = "8d4f0c1e-6a53-4c39-9a53-0b0f6f8a2f11") -> [String: Any] {
    [
      "aps": [:] as [String: Any], "call": call, "wake": "w", "gw": "wss://g/v1/connect",
      "from": ["k": "phone", "h": "+15550001", "n": "Jane Doe"],
    ]
  }

  @Test
  func
    `INC-2, INC-3, PUSH-1, PUSH-5: a push starts the app, is reported with handle and name in its delegate's turn, and completed`()
    throws
  {
    let (phone, app) = iphone()
    phone.lock()
    phone.push(payload())
    phone.advance(.seconds(8))
    #expect(phone.violations == [] && phone.isRunning)
    #expect(
      phone.screen.incoming?.title == "Jane Doe"
        && phone.screen.incoming?.id == Identifier("8d4f0c1e-6a53-4c39-9a53-0b0f6f8a2f11"))
    let events = try #require(app()).events
    #expect(events.contains("pushed true") && events.contains("reported"))
    #expect(events.contains { $0.hasPrefix("token 64") })
  }

  @Test(arguments: ["{}", "[1]", "nonsense", #"{"call":"x"}"#, #"{"call":null,"from":[]}"#])
  func `INC-3: any payload is reported as a call of somebody unknown`(text: String) {
    let (phone, _) = iphone()
    phone.push(text)
    phone.advance(.seconds(8))
    #expect(phone.violations == [] && phone.screen.incoming?.title == "Unknown")
  }

  @Test func `INC-1, PUSH-2: an app that does not report is killed, and after three times is pushed to no more: this is seen`() {
    let (phone, _) = iphone(.strict) { App(reports: false) }
    for _ in 0..<4 {
      phone.push(payload())
      phone.advance(.seconds(8))
    }
    #expect(phone.violations.contains { $0.hasPrefix("R1") } && phone.violations.contains { $0.hasPrefix("R2") })
  }

  @Test func `PUSH-3: a push that need not be reported says so`() throws {
    var rules = SystemRules.strict
    rules.mustReport = .unlessActive
    let (phone, app) = iphone(rules)
    phone.push(payload())
    phone.tap(.answer)
    phone.push(payload("8d4f0c1e-6a53-4c39-9a53-0b0f6f8a2f22"))
    phone.advance(.seconds(1))
    #expect(try #require(app()).events.filter { $0.hasPrefix("pushed") } == ["pushed true", "pushed false"])
    #expect(phone.violations == [])
  }

  @Test
  func `PUSH-4: by the older method, before iOS 26.4, each push is reported in its turn and completed, also in the foreground`()
    throws
  {
    var rules = SystemRules.strict
    (rules.hasPushMetadata, rules.mustReport) = (false, .unlessActive)
    let (phone, app) = iphone(rules)
    phone.push(payload())
    phone.tap(.answer)
    phone.advance(.milliseconds(100))
    try #require(app()).complete()
    phone.push(payload("8d4f0c1e-6a53-4c39-9a53-0b0f6f8a2f22"))
    phone.push("nonsense")
    phone.advance(.seconds(8))
    #expect(try #require(app()).events.filter { $0.hasPrefix("pushed") } == ["pushed true", "pushed true", "pushed true"])
    #expect(phone.log.count { $0.contains("app pushCompleted") } == 3 && phone.violations == [] && phone.isRunning)
  }

  @Test(arguments: [true, false]) func `MID-3: translation by the system's engine, where the app says so; else the action fails`(
    isOn: Bool
  ) throws {
    var settings = CallKitSystem.Settings()
    settings.translates = isOn
    let (phone, app) = iphone { [settings] in App(settings) }
    phone.push(payload())
    phone.tap(.answer)
    phone.advance(.milliseconds(100))
    let host = try #require(app())
    host.complete()
    phone.advance(.seconds(1))
    #expect(phone.inApp { host.system.configuration.supportsAudioTranslation } == isOn)
    let call = try #require(phone.screen.calls.first?.id)
    phone.inApp {
      let action = CXSetTranslatingCallAction(
        call: call.uuid, isTranslating: true, localLanguage: "en", remoteLanguage: "de")
      CXCallController(queue: DispatchQueue(label: "translation")).request(CXTransaction(action: action)) { _ in }
    }
    phone.advance(.seconds(10))
    let (asked, done) = (phone.log.firstIndex { $0.contains("translate") }, isOn ? "app fulfill" : "app fail")
    #expect(phone.log[(try #require(asked))...].contains { $0.contains(done) }, "\(phone.log.suffix(8))")
    #expect(phone.violations == [] && !host.events.contains("timed out"))
    #expect(host.events.contains("translates true en de") == isOn, "the gateway is told: \(host.events)")
  }

  @Test func `MID-2, CFG-3: calls are merged by an action, once a gateway has said that it mixes`() throws {
    let (phone, app) = iphone()
    for call in ["8d4f0c1e-6a53-4c39-9a53-0b0f6f8a2f11", "8d4f0c1e-6a53-4c39-9a53-0b0f6f8a2f22"] {
      phone.push(payload(call))
      phone.tap(phone.screen.calls.isEmpty ? .answer : .holdAndAnswer)
      phone.advance(.milliseconds(100))
      // the second: hold, then answer
      for _ in 0..<2 {
        try #require(app()).complete()
        phone.advance(.milliseconds(500))
      }
    }
    let host = try #require(app())
    let calls = phone.screen.calls.map(\.id)
    try #require(calls.count == 2)
    let handle = Handle(k: .phone, h: "+15550001")
    host.perform(.update(calls[0], handle, CallCapabilities(hold: true)))
    #expect(phone.inApp { host.system.configuration.maximumCallsPerCallGroup } == 1)
    for call in calls { host.perform(.update(call, handle, CallCapabilities(hold: true, group: true))) }
    #expect(phone.inApp { host.system.configuration.maximumCallsPerCallGroup } == 5)
    host.perform(.request(.group(calls[1], calls[0])))
    phone.advance(.milliseconds(100))
    #expect(host.events.last == "perform group true", "\(host.events)")
    host.complete()
    phone.advance(.seconds(1))
    host.perform(.request(.group(calls[1], nil)))
    phone.advance(.milliseconds(100))
    host.complete(false)
    phone.advance(.seconds(10))
    #expect(phone.violations == [] && !host.events.contains("timed out"), "\(phone.violations)")
  }

  @Test func `ANS-4, AUD-1: an answer is performed once, audio is configured before it is fulfilled, and nobody calls setActive`()
    throws
  {
    let (phone, app) = iphone()
    phone.push(payload())
    phone.tap(.answer)
    phone.advance(.milliseconds(100))
    let host = try #require(app())
    #expect(host.events.last == "perform answer true" && !phone.isAudioActive)
    host.perform(.configureAudio)
    host.complete()
    phone.advance(.seconds(1))
    #expect(host.events.last == "audio on" && phone.isAudioActive)
    let session = phone.inApp { AVAudioSession.sharedInstance() }
    #expect(session.category == .playAndRecord && session.mode == .voiceChat)
    #expect(session.categoryOptions == [.allowBluetoothHFP, .allowBluetoothA2DP])
    phone.tap(.end)
    phone.advance(.milliseconds(100))
    #expect(host.events.contains("perform end true"))
    host.complete()
    phone.advance(.seconds(1))
    #expect(host.events.last == "audio off" && phone.screen.calls.isEmpty && phone.violations == [])
  }

  @Test func `AUD-2: a route's new sample rate is told once it is there, the same rate and 0 Hz are not (R28)`() throws {
    let (phone, app) = iphone()
    phone.push(payload())
    phone.route(.bluetooth)
    phone.advance(.milliseconds(50))
    #expect(phone.inApp { AVAudioSession.sharedInstance() }.sampleRate == 0)
    let host = try #require(app())
    host.drain()
    #expect(!host.events.contains("audio changed false"))
    phone.advance(.milliseconds(100))
    phone.route(.speaker)
    phone.advance(.seconds(1))
    phone.route(.receiver)
    phone.advance(.seconds(1))
    host.drain()
    #expect(host.events.filter { $0 == "audio changed false" }.count == 2, "\(host.events)")
    phone.crash(.mediaServices)
    phone.advance(.seconds(1))
    host.drain()
    #expect(host.events.contains("audio changed true"))
  }

  @Test func `OUT-1: a call is asked for by a transaction, its dates are reported; a third one is refused`() throws {
    let phone = StandInPhone(.strict, clock: .virtual)
    let box = Held()
    phone.launch {
      let app = App()
      box.set(app)
      return app
    }
    phone.advance(.seconds(1))
    let host = try #require(box.value)
    #expect(host.events.contains("foreground true"))
    let call = Identifier(high: 1, low: 2)
    host.perform(.request(.start(call, Self.jane)))
    phone.advance(.seconds(1))
    #expect(host.events.last == "perform start true")
    host.complete()
    host.perform(.reportConnecting(call))
    host.perform(.reportConnected(call, at: 1_700_000_000_000))
    phone.advance(.seconds(1))
    #expect(phone.screen.calls.map(\.phase) == [.active])
    for low in UInt64(3)...4 {
      host.perform(.request(.start(Identifier(high: 1, low: low), Self.jane)))
      phone.advance(.seconds(1))
      host.complete()
    }
    host.drain()
    #expect(host.events.contains("request refused"))
  }

  @Test func `CFG-6, CFG-8: the frameworks' key types by one import, in Swift 6 mode, with both methods for a push`() throws {
    // the name of each type as it is without `import AppleStandIn`, CallKit or PushKit
    let types: [Any.Type] = [
      CXProvider.self, CXProviderConfiguration.self, CXCallController.self, CXCallUpdate.self, CXTransaction.self,
      CXCallAction.self, PKPushRegistry.self, PKVoIPPushMetadata.self,
    ]
    #expect(Set(types.map { "\($0)" }).count == 8)
    let system = StandInPhone(.strict, clock: .virtual).inApp { CallKitSystem() as Any }
    #expect(system is any CXProviderDelegate && system is any PKPushRegistryDelegate && system is any CallSystem)
    #if swift(>=6)
      let isSix = true
    #else
      let isSix = false
    #endif
    let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appendingPathComponent("Package.swift")
    let text = try String(contentsOf: package, encoding: .utf8)
    #expect(isSix && text.contains("swift-tools-version: 6") && text.contains("swiftLanguageModes: [.v6]"))
    // PUSH-4 plays the older method, PUSH-3 the one with metadata
    let adapter = package.deletingLastPathComponent().appendingPathComponent(
      "Sources/Client/TrunklineCallKit/CallKitSystem.swift")
    let source = try String(contentsOf: adapter, encoding: .utf8)
    #expect(source.contains("didReceiveIncomingPushWith") && source.contains("@available(iOS 26.4, *)"))
  }

  @Test func `CFG-3: what the settings say of calls is what the system has`() throws {
    var settings = CallKitSystem.Settings()
    (settings.maximumCalls, settings.includesCallsInRecents, settings.ringtone, settings.icon) = (1, false, "ring.caf", Data([1]))
    let phone = StandInPhone(.strict, clock: .virtual)
    let configuration = phone.inApp { CallKitSystem(settings).configuration }
    #expect(configuration.maximumCallGroups == 1 && configuration.maximumCallsPerCallGroup == 1 && !configuration.supportsVideo)
    #expect(
      !configuration.includesCallsInRecents && configuration.ringtoneSound == "ring.caf"
        && configuration.iconTemplateImageData == Data([1]))
    #expect(configuration.supportedHandleTypes == [.generic, .phoneNumber, .emailAddress])
  }

  @Test func `CFG-1, CFG-2: one provider with its delegate for each launch, and no rule is broken over many calls`() throws {
    let (phone, app) = iphone()
    for index in 0..<5 {
      phone.push(payload("8d4f0c1e-6a53-4c39-9a53-0b0f6f8a2f0\(index)"))
      phone.tap(.answer)
      phone.advance(.milliseconds(100))
      try #require(app()).complete()
      phone.advance(.seconds(1))
      let call = try #require(phone.screen.calls.first?.id)
      try #require(app()).perform(.reportEnded(call, .remoteEnded))
      phone.advance(.seconds(1))
      #expect(phone.screen.calls.isEmpty)
      if index == 2 { phone.kill() }
    }
    #expect(phone.violations == [] && phone.recents.count == 5)
  }

  @Test func `END-4: a reset of the system reaches the phone, and its actions are forgotten`() throws {
    let (phone, app) = iphone()
    phone.push(payload())
    phone.tap(.answer)
    phone.advance(.milliseconds(100))
    phone.crash(.callServices)
    phone.advance(.seconds(1))
    let host = try #require(app())
    #expect(host.events.contains("reset"))
    host.complete()
    #expect(phone.violations == [])
  }

  @Test func `CFG-4, REC-1, REC-3: a tap in Recents gives the handle that the call had`() throws {
    let (phone, app) = iphone()
    phone.push(payload())
    phone.tap(.decline)
    phone.advance(.seconds(1))
    try #require(app()).complete()
    phone.advance(.seconds(1))
    let recent = try #require(phone.recents.first)
    let handle = Mutex<String?>(nil)
    phone.inApp {
      StandInApplication.onContinue { activity in
        let intent = activity.interaction?.intent as? INStartCallIntent
        handle.withLock { $0 = intent?.contacts?.first?.personHandle?.value }
      }
    }
    phone.tapRecent(recent)
    phone.advance(.seconds(1))
    #expect(handle.withLock { $0 } == "+15550001" && phone.violations == [])
  }
}
