import AppProtocol
import AppSessions
import Bytes
import CallFlow
import JSONWebToken
import MediaSession
import PushPolicy
import SDP
import SIP
import SIPDialogs
import Testing

/// The whole gateway on virtual time: the real SIP user agent, session machine and call machine, wired as the runtime wires
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
  private var queue: [(at: Instant, order: Int, run: () -> Void)] = []
  private var order = 0
  var sipDelay = Duration.milliseconds(5)
  var appDelay = Duration.milliseconds(10)

  // the gateway
  var userAgent: UserAgent
  var sessions: SessionMachine
  var machine: CallMachine
  private var pending: [CallFlow.Input] = []
  private var isPumping = false

  // around it
  lazy var carrier = Carrier(self)
  lazy var media = MediaScript(self)
  var apps: [App] = []
  var connections: [ConnectionID: App] = [:]
  private var nextConnection: UInt64 = 1

  // what the invariants look at
  var records: [CallRecord] = []
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
  /// What the verifier of caller identities says, and when; and what it was asked.
  var verifier: (IdentityQuestion) -> (String?, Duration) = { _ in (nil, .milliseconds(50)) }
  var questions: [IdentityQuestion] = []
  /// INVITEs of the gateway as they left.
  var invites: [String] = []
  /// Messages of the gateway that get lost on the way.
  var loses: ([UInt8]) -> Bool = { _ in false }

  init(seed: UInt64 = 1, configure: (inout CallFlow.Configuration, inout Routing) -> Void = { _, _ in }) {
    userAgent = UserAgent(random: .seeded(seed))
    let wakes = WakeTokens(random: .seeded(seed &+ 3))
    let settings = SessionSettings(
      verifier: TokenVerifier(keys: Self.keys, audience: "trunkline"), users: ["alice"], wakeTokens: wakes)
    sessions = SessionMachine(settings: settings, random: .seeded(seed &+ 1))
    var configuration = CallFlow.Configuration()
    configuration.push = wakes.map { PushSettings(gateway: "wss://gw", wakes: $0) }
    let peer = TrunkPeer(
      name: "carrier", domain: Self.carrierAddress.description,
      flow: Flow(transport: .udp, local: Self.gatewayAddress, remote: Self.carrierAddress))
    var routing = Routing(
      trunks: [.init(name: "carrier", peer: peer)], users: [.init(id: "alice", numbers: [Self.number])],
      inbound: [.init(trunk: "carrier", target: .users)], outbound: [.init(prefix: "+", trunk: "carrier")])
    configure(&configuration, &routing)
    machine = CallMachine(configuration: configuration, routing: routing, random: .seeded(seed &+ 2))
    var unused = SIPDialogs.Output()
    userAgent.handle(.rules(machine.trunkRules), at: now, into: &unused)
    sessions.setWallClock(unixMilliseconds: Self.epoch * 1_000, at: now)
    give(.wallClock(offsetMilliseconds: Self.epoch * 1_000 - 1_000))
  }

  // MARK: time

  func after(_ delay: Duration, _ run: @escaping () -> Void) {
    order += 1
    queue.append((now + delay, order, run))
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

  private var nextTime: Instant? {
    let timers = [userAgent.nextDeadline, carrier.agent.nextDeadline, sessions.nextDeadline, machine.nextDeadline]
    return (timers.compactMap { $0 } + queue.map(\.at)).min()
  }

  private func step() {
    if let index = queue.indices.min(by: { (queue[$0].at, queue[$0].order) < (queue[$1].at, queue[$1].order) }),
      queue[index].at <= now
    {
      queue.remove(at: index).run()
    } else if let due = userAgent.nextDeadline, due <= now {
      signal(.timer)
    } else if let due = sessions.nextDeadline, due <= now {
      tell(.timer)
    } else if let due = machine.nextDeadline, due <= now {
      give(.timer)
    } else {
      carrier.handle(.timer)
    }
  }

  // MARK: the gateway, wired

  func signal(_ input: SIPDialogs.Input) {
    var output = SIPDialogs.Output()
    userAgent.handle(input, at: now, into: &output)
    for message in output.messages {
      Invariants.look(at: message.bytes, fromGateway: true, self)
      if message.bytes.starts(with: "INVITE ".utf8) { invites.append(String(decoding: message.bytes, as: UTF8.self)) }
      if loses(message.bytes) { continue }
      let bytes = message.bytes
      after(sipDelay) { [unowned self] in carrier.receive(bytes) }
    }
    pending += output.events.map { .sip($0) }
    pump()
  }

  func give(_ input: CallFlow.Input) {
    pending.append(input)
    pump()
  }

  /// One input of the session machine.
  func tell(_ input: SessionInput) {
    var output = SessionOutput()
    sessions.handle(input, at: now, into: &output)
    for action in output.actions {
      switch action {
      case .send(let id, let bytes): after(appDelay) { [unowned self] in connections[id]?.receive(bytes, on: id) }
      case .ping(let id): after(appDelay) { [unowned self] in if connections[id] != nil { tell(.alive(id)) } }
      case .close(let id, let code): after(appDelay) { [unowned self] in connections[id]?.closed(id, code) }
      case .httpAnswer: break
      }
    }
    pending += output.events.map { .app($0) }
    pump()
  }

  private func pump() {
    guard !isPumping else { return }
    isPumping = true
    defer { isPumping = false }
    while !pending.isEmpty {
      var output = CallFlow.Output()
      machine.handle(pending.removeFirst(), at: now, into: &output)
      var index = 0
      while index < output.actions.count {
        perform(output.actions[index], &output)
        index += 1
      }
    }
  }

  private func perform(_ action: Action, _ output: inout CallFlow.Output) {
    switch action {
    case .sip(let command): signal(.command(command))
    case .app(let command): tell(.command(command))
    case .media(let command): media.handle(command)
    case .reserveMedia(let call, let session, _, _):
      if refusesMedia { return machine.handle(.mediaRefused(call, reason: "no ports"), at: now, into: &output) }
      media.calls[session] = call
      let reservation = MediaReservation(
        session: session, trunkAddress: SocketAddress(IPAddress(198, 51, 100, 9), 41_000),
        appCandidates: [SocketAddress(IPAddress(198, 51, 100, 9), 40_000)], fingerprint: [UInt8](repeating: 0xab, count: 32))
      machine.handle(.mediaReserved(call, reservation), at: now, into: &output)
    case .journal(let line): after(.milliseconds(3)) { [unowned self] in give(.journalled(line.call)) }
    case .record(let record): records.append(record)
    case .trace(let call, let stage, let at, _): traces.append((call, stage, at))
    case .measured(let measurement): measurements.append(measurement)
    case .refused(let refusal): refusals.append(refusal)
    case .push(let key, let target, let content, _): push(key, target, content)
    case .pushCallOver, .devices, .askRoute: break
    case .verify(let call, let question):
      questions.append(question)
      let (answer, delay) = verifier(question)
      after(delay) { [unowned self] in give(.verified(call, attestation: answer)) }
    case .lookUp, .trunkNews: break  // trunks here have a fixed address
    }
  }

  private func push(_ key: PushKey, _ target: PushTarget, _ content: CallPush) {
    pushes.append((key, now))
    guard let (delay, outcome, arrives) = pushService(key) else { return }
    after(delay) { [unowned self] in
      if arrives { apps.first { $0.device == key.device }?.pushArrived(content) }
      give(
        .pushed(
          PushReport(key: key, target: target, outcome: outcome, reason: "", isFault: false, attempts: 1, took: delay)))
    }
  }

  // MARK: apps

  func newConnection(_ app: App) -> ConnectionID {
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
    run(appDelay * 3)
    app.kill()
    return app
  }
}
