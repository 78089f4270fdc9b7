import AppSessions
import CallFlow
import CallModel
import JSONWebToken
import PushPolicy
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

@testable import AppleStandIn
@testable import TrunklineClient

/// A telephone: the SDK's machine in an app's process that the system's machine starts, calls and kills, with the real gateway.
final class Handset: Device {
  unowned let world: World
  let device: String
  var media = MediaPlan()
  var system: SystemMachine
  /// Nil: the process does not run.
  var phone: PhoneMachine?
  /// Time from the system's request to a process that runs.
  var launchTime = Duration.milliseconds(300)
  /// From the first unlock on the app can read its token.
  var hasToken = true
  /// Time that the app's own backend needs for a token.
  var tokenTime = Duration.milliseconds(150)
  /// Replaces `hasToken` and `tokenTime`.
  var backend: TokenBackend?
  /// The last notification of the app about its tokens: there is none, or it does not help.
  var hasTokenFault = false
  var traffic: Traffic?
  var isMediaUp = true
  /// The audio device refuses its configuration.
  var isAudioBroken = false
  var accounts: [String]?
  /// While it is down nothing from the gateway reaches the phone, and no socket opens; later messages are kept until it is up.
  var isLinkUp = true {
    didSet {
      guard isLinkUp else { return }
      let late = held
      held = []
      for work in late { work() }
    }
  }
  /// One of the source documents' own wrong snippets, instead of what the SDK does.
  var snippet: Snippet?
  enum Snippet { case reportInTask, fulfilAtOnce, setActive }

  /// The traces as the SDK keeps them, one for each process; empty unless `records`.
  var traces: [PhoneTrace] = []
  var records = false

  /// Each process has its own ids of requests: the gateway answers a repeated one from its store.
  var launches: UInt64 = 0
  var posts: UInt64 = 0
  var connection: ConnectionID?
  var held: [() -> Void] = []
  /// Nil: an unreadable payload.
  var pushes: [SystemMachine.PushID: CallPush?] = [:]
  var transactions: [SystemMachine.TransactionID: SystemRequest] = [:]
  /// Requests to the system's machine and the phone's, one after the other.
  var waiting: [() -> Void] = []
  var isRunning = false
  /// When each machine's timer is set for.
  var systemDue: Instant?
  var phoneDue: Instant?

  // what a person, and a test, sees
  var violations: [String] = []
  var isAudioRunning = false
  var audio: [AudioRequest] = []
  /// The system's events about actions and audio, the phone's, and the requests to the audio device, in order.
  var steps: [String] = []
  /// The number of offers that restart media.
  var restarts = 0
  var listening: CallID?
  var mixing: [CallID] = []
  var state = PhoneState.idle
  var infos: [CallID: CallInfo] = [:]
  /// What the screen was notified of: calls that this side made, and the app's own screen.
  var outgoing: [String] = []
  var presented: [CallID] = []
  var updates: [CallID: [Handle]] = [:]
  var completed: [(action: SystemActionID, isDone: Bool)] = []
  var ends: [CallID: [CallEndedReason]] = [:]
  /// Reports of the app, and those that the system accepted. A push after the end is reported again, and ended again.
  var reports: [CallID: Int] = [:]
  var accepted: [CallID: Int] = [:]
  /// The callers that the reports named.
  var callers: [Handle] = []
  var pushed: [CallID: Int] = [:]
  /// The newest generation of each call's media, and whose media is closed.
  var described: [CallID: Int] = [:]
  var closedMedia: Set<CallID> = []
  /// The newest generation whose media is up.
  var ready: [CallID: Int] = [:]
  var actions: [SystemActionID: SystemMachine.Request] = [:]
  /// When a call was first heard: without `didActivate` audio starts a second later.
  var heardAt: Instant?

  init(_ world: World, device: String, rules: SystemRules = .strict) {
    (self.world, self.device) = (world, device)
    system = SystemMachine(rules, random: .seeded(11))
    world.handsets.append(self)
  }

  // MARK: the network

  func pushArrived(_ push: CallPush) {
    traffic?.happened(world.now)
    traffic?.note(.push, world.now)
    let id = SystemMachine.PushID(pushes.count + 1)
    pushes[id] = push
    pushed[push.call, default: 0] += 1
    give(system: .push(id))
  }
  func unreadablePushArrived() {
    let id = SystemMachine.PushID(pushes.count + 1)
    pushes[id] = .some(nil)
    give(system: .push(id))
  }
  var isActivationDue: Bool { system.activatesAt != nil }
  /// Activates audio now, if the system is about to do so.
  func activateNow() {
    guard system.activatesAt != nil else { return }
    system.activatesAt = world.now
    wakeSystem()
  }

  func receive(_ bytes: [UInt8], on id: ConnectionID) {
    if let traffic {
      traffic.note(.received, world.now)
      if case .message(.err(let failure))? = try? ServerFrame(decoding: bytes).body { traffic.refused(failure.code) }
    }
    whenLinked(id) { [self] in give(.socket(.frame(bytes))) }
  }

  func whenLinked(_ id: ConnectionID, _ work: @escaping () -> Void) {
    guard isLinkUp else { return held.append { [self] in whenLinked(id, work) } }
    if id == connection { work() }
  }

  func closed(_ id: ConnectionID, _ code: CloseCode) {
    world.connections[id] = nil
    world.tell(.closed(id, code))
    whenLinked(id) { [self] in
      connection = nil
      give(.socket(.socketClosed(code.rawValue)))
    }
  }

  /// The media threads count reloads too; the phone knows the generation that it described last.
  func mediaIsUp(_ call: CallID, gen: Int) {
    guard isMediaUp, let generation = described[call], !closedMedia.contains(call) else { return }
    ready[call] = generation
    give(.media(call, .connected(generation: generation, pair: nil, roundTripMilliseconds: nil, profile: "AEAD_AES_128_GCM")))
  }

  /// The socket breaks. After 4008 the next session is a fresh one.
  func drop(_ code: CloseCode = .abnormal) {
    guard let id = connection else { return }
    connection = nil
    world.connections[id] = nil
    world.tell(.closed(id, code == .abnormal ? nil : code))
    give(.socket(.socketClosed(code.rawValue)))
  }

  // MARK: the two machines

  func run(_ work: @escaping () -> Void) {
    waiting.append(work)
    guard !isRunning else { return }
    isRunning = true
    defer { isRunning = false }
    while !waiting.isEmpty { waiting.removeFirst()() }
  }

  func give(system input: SystemMachine.Input) {
    run { [self] in
      var out: [SystemMachine.Action] = []
      system.handle(input, at: world.now, into: &out)
      for action in out { perform(action) }
      wakeSystem()
    }
  }

  func give(_ input: PhoneMachine.Input) {
    run { [self] in
      guard phone != nil else { return }
      var out: [PhoneMachine.Action] = []
      traces.last?.note(input, world.now)
      phone?.handle(input, at: world.now, into: &out)
      if case .timer = input { Invariants.timer(phone?.nextDeadline, world.now, "the phone") }
      for action in out {
        traces.last?.note(action, world.now)
        perform(action)
      }
      wakePhone()
    }
  }

  /// One timer for each machine; an earlier deadline sets another, and the first one is ignored then.
  func wakeSystem() {
    guard let due = system.nextTimeout, systemDue.map({ due < $0 }) ?? true else { return }
    systemDue = due
    world.after(due - world.now) { [self] in
      guard systemDue == due else { return }
      systemDue = nil
      run { [self] in
        var out: [SystemMachine.Action] = []
        system.timeout(at: world.now, into: &out)
        Invariants.timer(system.nextTimeout, world.now, "the system")
        for action in out { perform(action) }
        wakeSystem()
      }
    }
  }

  func wakePhone() {
    guard let due = phone?.nextDeadline, phoneDue.map({ due < $0 }) ?? true else { return }
    phoneDue = due
    world.after(due - world.now) { [self] in
      guard phoneDue == due else { return }
      phoneDue = nil
      give(.timer)
    }
  }

  func launched() {
    var configuration = PhoneMachine.Configuration(device: Hello.Device(id: device, platform: "ios"))
    configuration.isForeground = false
    if records { traces.append(PhoneTrace(system: "CallKitSystem", groups: configuration.maximumCalls)) }
    phone = PhoneMachine(configuration, random: .seeded(12 + launches))
    launches += 1
    traffic?.launched()
    give(.start)
    if system.isCellularCall { traces.last?.note(.interrupted(true), world.now) }
    give(system: .launched)
  }

  var token: String { token(expires: World.epoch + 86_400) }
  func token(expires: Int64) -> String {
    (try? World.signer.sign(Claims(sub: "alice", dev: device, aud: ["trunkline"], exp: expires, acct: accounts))) ?? ""
  }

  /// If the process has ended meanwhile, no answer arrives.
  func askBackend() {
    traffic?.note(.tokenRequest, world.now)
    let process = launches
    guard backend != nil else {
      let answer: PhoneMachine.Input = hasToken ? .token(token) : .tokenFailed
      return world.after(tokenTime) { [self] in if launches == process { give(answer) } }
    }
    let unix = World.epoch + world.now.nanoseconds / 1_000_000_000
    guard let (token, delay) = backend?.answer({ token(expires: $0) }, now: unix) else { return }
    let answer: PhoneMachine.Input = token.map { .token($0.text, expires: $0.expires) } ?? .tokenFailed
    world.after(delay) { [self] in
      guard launches == process else { return }
      // the SDK shows the error of a token function that throws or hangs
      hasTokenFault = token == nil
      give(answer)
    }
  }

  func died() {
    phone = nil
    (isAudioRunning, audio, transactions) = (false, [], [:])
    (described, closedMedia, state) = ([:], [], .idle)
    guard let id = connection else { return }
    connection = nil
    world.connections[id] = nil
    world.tell(.closed(id, nil))
  }

  func fulfilled(_ id: SystemActionID) {
    if case .answer(let call)? = actions[id] { lookAtAnswer(of: call) }
  }

  /// The snippet's own handling of the action, before the SDK receives it.
  func wrong(_ snippet: Snippet, _ id: SystemMachine.ActionID) {
    switch snippet {
    case .reportInTask: break
    case .fulfilAtOnce:
      fulfilled(.init(id.raw))
      give(system: .complete(id, .fulfilled))
    case .setActive: give(system: .activatedAudioItself)
    }
  }

  func perform(_ action: SystemMachine.Action) {
    switch action {
    case .launch: world.after(launchTime) { [self] in if phone == nil { launched() } }
    case .kill(let rule):
      violations.append("killed by \(rule.rawValue)")
      died()
    case .deliver(let id, let mustReport):
      guard let known = pushes[id] else { return }
      let push = known.map {
        PhoneMachine.Push(call: $0.call, caller: Handle(k: .phone, h: $0.handle, n: $0.name), wake: $0.wake.exposed)
      }
      give(.pushed(push, mustReport: mustReport))
      // the delegate returns after what it did in its own step
      run { [self] in
        give(system: .pushHandled(id))
        if phone != nil { traces.last?.pushHandled(world.now) }
      }
    case .reported(let call, let error):
      if error == nil { accepted[call, default: 0] += 1 }
      let refusal: ReportRefusal? =
        switch error {
        case nil: nil
        case .alreadyExists?: .exists
        case .filteredByDoNotDisturb?: .doNotDisturb
        case .filteredByBlockList?: .blocked
        }
      world.after(.milliseconds(1)) { [self] in give(.reported(call, refusal)) }
    case .requested(let id, let error):
      guard let request = transactions[id] else { return }
      traces.last?.note(.requested(request, error: error?.rawValue), world.now)
      if error != nil { give(.requestRefused(request)) }
    case .didBegin: if phone != nil { traces.last?.note(.began, world.now) }
    case .perform(let id, let request):
      actions[.init(id.raw)] = request
      steps.append("system  perform \(String(describing: request).prefix { $0 != "(" })")
      if case .answer = request, let snippet { wrong(snippet, id) }
      give(.perform(.init(id.raw), Self.request(request), timeout: time(for: request)))
    case .timedOut(let id, let request): give(.timedOut(.init(id.raw), Self.request(request)))
    case .didActivate:
      steps.append("system  didActivate")
      give(.audioActivated)
    case .didDeactivate:
      steps.append("system  didDeactivate")
      give(.audioDeactivated)
    case .violation(let rule, let text): violations.append("\(rule.rawValue): \(text)")
    case .reset:
      steps.append("system  didReset")
      give(.reset)
    case .mediaReset: give(.audioChanged(isReset: true))
    case .route(_, let rate): if rate > 0 { give(.audioChanged(isReset: false)) }
    case .extensionPushed, .startCall, .capture, .microphonePrompt, .socketsDie, .unlockedOnce: break
    }
  }
}
