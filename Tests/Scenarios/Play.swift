import AppSessions
import CallFlow
import CallModel
import GatewayCore
import JSONWebToken
import PushPolicy
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIPDialogs

/// One incoming call, its devices and its pushes, and the targets of its diversions, around the real `GatewayCore` and the real
/// session machine; the trunk's end is a separate user agent. A value: a run can branch at every step by a copy. Only `pass` lets
/// time pass; messages that cross are played by handling them late.
struct Play {
  struct Device {
    let name: String
    var user = "alice"
    var connection: ConnectionID?
    var sid: (id: String, token: String)?
    var sentSeq = 0
    var seenSeq = 0
    var sent: [ClientFrame] = []
    /// Wake token of a push that arrived.
    var wake: String?
    /// It was notified of the call, in any way, and may show it.
    var knows = false
    var gen = 1
    var hasRung = false
    var isDescribed = false
    var hasTapped = false
    var hasFailed = false
    var isReady = false
    /// How the call ended for it, each message once however often it was replayed.
    var terminals: [String] = []
    var hasWon = false
    var wasConnected = false
    /// The leg that its description went to, and the epoch of that.
    var leg: (AppLegID, Int)?
    /// Its socket broke and it has not come back.
    var isDropped = false
    var rejects: Set<Identifier> = []
    var answers: Set<Identifier> = []
    /// What it received, in order.
    var received: [String] = []
    /// The caller's name as it shows it now: of the push, the offer, the snapshot or a `call.update`.
    var shownName: String?
    /// Messages of the call that arrived after its terminal message, and would be shown.
    var late: [String] = []
  }

  var now = Instant(nanoseconds: 1_000_000_000)
  var core: GatewayCore
  var machine: CallMachine { core.machine }
  var sessions: SessionMachine
  var devices: [Device]
  var call: CallID?
  private var nextConnection: UInt64 = 1
  private var nextRequest: UInt64 = 1
  /// What has yet to reach the gateway or the trunk's end, first in first out.
  enum Event {
    case core(GatewayCore.Input)
    case carrier(UserAgent.Input)
  }
  var events: [Event] = []
  var isPumping = false
  /// While not nil, messages on the wire wait here: those of either side then cross.
  var crossing: [Event]?

  // the trunk
  /// Seeded apart from the gateway's: if both marked their messages alike, each would mistake the other's for its own.
  var carrier = UserAgent(random: .seeded(1 << 40))
  /// The caller's leg, as its carrier counts.
  let leg = LegID.outbound(1)
  var trunk: [String] = []
  var finals = 0
  var isAnswered = false
  /// The caller has asked for a transfer.
  var isReferred = false
  /// The leg to the number that the call is diverted to.
  var number: Number?
  var numbersCalled = 0
  /// Sessions to whose trunk a recording is played.
  var playing: Set<MediaSessionID> = []
  /// A webhook was asked and has not answered yet.
  var isAsked = false
  /// The caller's name as the gateway knows it by now.
  var callerName = "Carol"
  // pushes
  var pushes: [(key: PushKey, content: CallPush, target: PushTarget, isReported: Bool)] = []
  var accepted: [PushKey: Int] = [:]
  // media
  var session: MediaSessionID?
  /// How often each session was closed.
  var closes: [MediaSessionID: Int] = [:]
  var mediaAfterEnd = 0
  // books
  var records: [CallRecord] = []
  /// What should not have happened, in order.
  var strays: [String] = []
  /// A device won before the earlier winner was notified that its media failed.
  private(set) var hasTwoWinners = false
  var hasHTTPAnswer: [Int] = []

  /// - Parameters:
  ///   - connected: these have a socket and are in the foreground; all have a push registration.
  ///   - bob: devices of the user to which a rule may divert, and which diverts everything back.
  ///   - rules: alice's.
  ///   - asks: a webhook names the users of the call.
  init(
    _ names: [String], connected: Set<String>, bob: [String] = [], rules: [DiversionTrigger: Diversions.Rule] = [:],
    asks: Bool = false, seed: UInt64 = 1
  ) {
    let wakes = WakeTokens(key: Array("a key of at least thirty-two bytes".utf8))
    var configuration = CallConfiguration()
    configuration.push = wakes.map { PushSettings(gateway: "wss://gw", wakes: $0) }
    core = GatewayCore(
      userAgent: UserAgent(random: .seeded(seed &+ 2)),
      machine: CallMachine(configuration: configuration, routing: Self.routing(rules, asks: asks), random: .seeded(seed)))
    let settings = SessionSettings(
      verifier: TokenVerifier(keys: World.keys, audience: "trunkline"), users: ["alice", "bob"], wakeTokens: wakes)
    sessions = SessionMachine(settings: settings, random: .seeded(seed &+ 1))
    devices = names.map { Device(name: $0) } + bob.map { Device(name: $0, user: "bob") }
    sessions.setWallClock(unixMilliseconds: World.epoch * 1_000, at: now)
    feed(.wallClock(offsetMilliseconds: World.epoch * 1_000 - 1_000))
    for index in devices.indices {
      connect(index)
      let token = hexString(Array(devices[index].name.utf8)) + String(repeating: "0", count: 48)
      request(
        .devicePut(DevicePut(push: .init(kind: .apnsVoIP, token: String(token.prefix(48)), topic: "com.example.voip"))), index)
      if !connected.contains(devices[index].name) { drop(index, .normal) }
    }
    trunkDoes(
      .invite(
        leg,
        OutboundInvite(trunk: Self.gateway, to: World.number, from: "+15550000042", displayName: "Carol", sdp: Carrier.sdp())))
  }

  // MARK: apps

  mutating func tell(_ input: SessionMachine.Input) {
    var output = SessionMachine.Output()
    sessions.handle(input, at: now, into: &output)
    if case .timer = input { Invariants.timer(sessions.nextDeadline, now, "the session machine") }
    for event in output.events { later(.app(event)) }
    var replies: [(Int, ClientFrame)] = []
    for action in output.actions {
      switch action {
      case .send(let id, let bytes):
        if let index = devices.firstIndex(where: { $0.connection == id }), let frame = try? ServerFrame(decoding: bytes) {
          replies += receive(frame, index).map { (index, $0) }
        }
      case .close(let id, _):
        if let index = devices.firstIndex(where: { $0.connection == id }) { devices[index].connection = nil }
        tell(.closed(id, nil))
      case .httpAnswer(_, let status, _): hasHTTPAnswer.append(status)
      case .httpRedirect: hasHTTPAnswer.append(307)
      case .httpLogin, .httpRefused: break
      case .ping(let id): tell(.alive(id))
      }
    }
    for (index, frame) in replies { transmit(frame, index) }
    pump()
  }

  // MARK: devices

  mutating func connect(_ index: Int, resuming: Bool = false) {
    let id = ConnectionID(nextConnection)
    nextConnection += 1
    var proof: Hello.Proof
    if resuming, let sid = devices[index].sid {
      proof = .resume(.init(sid: sid.id, token: sid.token, lastSeq: devices[index].seenSeq))
    } else {
      (devices[index].sentSeq, devices[index].seenSeq, devices[index].sent, devices[index].sid) = (0, 0, [], nil)
      let (name, user) = (devices[index].name, devices[index].user)
      proof = .auth(
        (try? World.signer.sign(Claims(sub: user, dev: name, aud: ["trunkline"], exp: World.epoch + 86_400))) ?? "")
      if let wake = devices[index].wake { proof = .wake(wake) }
    }
    devices[index].connection = id
    tell(.opened(id, IPAddress(192, 0, 2, 7)))
    let hello = ClientFrame(
      .hello(Hello(proof, device: .init(id: devices[index].name), caps: ["media.active"])), id: newRequest())
    tell(.frame(id, hello.encoded()))
  }

  mutating func drop(_ index: Int, _ code: CloseCode? = nil) {
    guard let id = devices[index].connection else { return }
    devices[index].connection = nil
    tell(.closed(id, code))
  }

  private mutating func newRequest() -> Identifier {
    defer { nextRequest += 1 }
    return Identifier(high: 7, low: nextRequest)
  }

  mutating func request(_ message: ClientMessage, _ index: Int) { send(message, index) }

  mutating func send(_ message: ClientMessage, _ index: Int, call: CallID? = nil) {
    var seq: Int?
    if message.type.isNumbered {
      devices[index].sentSeq += 1
      seq = devices[index].sentSeq
    }
    let id = message.type.isRequest ? newRequest() : nil
    if let id {
      if case .callReject = message { devices[index].rejects.insert(id) }
      if case .callAnswer = message { devices[index].answers.insert(id) }
    }
    let frame = ClientFrame(message, id: id, seq: seq, ack: devices[index].seenSeq > 0 ? devices[index].seenSeq : nil, call: call)
    if seq != nil { devices[index].sent.append(frame) }
    transmit(frame, index)
  }

  private mutating func transmit(_ frame: ClientFrame, _ index: Int) {
    if let id = devices[index].connection { tell(.frame(id, frame.encoded())) }
  }

  /// What the device answers at once: acks, and after a resume what the gateway lacks.
  private mutating func receive(_ frame: ServerFrame, _ index: Int) -> [ClientFrame] {
    guard case .message(let message) = frame.body else { return [] }
    var replies: [ClientFrame] = []
    if let seq = frame.seq {
      guard seq > devices[index].seenSeq else { return [] }
      devices[index].seenSeq = seq
      replies.append(ClientFrame(.ack, ack: seq))
    }
    devices[index].received.append(App.text(message))
    let isOver = !devices[index].terminals.isEmpty
    if isOver, frame.call == call, frame.seq != nil, message.type != .callUpdate { devices[index].late.append(App.text(message)) }
    switch message {
    case .welcome(let welcome):
      devices[index].sid = (welcome.sid, welcome.resumeToken)
      if welcome.resumed { replies += devices[index].sent.filter { $0.seq ?? 0 >= welcome.replayFrom } }
      if let snapshot = welcome.calls?.first { (devices[index].knows, devices[index].shownName) = (true, snapshot.from.n) }
    case .callOffer(let offer): (devices[index].knows, devices[index].shownName) = (true, offer.from.n)
    case .callUpdate(let update): devices[index].shownName = update.from?.n ?? devices[index].shownName
    case .callConnected: devices[index].wasConnected = true
    case .callCancel, .callEnded, .callGone: devices[index].terminals.append(App.text(message))
    case .ok(let success):
      guard let re = frame.re else { break }
      if devices[index].answers.contains(re), success.won == true {
        // a device that is away is notified when it reconnects
        let others = devices.filter { $0.name != devices[index].name && $0.connection != nil }
        hasTwoWinners = hasTwoWinners || others.contains { $0.hasWon && $0.terminals.isEmpty }
        devices[index].hasWon = true
      }
      if devices[index].rejects.remove(re) != nil { devices[index].terminals.append("ok reject") }
    case .err(let failure):
      if let re = frame.re, devices[index].answers.contains(re), failure.code == .codec {
        devices[index].terminals.append("err codec")
      }
    default: break
    }
    return replies
  }

  func sdp(_ index: Int) -> String {
    let print = (0..<32).map { _ in "01" }.joined(separator: ":")
    return [
      "v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "t=0 0", "a=group:BUNDLE 0", "m=audio 9 UDP/TLS/RTP/SAVPF 111",
      "c=IN IP4 0.0.0.0", "a=mid:0",
      "a=ice-ufrag:\(devices[index].name)", "a=ice-pwd:abcdefghijklmnopqrstuv", "a=fingerprint:sha-256 \(print)",
      "a=setup:active",
      "a=rtcp-mux", "a=sendrecv", "a=rtpmap:111 opus/48000/2",
    ].joined(separator: "\r\n") + "\r\n"
  }
}
