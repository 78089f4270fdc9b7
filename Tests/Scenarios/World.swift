import AppSessions
import Cluster
import GatewayCore
import JSONWebToken
import PushPolicy
import Testing
import Trunking
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSDP
import TrunklineSIP
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

/// What carries the gateway's messages and answers its questions.
protocol Ground: AnyObject {
  func send(_ bytes: [UInt8], _ flow: Flow)
  /// A message of the carrier; `flow` is as the carrier sees it.
  func answer(_ bytes: [UInt8], _ flow: Flow)
  func lookUp(_ question: DNSQuestion)
  func keepAlive(_ flow: Flow)
  func tell(_ news: TrunkNews)
  func silent(_ flow: Flow, since: Instant)
}

/// The whole gateway on virtual time: the real `GatewayCore` and the session machine, wired as the runtime wires
/// them. Around it a carrier (a second user agent), apps that speak frames, and media threads that follow a script. One seed
/// is one run.
final class World {
  static let keys = try! KeySet(.HS256, keyFile: Array("a secret of at least thirty-two bytes".utf8))
  static let signer = try! TokenSigner(keys: keys)
  static let epoch: Int64 = 1_700_000_000
  static let gatewayAddress = SocketAddress(IPAddress(198, 51, 100, 9), 5_060)
  static let carrierAddress = SocketAddress(IPAddress(203, 0, 113, 7), 5_060)
  static let number = "+15551230001"

  var now = Instant(nanoseconds: 1_000_000_000)
  /// The next event last; of two at the same time the older one comes first.
  private var queue: [(at: Instant, run: () -> Void)] = []
  var sipDelay = Duration.milliseconds(5)
  var appDelay = Duration.milliseconds(10)

  // the gateway
  var core: GatewayCore { didSet { coreDeadline = nil } }
  var sessions: SessionMachine { didSet { sessionDeadline = nil } }
  /// Read before each step, and kept until the machine changes: without optimisation reading copies it.
  private var coreDeadline: Instant??
  private var sessionDeadline: Instant??
  private(set) var refusedHTTP: [Failure] = []
  var machine: CallMachine { core.machine }
  /// Without the summaries, which are sorted copies: read after each step.
  var hasCalls: Bool { core.machine.calls.count > 0 }
  var userAgent: UserAgent { core.userAgent }
  private var waiting: [GatewayCore.Input] = []
  private var isRunning = false

  // around it
  lazy var carrier = Carrier(self)
  lazy var media = MediaScript(self)
  var apps: [App] = []
  var handsets: [Handset] = []
  var connections: [ConnectionID: any Device] = [:]
  private var nextConnection: UInt64 = 1

  // what the invariants inspect
  var records: [CallRecord] = []
  private var operationAnswers: [QuestionID: OperationAnswer] = [:]
  private var lastQuestion: UInt64 = 0
  var refusals: [Refusal] = []
  var traces: [(call: CallID, stage: CallStage, at: Instant)] = []
  var measurements: [Measurement] = []
  /// Final responses to INVITEs on the wire, by Call-ID.
  var finals: [String: Set<Int>] = [:]
  /// CSeq of each Call-ID's first INVITE to the gateway.
  var firstSequences: [String: String] = [:]
  var sentINVITEs: Set<String> = []
  var receivedINVITEs: Set<String> = []
  var refusesMedia = false
  /// What the push service does to a push, after how long, and whether the device gets it.
  var pushService: (PushKey) -> (after: Duration, outcome: PushReport.Outcome, arrives: Bool)? = { _ in
    (.milliseconds(40), .accepted, true)
  }
  var pushes: [(key: PushKey, at: Instant)] = []
  /// The tokens that were pushed to.
  var pushTargets: [String] = []
  /// Each push as it leaves, for a test that delivers it itself.
  var pushContent: (CallPush) -> Void = { _ in }
  /// Replaces `pushService`, and the way to the device.
  var pushSender: ((PushKey, PushTarget, CallPush) -> Void)?
  /// The verdict of the verifier of caller identities, and its delay; and the queries that it got.
  var verifier: (IdentityQuestion) -> (String?, Duration) = { _ in (nil, .milliseconds(50)) }
  var questions: [IdentityQuestion] = []
  /// INVITEs of the gateway as they left.
  var invites: [String] = []
  /// Messages of the gateway that get lost on the way.
  var loses: ([UInt8]) -> Bool = { _ in false }

  /// What this machine does to a message that the gateway sends. nil: it is sent; else a system error: ENOBUFS, which the
  /// transport counts as a lost packet, or one that it reports (EPERM, ENETUNREACH, EHOSTDOWN).
  enum SendFault { case silent, told }
  var sendFault: () -> SendFault? = { nil }
  /// The network between the gateway and all others, instead of a wire that carries everything.
  var ground: (any Ground)?

  /// Start lines on disk: what a process that dies leaves.
  var journal: [CallID: JournalEntry] = [:]
  /// The requests of the cluster machine; and a `call.wake` that arrived at an app.
  var onCluster: (ClusterMachine.Action) -> Void = { _ in }
  var onWake: (App, CallWake) -> Void = { _, _ in }

  init(
    seed: UInt64 = 1, cluster: ClusterMachine? = nil, sessionCluster: SessionCluster? = nil,
    network: TrunkMachine.Network? = nil,
    configure: (inout CallConfiguration, inout Routing) -> Void = { _, _ in }
  ) {
    let wakes = sessionCluster?.wakeTokens ?? WakeTokens(random: .seeded(seed &+ 3))
    var settings = SessionSettings(
      verifier: TokenVerifier(keys: Self.keys, audience: "trunkline"), users: ["alice", "bob", "carol"], wakeTokens: wakes)
    settings.cluster = sessionCluster
    sessions = SessionMachine(settings: settings, random: .seeded(seed &+ 1))
    var configuration = CallConfiguration()
    configuration.push = wakes.map { PushSettings(gateway: "wss://gw", wakes: $0) }
    let peer = TrunkPeer(
      name: "carrier", domain: Self.carrierAddress.description,
      flow: Flow(transport: .udp, local: Self.gatewayAddress, remote: Self.carrierAddress))
    var routing = Routing(
      trunks: [.init(name: "carrier", peer: peer)], users: [.init(id: "alice", numbers: [Self.number])],
      inbound: [.init(trunk: "carrier", target: .users)], outbound: [.init(prefix: "+", trunk: "carrier")])
    configure(&configuration, &routing)
    core = GatewayCore(
      userAgent: UserAgent(random: .seeded(seed)),
      machine: CallMachine(configuration: configuration, routing: routing, random: .seeded(seed &+ 2), network: network),
      cluster: cluster)
    sessions.setWallClock(unixMilliseconds: Self.epoch * 1_000, at: now)
    give(.wallClock(offsetMilliseconds: Self.epoch * 1_000 - 1_000))
  }

  // MARK: time

  func after(_ delay: Duration, _ run: @escaping () -> Void) {
    let at = now + delay
    var index = queue.count
    while index > 0, queue[index - 1].at <= at { index -= 1 }
    queue.insert((at, run), at: index)
  }

  /// Runs what is due until `duration` has passed.
  func run(_ duration: Duration) {
    let end = now + duration
    var turns = 0
    while let next = nextTime, next <= end {
      now = max(now, next)
      step()
      turns += 1
      if turns > 200_000 {
        Issue.record("a deadline does not move")
        return
      }
    }
    now = end
  }

  private var nextOfCore: Instant? {
    let deadline: Instant? = coreDeadline ?? core.nextDeadline
    coreDeadline = deadline
    return deadline
  }
  private var nextOfSessions: Instant? {
    let deadline: Instant? = sessionDeadline ?? sessions.nextDeadline
    sessionDeadline = deadline
    return deadline
  }

  var nextTime: Instant? {
    // read before each step: no array for it
    .earliest(.earliest(nextOfCore, carrier.agent.nextDeadline), .earliest(nextOfSessions, queue.last?.at))
  }

  func step() {
    if let next = queue.last, next.at <= now {
      queue.removeLast().run()
    } else if let due = nextOfCore, due <= now {
      run(.timer)
    } else if let due = nextOfSessions, due <= now {
      tell(.timer)
    } else {
      carrier.handle(.timer)
    }
  }

  // MARK: the gateway, wired

  func signal(_ input: UserAgent.Input) { run(.sip(input)) }
  func give(_ input: CallMachine.Input) { run(.call(input)) }

  /// The request of a program or an operator; nil: there is no answer yet.
  @discardableResult func operate(_ input: (QuestionID) -> CallMachine.Input) -> OperationAnswer? {
    lastQuestion += 1
    let question = QuestionID(lastQuestion)
    give(input(question))
    return operationAnswers[question]
  }
  func give(cluster input: ClusterMachine.Input) { run(.cluster(input)) }

  /// One input of the core, after those that are under way.
  private func run(_ input: GatewayCore.Input) {
    waiting.append(input)
    guard !isRunning else { return }
    isRunning = true
    defer { isRunning = false }
    while !waiting.isEmpty {
      var output = GatewayCore.Output()
      let input = waiting.removeFirst()
      core.handle(input, at: now, into: &output) { media.reserve($0) }
      if case .timer = input { Invariants.timer(core.nextDeadline, now, "the gateway's core") }
      for effect in output.effects { perform(effect) }
    }
  }

  private func perform(_ effect: GatewayCore.Effect) {
    switch effect {
    case .sendSIP(let message): send(message.bytes, message.flow)
    case .action(let action): perform(action)
    case .cluster(let action): onCluster(action)
    case .silent(let flow, let since): ground?.silent(flow, since: since)
    case .authenticated, .challengeRefused: break
    }
  }

  private func send(_ bytes: [UInt8], _ flow: Flow) {
    Invariants.look(at: bytes, fromGateway: true, self)
    if bytes.starts(with: "INVITE ".utf8) { invites.append(String(decoding: bytes, as: UTF8.self)) }
    if let ground { return ground.send(bytes, flow) }
    if let fault = sendFault() {
      if fault == .told { after(.zero) { [unowned self] in signal(.transportFailed(flow)) } }
      return
    }
    if loses(bytes) { return }
    after(sipDelay) { [unowned self] in carrier.receive(bytes) }
  }

  /// One input of the session machine.
  func tell(_ input: SessionMachine.Input) {
    var output = SessionMachine.Output()
    sessions.handle(input, at: now, into: &output)
    if case .timer = input { Invariants.timer(sessions.nextDeadline, now, "the session machine") }
    for action in output.actions {
      switch action {
      case .send(let id, let bytes): after(appDelay) { [unowned self] in connections[id]?.receive(bytes, on: id) }
      case .ping(let id): after(appDelay) { [unowned self] in if connections[id] != nil { tell(.alive(id)) } }
      case .close(let id, let code): after(appDelay) { [unowned self] in connections[id]?.closed(id, code) }
      case .httpRefused(_, let failure): refusedHTTP.append(failure)
      case .httpAnswer, .httpRedirect, .httpLogin: break
      }
    }
    for event in output.events { give(.app(event)) }
  }

  private func perform(_ action: CallMachine.Action) {
    switch action {
    case .app(let command): tell(.command(command))
    case .media(let command): media.handle(command)
    case .journal(let line):
      after(.milliseconds(3)) { [unowned self] in
        if !records.contains(where: { $0.call == line.call }) { journal[line.call] = line }
        give(.journalled(line.call))
      }
    case .record(let record):
      records.append(record)
      journal[record.call] = nil
    case .disowned(let call): journal[call] = nil
    case .trace(let call, let stage, let at, _): traces.append((call, stage, at))
    case .measured(let measurement): measurements.append(measurement)
    case .refused(let refusal): refusals.append(refusal)
    case .push(let key, let target, let content, _): push(key, target, content)
    case .answered(let question, let answer): operationAnswers[question] = answer
    case .pushCallOver, .devices, .grants, .event, .recording, .stream, .askRoute, .askUser, .locate, .claim, .admit, .released,
      .unclaimed,
      .askTombstone, .shareGrants, .restoreGrants, .grantsCompared, .staleGrants,
      .wake:
      break
    case .verify(let call, let question):
      questions.append(question)
      let (answer, delay) = verifier(question)
      after(delay) { [unowned self] in give(.verified(call, attestation: answer)) }
    // without a ground trunks have a fixed address
    case .lookUp(let question): ground?.lookUp(question)
    case .keepAlive(let flow): ground?.keepAlive(flow)
    case .trunkNews(let news): ground?.tell(news)
    case .requestUnanswered: break
    case .sip, .reserveMedia: break  // the core's
    }
  }

  private func push(_ key: PushKey, _ target: PushTarget, _ content: CallPush) {
    pushes.append((key, now))
    pushTargets.append(target.token.exposed)
    pushContent(content)
    if let pushSender { return pushSender(key, target, content) }
    guard let (delay, outcome, arrives) = pushService(key) else { return }
    after(delay) { [unowned self] in
      if arrives { device(key.device)?.pushArrived(content) }
      give(
        .pushed(
          PushReport(key: key, target: target, outcome: outcome, reason: "", isFault: false, attempts: 1, elapsed: delay)))
    }
  }

  // MARK: apps

  /// A handset comes before the app that registered for it.
  func device(_ name: String) -> (any Device)? {
    handsets.first { $0.device == name } ?? apps.first { $0.device == name }
  }

  func newConnection(_ app: any Device) -> ConnectionID {
    let id = ConnectionID(nextConnection)
    nextConnection += 1
    connections[id] = app
    return id
  }

  /// A device that is connected and welcomed.
  @discardableResult
  func app(_ device: String, _ configure: (App) -> Void = { _ in }) -> App {
    let app = App(self, device: device)
    configure(app)
    apps.append(app)
    app.connect()
    run(appDelay * 3)
    return app
  }

  /// A device that has registered for pushes and whose app was killed.
  @discardableResult
  func killed(_ device: String, _ configure: (App) -> Void = { _ in }) -> App {
    let app = app(device, configure)
    app.register()
    // messages after a hello wait for the cluster's answer, which this world alone never gets: for its 100 ms
    run(core.cluster == nil ? appDelay * 3 : .milliseconds(150))
    app.kill()
    return app
  }
}
