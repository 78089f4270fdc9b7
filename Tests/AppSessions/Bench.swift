import AppSessions
import JSONWebToken
import Testing
import TrunklineAppProtocol
import TrunklineBytes

/// A session machine on virtual time with scripted clients. Wall clock: 1,700,000,000 s at the start.
struct Bench {
  static let epoch: Int64 = 1_700_000_000
  static let keys = { try! KeySet(.HS256, keyFile: Array("a secret of at least thirty-two bytes".utf8)) }()
  static let signer = { try! TokenSigner(keys: keys) }()

  var machine: SessionMachine
  var now = Instant.zero + .seconds(1)
  /// Every action of the machine, oldest first; emptied by `take…`.
  var actions: [SessionMachine.Action] = []
  var events: [SessionEvent] = []
  var refusedLogins: [RefusedLogin] = []
  var refusedRequests: [RefusedAppRequest] = []
  /// A token named an unknown key.
  var wantsKeys = false
  private var nextConnection: UInt64 = 1
  /// `hello.caps` of the bench's clients.
  var caps: [String] = []

  static let wakes = WakeTokens(key: Array("another secret of thirty-two bytes".utf8))!

  init(users: SessionUsers = ["alice", "bob"], ice: [ICEServer] = [], wakes: WakeTokens? = nil) {
    let settings = SessionSettings(
      verifier: TokenVerifier(keys: Self.keys, audience: "trunkline"), users: users, ice: ice, wakeTokens: wakes)
    machine = SessionMachine(settings: settings, random: .seeded(7))
    machine.setWallClock(unixMilliseconds: Self.epoch * 1_000, at: now)
  }

  /// A node of a cluster: `n1.1690000000000` at `wss://n1.example/v1/connect`. Its clients know `nodes`.
  init(node: String, started: Int64 = 1_690_000_000_000, key: [UInt8] = clusterKey, seed: UInt64 = 7, sessions: Int = 20_000) {
    let cluster = SessionCluster(incarnation: "\(node).\(started)", url: "wss://\(node).example/v1/connect", key: key)!
    var settings = SessionSettings(
      verifier: TokenVerifier(keys: Self.keys, audience: "trunkline"), users: ["alice", "bob"], wakeTokens: cluster.wakeTokens)
    (settings.cluster, settings.sessions, caps) = (cluster, sessions, ["nodes"])
    self.cluster = cluster
    machine = SessionMachine(settings: settings, random: .seeded(seed &+ UInt64(node.utf8.last ?? 0) &+ UInt64(started)))
    machine.setWallClock(unixMilliseconds: Self.epoch * 1_000, at: now)
  }
  var cluster: SessionCluster?
  static let clusterKey = Array("a cluster's key of thirty-two bytes".utf8)

  /// The node as other nodes see it.
  func seen(isOpen: Bool = true, sessions: Int = 0) -> SessionNode {
    SessionNode(cluster!.incarnation, url: cluster!.url, isOpen: isOpen, sessions: sessions)
  }

  /// A wake token of this node, for a minute and 15 s from now.
  func wakeToken(_ call: Identifier = callA, _ user: String = "alice", _ device: String = "d1") -> String {
    cluster!.wakeTokens.token(
      Wake(
        call: call, device: DeviceKey(user: user, device: device), firstUseBefore: now + .seconds(75),
        expiresAt: Self.epoch * 1_000 + (now - .zero - .seconds(1)).milliseconds + 75_000))
  }

  mutating func reconfigure(_ change: (inout SessionSettings) -> Void) {
    var settings = SessionSettings(
      verifier: TokenVerifier(keys: Self.keys, audience: "trunkline"), users: ["alice", "bob"])
    change(&settings)
    var output = SessionMachine.Output()
    machine.reconfigure(settings, at: now, into: &output)
    actions += output.actions
    events += output.events
  }

  mutating func reconfigure(cluster: SessionCluster?, users: Set<String>) {
    reconfigure { ($0.cluster, $0.wakeTokens, $0.users) = (cluster, cluster?.wakeTokens, .listed(users)) }
  }

  static func token(_ user: String = "alice", _ device: String = "d1", lives: Int64 = 3_600, from: Int64 = epoch) -> String {
    try! signer.sign(Claims(sub: user, dev: device, aud: ["trunkline"], exp: from + lives))
  }

  mutating func give(_ input: SessionMachine.Input) {
    var output = SessionMachine.Output()
    machine.handle(input, at: now, into: &output)
    // a deadline that stays in the past stops the loop that waits for it, or makes it spin
    if case .timer = input, let next = machine.nextDeadline, next <= now { Issue.record("it waits for \(next) at \(now)") }
    actions += output.actions
    events += output.events
    refusedLogins += output.refusedLogins
    refusedRequests += output.refusedRequests
    if output.wantsKeys { wantsKeys = true }
  }

  mutating func perform(_ command: SessionCommand) { give(.command(command)) }

  /// Advances the time, and fires every deadline on the way.
  mutating func pass(_ duration: Duration) {
    let end = now + duration
    var turns = 0
    while let next = machine.nextDeadline, next <= end {
      now = max(now, next)
      give(.timer)
      turns += 1
      if turns > 100_000 {
        Issue.record("the machine's deadline does not move")
        return
      }
    }
    now = end
  }

  mutating func open(_ address: IPAddress = .loopback) -> ConnectionID {
    let id = ConnectionID(nextConnection)
    nextConnection += 1
    give(.opened(id, address))
    return id
  }

  mutating func send(
    _ message: ClientMessage, on id: ConnectionID, id request: Identifier? = nil, seq: Int? = nil, ack: Int? = nil,
    call: Identifier? = nil
  ) {
    give(.frame(id, ClientFrame(message, id: request, seq: seq, ack: ack, call: call).encoded()))
  }

  mutating func text(_ json: String, on id: ConnectionID) { give(.frame(id, Array(json.utf8))) }

  mutating func takeEvents() -> [SessionEvent] {
    defer { events = [] }
    return events
  }

  /// The frames sent to `id` since the last call.
  mutating func frames(_ id: ConnectionID) -> [ServerFrame] {
    var out: [ServerFrame] = []
    actions.removeAll { action in
      guard case .send(id, let bytes) = action else { return false }
      if let frame = try? ServerFrame(decoding: bytes) { out.append(frame) }
      return true
    }
    return out
  }

  /// The close code of `id`, if it was closed.
  func closed(_ id: ConnectionID) -> CloseCode? {
    for case .close(id, let code) in actions { return code }
    return nil
  }

  /// A new connection with an accepted `hello{auth}` and a `welcome` without calls.
  mutating func login(
    _ user: String = "alice", _ device: String = "d1", lives: Int64 = 3_600, calls: [CallSnapshot] = [],
    gone: [GoneCall] = [],
    live: Set<Identifier> = []
  ) throws -> Client {
    let id = open()
    send(
      .hello(Hello(.auth(Self.token(user, device, lives: lives)), device: .init(id: device), caps: caps)), on: id, id: number(1))
    guard case .connected(let key, let session, _, resumed: false)? = events.last else { throw Trouble("no .connected") }
    perform(.welcome(session, calls: calls, gone: gone, live: live))
    guard case .message(.welcome(let welcome))? = frames(id).first?.body else { throw Trouble("no welcome") }
    events = []
    return Client(connection: id, device: key, session: session, welcome: welcome)
  }

  /// A new connection with `hello{wake}`; the session, if the token was accepted.
  mutating func wake(_ token: String, _ device: String = "d1") -> (ConnectionID, SessionID?) {
    let id = open()
    send(.hello(Hello(.wake(token), device: .init(id: device), caps: caps)), on: id, id: number(1))
    guard case .connected(_, let session, _, resumed: false)? = events.last else { return (id, nil) }
    return (id, session)
  }

  /// A new connection with `hello{resume}`.
  mutating func resume(_ client: Client, lastSeq: Int, token: String? = nil) -> ConnectionID {
    let id = open()
    let proof = Hello.Proof.resume(
      .init(sid: client.welcome.sid, token: token ?? client.welcome.resumeToken, lastSeq: lastSeq))
    send(.hello(Hello(proof, device: .init(id: client.device.device), caps: caps)), on: id, id: number(2))
    return id
  }
}

extension Bench {
  /// The close code that answers a `hello{resume}`; nil if it is accepted.
  mutating func resumeCode(_ client: Client, lastSeq: Int, token: String? = nil) -> CloseCode? {
    let id = resume(client, lastSeq: lastSeq, token: token)
    return closed(id)
  }
}

extension Bench {
  /// The error sent to `id`, and the code with which it was closed.
  mutating func failure(_ id: ConnectionID) throws -> (Failure, CloseCode?) {
    for case .message(.err(let failure)) in frames(id).map(\.body) { return (failure, closed(id)) }
    throw Trouble("no err")
  }

  /// A resume that began a new session, welcomed.
  mutating func resumeAsNew(_ client: Client, lastSeq: Int = 0) throws -> (Client, DeviceInfo) {
    events = []
    let id = resume(client, lastSeq: lastSeq)
    guard case .connected(let key, let session, let info, resumed: false)? = events.last else {
      throw Trouble("no new session")
    }
    perform(.welcome(session, calls: [], gone: [], live: []))
    guard case .message(.welcome(let welcome))? = frames(id).first?.body, !welcome.resumed else { throw Trouble("no welcome") }
    return (Client(connection: id, device: key, session: session, welcome: welcome), info)
  }

  /// A wake token's session, welcomed.
  mutating func woken(_ token: String, live: Set<Identifier> = []) throws -> Client {
    let (id, session) = wake(token)
    guard let session else { throw Trouble("not woken") }
    perform(.welcome(session, calls: [], gone: [], live: live))
    guard case .message(.welcome(let welcome))? = frames(id).first?.body else { throw Trouble("no welcome") }
    return Client(connection: id, device: DeviceKey(user: "alice", device: "d1"), session: session, welcome: welcome)
  }
}

extension Bench {
  /// The close code that answers a `hello{wake}`; nil if it is accepted.
  mutating func wakeCode(_ token: String) -> CloseCode? {
    let id = wake(token).0
    return closed(id)
  }
}

struct Client {
  var connection: ConnectionID
  var device: DeviceKey
  var session: SessionID
  var welcome: Welcome
}

struct Trouble: Error {
  var text: String
  init(_ text: String) { self.text = text }
}

func number(_ n: UInt64) -> Identifier { Identifier(high: 0, low: n) }
let callA = Identifier(high: 0xa, low: 1)
let callB = Identifier(high: 0xb, low: 1)
let offer = ServerMessage.callOffer(
  CallOffer(from: Handle(k: .phone, h: "+1"), to: Handle(k: .phone, h: "+2"), acct: "default", sdp: "v=0", gen: 1, exp: 0))
func progress(_ at: Int64) -> ServerMessage { .callProgress(CallProgress(.ringing, at: at)) }
