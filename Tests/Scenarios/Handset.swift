import AppProtocol
import AppSessions
import AppleStandIn
import Bytes
import CallFlow
import ClientMachines
import JSONWebToken
import PushPolicy
import Testing

/// A telephone: the SDK's machine in an app's process that the system's machine starts, calls and kills; before the real gateway.
final class Handset: Device {
  unowned let world: World
  let device: String
  var media = MediaPlan()
  private(set) var system: SystemMachine
  /// Nil: the process does not run.
  private(set) var phone: PhoneMachine?
  /// From the system's order to a process that runs.
  var launchTime = Duration.milliseconds(300)
  /// From the first unlock on the app can read its token.
  var hasToken = true
  /// The app's own backend, asked for a token.
  var tokenTime = Duration.milliseconds(150)
  var isMediaUp = true
  /// Without it no socket opens.
  var isReachable = true
  /// Offers of media made anew.
  private(set) var restarts = 0
  /// The audio device refuses its configuration.
  var isAudioBroken = false
  var accounts: [String]?

  /// Each process has its own ids of requests: the gateway answers a repeated one from its store.
  private var launches: UInt64 = 0
  private(set) var posts: UInt64 = 0
  private var connection: ConnectionID?
  private var pushes: [SystemMachine.PushID: CallPush] = [:]
  private var transactions: [SystemMachine.TransactionID: SystemRequest] = [:]
  /// Orders to the system's machine and the phone's, one after the other.
  private var waiting: [() -> Void] = []
  private var isRunning = false

  // what a person, and a test, sees
  private(set) var violations: [String] = []
  private(set) var isAudioRunning = false
  private(set) var audio: [AudioOrder] = []
  /// The system's words about actions and audio, the phone's, and the orders to the audio device, in order.
  private(set) var steps: [String] = []
  private(set) var listening: CallID?
  private(set) var state = PhoneState.idle
  private(set) var infos: [CallID: CallInfo] = [:]
  /// What the screen was told of calls that this side made, and of the app's own screen.
  private(set) var outgoing: [String] = []
  private(set) var presented: [CallID] = []
  private(set) var updates: [CallID: [Handle]] = [:]
  private(set) var completed: [(action: SystemActionID, isDone: Bool)] = []
  private(set) var ends: [CallID: [CallEndedReason]] = [:]
  /// A push after the end is reported again, and ended again.
  private var reports: [CallID: Int] = [:]
  private var hasDoubleEnd: Bool { ends.contains { $0.value.count > max(1, reports[$0.key] ?? 0) } }

  init(_ world: World, device: String, rules: SystemRules = .strict) {
    (self.world, self.device) = (world, device)
    system = SystemMachine(rules, random: .seeded(11))
    world.handsets.append(self)
  }

  // MARK: the person

  func tap(_ tap: SystemMachine.Tap) { give(system: .tap(tap)) }
  func cellular(_ isOn: Bool) { give(system: .cellular(isOn)) }
  func dial(_ call: CallID, _ number: String) { give(.dial(call, to: Handle(k: .phone, h: number), from: nil)) }
  /// What the app's own buttons do.
  func wish(_ call: CallID, _ wish: PhoneMachine.Wish) { give(.wish(call, wish)) }
  /// The system's service for calls has crashed: it has forgotten all of them, and says so.
  func reset() {
    give(system: .exited)
    give(system: .launched)
    steps.append("system  didReset")
    give(.reset)
  }
  func logOut() { give(.logOut) }
  func route(_ route: SystemMachine.Route) { give(system: .route(route)) }
  func resetMediaServices() { give(.audioChanged(isReset: true)) }
  func moveNetwork() { give(.pathChanged) }
  func microphone(_ permission: MicrophonePermission) { give(.microphone(permission)) }
  func pushToken(_ token: DevicePut.Push?) { give(.pushToken(token)) }
  func background() {
    give(system: .foreground(false))
    give(.foreground(false))
  }
  func mediaFails(_ call: CallID) { give(.media(call, .failed(.ice, "no pair of candidates works"))) }
  var isOnline: Bool { connection != nil }
  /// The app is opened by hand.
  func open() {
    if phone == nil { launched() }
    give(system: .foreground(true))
    give(.foreground(true))
  }
  func kill() {
    give(system: .exited)
    died()
  }
  /// What the screen shows.
  var shown: [CallID] { system.calls.filter { $0.value.phase != .ended }.map(\.key) }

  // MARK: the network

  func pushArrived(_ push: CallPush) {
    let id = SystemMachine.PushID(pushes.count + 1)
    pushes[id] = push
    give(system: .push(id))
  }

  func receive(_ bytes: [UInt8], on id: ConnectionID) { if id == connection { give(.socket(.frame(bytes))) } }

  func closed(_ id: ConnectionID, _ code: CloseCode) {
    world.connections[id] = nil
    world.tell(.closed(id, code))
    guard id == connection else { return }
    connection = nil
    give(.socket(.socketClosed(code.rawValue)))
  }

  func mediaIsUp(_ call: CallID, gen: Int) {
    guard isMediaUp else { return }
    give(.media(call, .connected(generation: gen, pair: nil, roundTripMilliseconds: nil, profile: "AEAD_AES_128_GCM")))
  }

  /// With 4008 the next session is a fresh one.
  func drop(_ code: CloseCode = .abnormal) {
    guard let id = connection else { return }
    connection = nil
    world.connections[id] = nil
    world.tell(.closed(id, code == .abnormal ? nil : code))
    give(.socket(.socketClosed(code.rawValue)))
  }

  // MARK: the two machines

  private func run(_ order: @escaping () -> Void) {
    waiting.append(order)
    guard !isRunning else { return }
    isRunning = true
    defer { isRunning = false }
    while !waiting.isEmpty { waiting.removeFirst()() }
  }

  private func give(system input: SystemMachine.Input) {
    run { [self] in
      var out: [SystemMachine.Action] = []
      system.handle(input, at: world.now, into: &out)
      for action in out { perform(action) }
      wake(system.nextTimeout) { [self] in
        var out: [SystemMachine.Action] = []
        system.timeout(at: world.now, into: &out)
        for action in out { perform(action) }
      }
    }
  }

  private func give(_ input: PhoneMachine.Input) {
    run { [self] in
      guard phone != nil else { return }
      var out: [PhoneMachine.Action] = []
      phone?.handle(input, at: world.now, into: &out)
      for action in out { perform(action) }
      wake(phone?.nextDeadline) { [self] in give(.timer) }
    }
  }

  /// Should the machine still want it by then.
  private func wake(_ due: Instant?, _ order: @escaping () -> Void) {
    guard let due else { return }
    world.after(due - world.now) { [self] in run(order) }
  }

  private func launched() {
    var configuration = PhoneMachine.Configuration(device: Hello.Device(id: device, platform: "ios"))
    configuration.isForeground = false
    phone = PhoneMachine(configuration, random: .seeded(12 + launches))
    launches += 1
    give(.start)
    give(system: .launched)
  }

  private var token: String {
    (try? World.signer.sign(Claims(sub: "alice", dev: device, aud: ["trunkline"], exp: World.epoch + 86_400, acct: accounts)))
      ?? ""
  }

  private func died() {
    phone = nil
    (isAudioRunning, audio, transactions) = (false, [], [:])
    guard let id = connection else { return }
    connection = nil
    world.connections[id] = nil
    world.tell(.closed(id, nil))
  }

  private func perform(_ action: SystemMachine.Action) {
    switch action {
    case .launch: world.after(launchTime) { [self] in if phone == nil { launched() } }
    case .kill(let rule):
      violations.append("killed by \(rule.rawValue)")
      died()
    case .deliver(let id, let mustReport):
      guard let push = pushes[id] else { return }
      let caller = Handle(k: .phone, h: push.handle, n: push.name)
      give(.pushed(.init(call: push.call, caller: caller, wake: push.wake.exposed), mustReport: mustReport))
      // the delegate returns after what it did in its own turn
      run { [self] in give(system: .pushHandled(id)) }
    case .reported(let call, let error):
      let refusal: ReportRefusal? =
        switch error {
        case nil: nil
        case .alreadyExists?: .exists
        case .filteredByDoNotDisturb?: .doNotDisturb
        case .filteredByBlockList?: .blocked
        }
      world.after(.milliseconds(1)) { [self] in give(.reported(call, refusal)) }
    case .requested(let id, let error): if error != nil, let request = transactions[id] { give(.requestRefused(request)) }
    case .didBegin: break
    case .perform(let id, let request):
      steps.append("system  perform \(String(describing: request).prefix { $0 != "(" })")
      give(.perform(.init(id.raw), Self.request(request), timeout: time(for: request)))
    case .timedOut(let id, let request): give(.timedOut(.init(id.raw), Self.request(request)))
    case .didActivate:
      steps.append("system  didActivate")
      give(.audioActivated)
    case .didDeactivate:
      steps.append("system  didDeactivate")
      give(.audioDeactivated)
    case .violation(let rule, let text): violations.append("\(rule.rawValue): \(text)")
    case .mediaReset: give(.audioChanged(isReset: true))
    case .route(_, let rate): if rate > 0 { give(.audioChanged(isReset: false)) }
    case .reset, .extensionPushed, .startCall, .capture, .microphonePrompt, .socketsDie, .unlockedOnce: break
    }
  }

  private func perform(_ action: PhoneMachine.Action) {
    switch action {
    case .report(let call, let caller, _):
      reports[call, default: 0] += 1
      give(system: .report(call, .init(caller.h, name: caller.n)))
    case .updated(let call, let caller, _):
      updates[call, default: []].append(caller)
      give(system: .update(call, .init(caller.h, name: caller.n)))
    case .reportEnded(let call, let reason):
      steps.append("phone   ended \(reason.rawValue)")
      ends[call, default: []].append(reason)
      give(system: .reportEnded(call, Self.reason(reason)))
    case .reportConnecting(let call):
      outgoing.append("connecting")
      give(system: .reportConnecting(call))
    case .reportConnected(let call, let at):
      outgoing.append("connected at \((at ?? 0) - World.epoch * 1_000 > 0)")
      give(system: .reportConnected(call))
    case .request(let request):
      let id = SystemMachine.TransactionID(transactions.count + 1)
      transactions[id] = request
      give(system: .request(id, [Self.request(request)]))
    case .complete(let id, let isDone):
      completed.append((id, isDone))
      steps.append("phone   \(isDone ? "fulfil" : "fail")")
      give(system: .complete(.init(id.raw), isDone ? .fulfilled : .failed))
    case .socket(let order): perform(order)
    case .media(let call, .answer(_, let generation)): describe(call, generation, setup: "active")
    case .media(let call, .offer(let generation)):
      if generation > 1 { restarts += 1 }
      describe(call, generation, setup: "actpass")
    case .media: break
    case .audio(let order):
      audio.append(order)
      steps.append("device  \(order)")
      if isAudioBroken, order == .configure { give(.audioFailed(.configure)) }
      guard order == .start || order == .stop else { return }
      isAudioRunning = order == .start
      // the unit takes a moment
      let runs = isAudioRunning
      world.after(.milliseconds(15)) { [self] in if isAudioRunning == runs { give(.audioRuns(runs ? .running : .idle)) } }
    case .needsToken:
      let answer: PhoneMachine.Input = hasToken ? .token(token) : .tokenFailed
      world.after(tokenTime) { [self] in give(answer) }
    case .post(let reject, let call, let wake, _): post(reject, call, wake.exposed)
    case .listen(let call): listening = call
    case .state(let next): state = next
    case .changed(let info): infos[info.id] = info
    case .presentInApp(let call): presented.append(call)
    case .digit, .transferred, .loggedOut, .registered: break
    }
  }

  private func perform(_ order: ClientSession.Action) {
    switch order {
    case .connect:
      guard isReachable else {
        return world.after(.seconds(5)) { [self] in give(.socket(.socketClosed(CloseCode.abnormal.rawValue))) }
      }
      let id = world.newConnection(self)
      connection = id
      world.tell(.opened(id, IPAddress(192, 0, 2, 7)))
      world.after(world.appDelay) { [self] in if connection == id { give(.socket(.socketOpened)) } }
    case .write(let bytes):
      guard let id = connection else { return }
      world.after(world.appDelay) { [self] in if connection == id { world.tell(.frame(id, bytes)) } }
    case .close(let code): if let id = connection { closed(id, CloseCode(rawValue: code)) }
    case .event: break
    }
  }

  private func time(for request: SystemMachine.Request) -> Duration {
    switch request {
    case .answer: system.rules.answerTime
    case .start: system.rules.startTime
    default: system.rules.actionTime
    }
  }

  private func post(_ reject: CallReject, _ call: CallID, _ wake: String) {
    posts += 1
    let id = HTTPRequestID(posts)
    world.after(world.appDelay) { [self] in
      world.tell(.httpReject(id, call: call, bearer: wake, body: reject.json))
    }
  }

  private func describe(_ call: CallID, _ generation: Int, setup: String) {
    let sdp = App(world, device: device).sdp(setup: setup)
    world.after(.milliseconds(2)) { [self] in give(.media(call, .described(sdp: sdp, generation: generation))) }
  }

  // MARK: two vocabularies

  private static func request(_ request: SystemMachine.Request) -> SystemRequest {
    switch request {
    case .start(let id, let caller): .start(id, Handle(k: .phone, h: caller.handle))
    case .answer(let id): .answer(id)
    case .end(let id): .end(id)
    case .hold(let id, let isOn): .hold(id, isOn)
    case .mute(let id, let isOn): .mute(id, isOn)
    case .digits(let id, let digits): .digits(id, digits)
    case .group, .translate: preconditionFailure("no test groups or translates calls")
    }
  }
  private static func request(_ request: SystemRequest) -> SystemMachine.Request {
    switch request {
    case .start(let id, let peer): .start(id, .init(peer.h))
    case .answer(let id): .answer(id)
    case .end(let id): .end(id)
    case .hold(let id, let isOn): .hold(id, isOn)
    case .mute(let id, let isOn): .mute(id, isOn)
    case .digits(let id, let digits): .digits(id, digits)
    }
  }
  private static func reason(_ reason: CallEndedReason) -> SystemMachine.EndedReason {
    switch reason {
    case .failed: .failed
    case .remoteEnded: .remoteEnded
    case .unanswered: .unanswered
    case .answeredElsewhere: .answeredElsewhere
    case .declinedElsewhere: .declinedElsewhere
    }
  }

  var isClean: Bool {
    violations.isEmpty && shown.isEmpty && !hasDoubleEnd && !isAudioRunning
      && Set(completed.map(\.action)).count == completed.count && (phone?.liveCalls ?? []).isEmpty
  }

  /// Whatever happened: no strike, nothing on the screen, no action or timer left, and no sound.
  func check(_ location: SourceLocation) {
    #expect(violations == [], sourceLocation: location)
    #expect(shown == [], "calls are left on the screen", sourceLocation: location)
    #expect(!hasDoubleEnd, "an end was reported twice: \(ends)", sourceLocation: location)
    #expect(Set(completed.map(\.action)).count == completed.count, "an action was completed twice", sourceLocation: location)
    #expect(!isAudioRunning && !system.isAudioActive, "audio runs", sourceLocation: location)
    #expect(phone?.liveCalls ?? [] == [], "the phone has calls", sourceLocation: location)
    #expect(audio.isEmpty || audio.last == .release, "\(audio)", sourceLocation: location)
    kill()
  }
}
