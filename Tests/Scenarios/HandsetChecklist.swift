import AppleStandIn
import CallFlow
import CallModel
import Foundation
import Synchronization
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineCallDirectory
import TrunklineCallKit
import TrunklineClientMachines
import TrunklineSIPDialogs

@testable import PushPolicy

/// The points of the two checklists, once each: `ChecklistTests` names them as the documents do. Each asserts by itself, with the
/// SDK's adapter on a `StandInPhone`, or with the SDK's machine on the system's and the real gateway (`Handset`).
struct Checklist {
  // MARK: a telephone with the adapter's app

  final class Held: Sendable {
    private let app = Mutex<StandInApp?>(nil)
    func set(_ app: StandInApp) { self.app.withLock { $0 = app } }
    var value: StandInApp? { app.withLock { $0 } }
  }

  /// The app is installed; the first push starts it.
  static func iphone(_ rules: SystemRules = .strict, _ settings: CallKitSystem.Settings = .init()) -> (StandInPhone, Held) {
    let phone = StandInPhone(rules, clock: .virtual)
    let last = Held()
    phone.install {
      let app = StandInApp(settings)
      last.set(app)
      return app
    }
    return (phone, last)
  }

  static func payload(_ number: Int = 1) -> [String: Any] {
    [
      "aps": [:] as [String: Any], "call": "8d4f0c1e-6a53-4c39-9a53-0b0f6f8a2f0\(number)", "wake": "w",
      "from": ["k": "phone", "h": "+15550001", "n": "Jane Doe"],
    ]
  }

  /// Events of the log by name, in order.
  static func events(_ phone: StandInPhone) -> [String] {
    phone.log.compactMap { line in
      let words = line.split(separator: " ", maxSplits: 3)
      return words.count > 2 ? "\(words[1]) \(words[2])" : nil
    }
  }

  /// A call that was answered on the lock screen and is heard.
  static func answered(_ phone: StandInPhone, _ number: Int = 1) {
    phone.push(payload(number))
    phone.advance(.milliseconds(50))
    phone.tap(.answer)
    phone.advance(.seconds(1))
  }

  // MARK: a telephone before the gateway

  static func handset(_ rules: SystemRules = .strict) -> (World, Handset) {
    let world = World()
    world.killed("cell")
    return (world, Handset(world, device: "cell", rules: rules))
  }

  static func ringing(_ world: World, _ handset: Handset) throws -> (leg: LegID, call: CallID) {
    let leg = world.carrier.call()
    world.run(.seconds(1))
    return (leg, try #require(handset.shown.first { handset.system.calls[$0]?.phase == .ringing }))
  }

  // MARK: CallKit

  static func oneProvider() throws {
    let (phone, app) = iphone()
    for number in 1...4 {
      answered(phone, number)
      #expect(phone.screen.calls.map(\.phase) == [.active])
      phone.tap(.end)
      phone.advance(.seconds(1))
      if number == 2 { phone.kill() }
    }
    let events = events(phone)
    #expect(events.count { $0 == "app provider" } == 2 && events.count { $0 == "app launched" } == 2, "one for each launch")
    #expect(phone.violations == [] && phone.screen.calls.isEmpty && app.value != nil)
  }

  static func delegateFirst() throws {
    let (phone, _) = iphone()
    answered(phone)
    let events = events(phone)
    let delegate = try #require(events.firstIndex(of: "app hasDelegate"))
    #expect(delegate < (try #require(events.firstIndex(of: "app report"))))
    // R22 sees a report off the delegate's queue, R19 and R31 a call without a delegate
    #expect(!phone.log.contains { $0.contains("queue=other") } && phone.violations == [])
  }

  static func reportsBeforeReturn() throws {
    let (phone, app) = iphone()
    phone.lock()
    let payloads: [String] = ["{}", "nonsense", #"{"call":"x"}"#, #"{"call":null,"from":[]}"#, "[1,2]"]
    for text in payloads {
      phone.push(text)
      phone.advance(.seconds(8))
    }
    for number in [1, 1, 2, 3, 4] {
      phone.push(payload(number))
      phone.advance(.seconds(8))
    }
    try #require(app.value).logOut()
    phone.push(payload(5))
    phone.advance(.seconds(8))
    #expect(phone.isRunning && phone.violations == [] && events(phone).count { $0 == "system deliver" } == 11)
    #expect(try #require(app.value).isLoggedOut)
    // the stand-in would have reported it
    let bad = StandInPhone(.strict, clock: .virtual)
    bad.install { Silent() }
    for number in 1...4 {
      bad.push(payload(number))
      bad.advance(.seconds(8))
    }
    #expect(bad.violations.contains { $0.hasPrefix("R1") } && bad.violations.contains { $0.hasPrefix("R2") })
  }

  /// An app that receives pushes and reports none.
  private final class Silent: NSObject, PKPushRegistryDelegate {
    private let registry = PKPushRegistry(queue: DispatchQueue(label: "silent"))
    override init() {
      super.init()
      registry.delegate = self
      registry.desiredPushTypes = [.voIP]
    }
    func pushRegistry(_ registry: PKPushRegistry, didUpdate pushCredentials: PKPushCredentials, for type: PKPushType) {}
  }

  static func actionsAreCompleted() throws {
    // a hang-up, a refusal, media that fails, a loss of the network, a timeout, a reset: every action once, and each call ends
    for course in 0..<6 {
      var rules = SystemRules.strict
      if course == 4 { rules.answerTime = .seconds(4) }
      let (world, handset) = handset(rules)
      handset.isMediaUp = course != 2 && course != 4
      let (leg, call) = try ringing(world, handset)
      handset.tap(course == 1 ? .end(call) : .answer(call))
      world.run(.seconds(2))
      switch course {
      case 0:
        for tap in [SystemMachine.Tap.mute(call, true), .digits(call, "5"), .hold(call, true), .hold(call, false), .end(call)] {
          handset.tap(tap)
          world.run(.seconds(1))
        }
      case 2:
        handset.mediaFails(call)
        world.run(.seconds(1))
        handset.mediaFails(call)
      case 3:
        handset.tap(.hold(call, true))
        handset.drop()
        world.carrier.hangUp(leg)
      case 5: handset.reset()
      default: break
      }
      world.run(.seconds(40))
      world.carrier.cancel(leg)
      let actions = handset.steps.count { $0.hasPrefix("system  perform") }
      #expect(handset.completed.count == actions && handset.shown == [], "course \(course): \(handset.steps)")
      Invariants.check(world, abandoned: ["cell"])
    }
  }

  static func updateIsWhole() throws {
    let (phone, app) = iphone()
    phone.push(payload(7))
    phone.advance(.milliseconds(50))
    let incoming = try #require(phone.screen.incoming)
    #expect(incoming.title == "Jane Doe" && incoming.id == Identifier("8d4f0c1e-6a53-4c39-9a53-0b0f6f8a2f07"))
    let line = try #require(phone.log.first { $0.contains("app report") })
    #expect(line.contains("handle=+15550001"))
    // the app knows it by the same id
    #expect(try #require(app.value).infos[incoming.id]?.peer.n == "Jane Doe")
    phone.tap(.decline)
    phone.advance(.seconds(1))
    #expect(phone.recents.map(\.call) == [incoming.id] && phone.recents.first?.caller.name == "Jane Doe")
  }

  static func datesAreReal() throws {
    let (world, handset) = handset()
    handset.open()
    world.run(.seconds(1))
    let call = Identifier(high: 4, low: 2)
    handset.dial(call, "+15557654321")
    world.run(.milliseconds(25))
    #expect(handset.outgoing == [], "asked for is not connecting")
    world.run(.seconds(3))
    #expect(handset.outgoing == ["connecting", "connected at true"])
    handset.tap(.end(call))
    world.run(.seconds(1))
    // an unanswered call is never connected
    world.carrier.answers = [(.milliseconds(20), 486)]
    let second = Identifier(high: 4, low: 3)
    handset.dial(second, "+15557654321")
    world.run(.seconds(3))
    #expect(handset.outgoing.count { $0.hasPrefix("connected") } == 1 && handset.ends[second] == [.unanswered])
    Invariants.check(world, abandoned: ["cell"])
  }

  static func answerWaits() throws {
    let (world, handset) = handset()
    world.appDelay = .milliseconds(700)
    let leg = world.carrier.call()
    world.run(.milliseconds(500))
    let call = try #require(handset.shown.first)
    handset.tap(.answer(call))
    world.run(.seconds(1))
    #expect(handset.system.calls[call]?.phase == .answering && handset.completed.isEmpty, "the screen says connecting")
    world.run(.seconds(9))
    #expect(handset.completed.map(\.isDone) == [true] && world.carrier.final(leg) == 200)
    world.carrier.hangUp(leg)
    world.run(.seconds(2))
    Invariants.check(world, abandoned: ["cell"])
  }

  // MARK: audio

  static func startsWhenActivated() throws {
    var rules = SystemRules.strict
    rules.activationTime = .milliseconds(600)
    let (world, handset) = handset(rules)
    let (leg, call) = try ringing(world, handset)
    handset.tap(.answer(call))
    world.run(.milliseconds(500))
    #expect(handset.completed.map(\.isDone) == [true] && handset.audio == [.configure], "fulfilled, not activated")
    world.run(.seconds(1))
    let steps = handset.steps
    let activated = try #require(steps.firstIndex(of: "system  didActivate"))
    #expect(try #require(steps.firstIndex(of: "device  start")) > activated && handset.isAudioRunning)
    world.carrier.hangUp(leg)
    world.run(.seconds(2))
    Invariants.check(world, abandoned: ["cell"])
  }

  static func stopsWhenDeactivated() throws {
    let (world, handset) = handset()
    let (leg, call) = try ringing(world, handset)
    handset.tap(.answer(call))
    world.run(.seconds(2))
    #expect(handset.isAudioRunning)
    handset.cellular(true)
    world.run(.seconds(1))
    #expect(!handset.isAudioRunning && handset.audio == [.configure, .start, .stop], "interrupted, not given back")
    handset.cellular(false)
    handset.tap(.hold(call, false))
    world.run(.seconds(2))
    #expect(handset.isAudioRunning)
    world.carrier.hangUp(leg)
    world.run(.seconds(2))
    #expect(handset.audio == [.configure, .start, .stop, .start, .stop, .release] && !handset.system.isAudioActive)
    Invariants.check(world, abandoned: ["cell"])
  }

  static func categoryAndNoSetActive() throws {
    let (phone, app) = iphone()
    answered(phone)
    let session = phone.inApp { AVAudioSession.sharedInstance() }
    #expect(session.category == .playAndRecord && session.mode == .voiceChat)
    #expect(session.categoryOptions == [.allowBluetoothHFP, .allowBluetoothA2DP])
    phone.tap(.end)
    phone.advance(.seconds(1))
    let events = events(phone)
    #expect(!events.contains("app setActive") && events.count { $0 == "app setCategory" } == 1)
    #expect(events.contains("system didActivate") && phone.violations == [] && app.value?.audio.last == .release)
  }

  static func muteIsOfTheMicrophone() throws {
    var settings = CallKitSystem.Settings()
    settings.translates = true
    let (phone, app) = iphone(.strict, settings)
    answered(phone)
    let host = try #require(app.value)
    let call = try #require(phone.screen.calls.first?.id)
    phone.inApp {
      let action = CXSetTranslatingCallAction(
        call: UUID(uuidString: "\(call)") ?? UUID(), isTranslating: true, localLanguage: "en", remoteLanguage: "de")
      CXCallController(queue: DispatchQueue(label: "translation")).request(CXTransaction(action: action)) { _ in }
    }
    phone.advance(.seconds(1))
    #expect(phone.log.contains { $0.contains("perform") && $0.contains("translate") }, "\(phone.log.suffix(5))")
    let before = host.audio
    phone.tap(.mute(true))
    phone.advance(.seconds(1))
    #expect(phone.screen.calls.first?.isMuted == true && host.infos[call]?.isMuted == true)
    // the device continues, the call is not held, and the other side is heard
    #expect(host.audio == before && host.audio == [.configure, .start] && host.received(.callHold) == 0)
    guard case .mute(true) = host.media.last else { return #expect(Bool(false), "\(host.media)") }
    phone.advance(.seconds(10))
    #expect(phone.violations == [], "every action is completed")
  }

  // MARK: pushes

  static func tokenAtEveryUpdate() throws {
    let (phone, app) = iphone()
    answered(phone)
    let host = try #require(app.value)
    #expect(host.received(.devicePut) == 1)
    guard case .devicePut(let put)? = host.received.last(where: { $0.type == .devicePut }) else { return #expect(Bool(false)) }
    #expect(put.push?.kind == .apnsVoIP && put.push?.token.count == 64)
    #expect(put.push?.token.allSatisfy { "0123456789abcdef".contains($0) } == true)
    phone.tap(.end)
    phone.advance(.seconds(1))
    // every launch registers the token again, and so does every new token (HandsetRequirementTests has the gateway's side)
    phone.kill()
    answered(phone, 2)
    #expect(try #require(app.value).received(.devicePut) == 1)
  }

  static func registryAtEveryLaunch() throws {
    let (phone, _) = iphone()
    for number in 1...3 {
      phone.push(payload(number))
      phone.advance(.seconds(8))
      #expect(phone.screen.incoming != nil)
      phone.tap(.decline)
      phone.advance(.seconds(1))
      phone.kill()
    }
    let events = events(phone)
    #expect(events.count { $0 == "app launched" } == 3 && events.count { $0 == "app wantsPushes" } == 3)
    let delegate = try #require(events.firstIndex(of: "app wantsPushes"))
    #expect(delegate < (try #require(events.firstIndex(of: "system deliver"))) && phone.violations == [])
  }

  static func mustReportIsObeyed() throws {
    var rules = SystemRules.strict
    rules.mustReport = .unlessActive
    let (phone, app) = iphone(rules)
    answered(phone)
    phone.push(payload(2))
    phone.advance(.seconds(8))
    #expect(phone.log.contains { $0.contains("system deliver") && $0.contains("mustReport=false") })
    let completed = events(phone).count { $0 == "app pushCompleted" }
    #expect(completed == 2 && phone.violations == [] && phone.isRunning && app.value != nil)
    // before iOS 26.4 there is no metadata: the older method is called, and each push is reported
    rules.hasPushMetadata = false
    let (older, _) = iphone(rules)
    answered(older)
    older.push(payload(2))
    older.advance(.seconds(8))
    #expect(older.screen.incoming?.id == Identifier("8d4f0c1e-6a53-4c39-9a53-0b0f6f8a2f02") && older.violations == [])
  }

  static func pushesDoNotWait() throws {
    var provider = APNsProvider(.certificate(name: "voip"))
    let call = Identifier(high: 1, low: 1)
    let (world, _) = handset()
    let content = Mutex<CallPush?>(nil)
    world.pushContent = { push in content.withLock { $0 = push } }
    let leg = world.carrier.call()
    world.run(.seconds(1))
    let push = try #require(content.withLock { $0 })
    let step = try provider.request(
      PushAttempt(
        key: PushKey(call: call, user: "alice", device: "cell"),
        target: PushTarget(.apns, token: String(repeating: "0a", count: 32), topic: "org.example.voip"), content: push,
        withCaller: true, now: World.epoch, secondsLeft: 40, random: .seeded(1)))
    guard case .send(let request) = step else { return #expect(Bool(false)) }
    #expect(
      request.headers.contains { $0 == ("apns-expiration", "0") } && request.headers.contains { $0 == ("apns-push-type", "voip") }
    )
    world.carrier.cancel(leg)
    world.run(.seconds(20))
    Invariants.check(world, abandoned: ["cell"])
  }

  static func onePushForACall() throws {
    for course in 0..<3 {
      let (world, handset) = handset()
      let (leg, call) = try ringing(world, handset)
      #expect(world.pushes.count == 1)
      switch course {
      case 0: world.give(.callerKnown(call, Handle(k: .phone, h: "+15550000042", n: "Jane Doe")))
      case 1: world.carrier.cancel(leg)
      default:
        handset.tap(.answer(call))
        world.run(.seconds(2))
        handset.moveNetwork()
      }
      world.run(.seconds(3))
      #expect(world.pushes.count == 1, "what is learnt later comes by the connection")
      if course == 0 { #expect(handset.updates[call]?.last?.n == "Jane Doe") }
      if course == 1 { #expect(handset.ends[call] == [.remoteEnded]) }
      if course == 2 { world.carrier.hangUp(leg) } else { world.carrier.cancel(leg) }
      world.run(.seconds(3))
      Invariants.check(world, abandoned: ["cell"])
    }
  }

  // MARK: the call directory

  /// An extension as an app's author writes it, its store and iOS.
  private final class Directory {
    final class Provider: TrunklineCallDirectoryProvider {
      let path: String
      init(_ path: String) {
        self.path = path
        super.init()
      }
      override var identifier: String { Directory.name }
      override func folder() throws(DirectoryError) -> DirectoryFolder { DirectoryFolder(path: path) }
    }
    static let name = "example.app.directory"
    let path = NSTemporaryDirectory() + "checklist-" + UUID().uuidString
    let store: DirectoryStore
    let manager = CXCallDirectoryManager(rules: CallDirectoryRules())
    private final class Count: Sendable {
      let value = Mutex(0)
    }
    private let count = Count()
    /// How often iOS has started the extension.
    var runs: Int { count.value.withLock { $0 } }

    init() throws {
      store = try DirectoryStore(folder: DirectoryFolder(path: path), extensions: [Self.name], entriesPerExtension: 1_000)
      manager.install(Self.name) { [count, path] in
        count.value.withLock { $0 += 1 }
        return Provider(path)
      }
    }
    deinit { try? FileManager.default.removeItem(atPath: path) }
  }

  private static func number(_ text: String) throws -> PhoneNumber {
    try #require(PhoneNumber(text, plan: NumberingPlan(callingCode: 1, trunkPrefix: "1", internationalPrefixes: ["011"])))
  }

  static func numbersAscend() async throws {
    #expect(try number("+1 (555) 000-1234").value == 15_550_001_234)
    let directory = try Directory()
    // as apps have them: unsorted, and twice
    let texts = ["+1 555 000 9999", "555-000-1000", "+49 30 123456", "+15550001000", "(555) 000 5000"]
    try directory.store.replace(with: texts.map { DirectoryEntry(try number($0), label: $0) })
    let extensions = DirectoryExtensions(directory.store, manager: directory.manager)
    #expect(await extensions.reload().map(\.failure) == [nil], "out of order is error 3, twice is error 4")
    for text in texts {
      let value = try number(text).value
      #expect(directory.manager.change { $0.match(value) }.label != nil, "\(text)")
    }
  }

  static func nothingIsLookedUp() async throws {
    let directory = try Directory()
    try directory.store.replace(with: [DirectoryEntry(try number("+15550001000"), label: "Bank")])
    let extensions = DirectoryExtensions(directory.store, manager: directory.manager)
    _ = await extensions.reload()
    let runs = directory.runs
    // a hundred calls: iOS reads the loaded entries, and starts no process
    let known = try number("+15550001000").value
    for _ in 0..<100 { #expect(directory.manager.change { $0.match(known) }.label == "Bank") }
    #expect(directory.runs == runs && runs == 1)
  }

  static func statusSettingsReload() async throws {
    let directory = try Directory()
    let extensions = DirectoryExtensions(directory.store, manager: directory.manager)
    try directory.store.replace(with: [DirectoryEntry(try number("+15550001000"), label: "Bank")])
    directory.manager.change { $0.set(Directory.name, .disabled) }
    #expect(await extensions.status().map(\.position) == [.off])
    #expect(await extensions.reload().map(\.failure?.nextStep) == [.enable])
    try await extensions.openSettings()
    #expect(directory.manager.settingsOpened == 1)
    directory.manager.change { $0.set(Directory.name, .enabled) }
    #expect(await extensions.reload().map(\.failure) == [nil])
    let known = try number("+15550001000").value
    #expect(directory.manager.change { $0.match(known) }.label == "Bank")
  }
}
