import AppSessions
import CallFlow
import CallModel
import JSONWebToken
import PushPolicy
import Testing
import TrunklineAppProtocol
import TrunklineBytes

/// What the world requires of a device.
protocol Device: AnyObject {
  var device: String { get }
  var media: MediaPlan { get }
  func pushArrived(_ push: CallPush)
  func receive(_ bytes: [UInt8], on id: ConnectionID)
  func closed(_ id: ConnectionID, _ code: CloseCode)
  /// Called when ICE and DTLS are up at the device's end.
  func mediaIsUp(_ call: CallID, gen: Int)
}

/// A device that speaks frames as docs/reference/protocol.md says. Its habits are flags; the test does everything else itself.
final class App: Device {
  unowned let world: World
  let device: String
  var user = "alice"
  var connection: ConnectionID?
  var isOpen = false
  private(set) var welcome: Welcome?
  private var sid: (id: String, token: String)?
  private var sentSeq = 0
  private var seenSeq = 0
  /// Numbered frames of this session, for a replay.
  private var sent: [ClientFrame] = []
  private var nextRequest: UInt64 = 1

  // habits
  var rings = true
  var prepares = true
  /// Answers this long after the offer; nil: never.
  var answersAfter: Duration?
  var saysReady = true
  var caps = ["media.active"]
  /// Time from the network's "up" to `media.ready`.
  var readyAfter = Duration.zero
  var accounts: [String]?
  var media = MediaPlan()
  /// Time that a killed app needs from its push to its `hello`.
  var launchTime = Duration.milliseconds(300)
  /// The wake token of the newest push; the next fresh `hello` uses it.
  private var wake: String?
  /// Called at once with each offer, instead of the habits.
  var onOffer: ((CallID) -> Void)?

  // what it knows
  /// Messages in order, without those of the session.
  var received: [(call: CallID?, text: String)] = []
  var answers: [Identifier: ServerMessage] = [:]
  var closeCodes: [CloseCode] = []
  var offered: [CallID] = []
  var offers: [CallOffer] = []
  /// How each call ended for this device: messages, and its own actions.
  var terminals: [CallID: [String]] = [:]
  /// The contents of `call.ended`.
  private(set) var overs: [CallID: CallOver] = [:]
  var won: Set<CallID> = []
  private var answering: [Identifier: CallID] = [:]
  private var rejecting: [Identifier: CallID] = [:]

  init(_ world: World, device: String) { (self.world, self.device) = (world, device) }

  // MARK: connection

  /// Opens a further socket of a device, for one call.
  func connect(waking token: String) {
    wake = token
    connect()
  }

  func connect(resuming: Bool = false) {
    let id = world.newConnection(self)
    connection = id
    isOpen = true
    let token = try? World.signer.sign(
      Claims(sub: user, dev: device, aud: ["trunkline"], exp: World.epoch + 86_400, acct: accounts))
    var proof = Hello.Proof.auth(token ?? "")
    if resuming, let sid {
      proof = .resume(.init(sid: sid.id, token: sid.token, lastSeq: seenSeq))
    } else {
      (sentSeq, seenSeq, sent) = (0, 0, [])
      if let wake { proof = .wake(wake) }
    }
    let hello = ClientFrame(.hello(Hello(proof, device: .init(id: device), caps: caps)), id: request())
    world.tell(.opened(id, IPAddress(192, 0, 2, 7)))
    world.after(world.appDelay) { [world] in world.tell(.frame(id, hello.encoded())) }
  }

  func register() {
    let token = String((hexString(Array(device.utf8)) + String(repeating: "0", count: 64)).prefix(64))
    send(.devicePut(DevicePut(push: .init(kind: .apnsVoIP, token: token, env: "production", topic: "com.example.app.voip"))))
  }

  /// The process ends, and with it all that it knew of its session.
  func kill() {
    drop()
    sid = nil
  }

  /// The system starts the app, or hands the push to the one that runs; the call is shown at once.
  func pushArrived(_ push: CallPush) {
    if !offered.contains(push.call) { offered.append(push.call) }
    guard !isOpen else { return }
    wake = push.wake.exposed
    world.after(launchTime) { [self] in if !isOpen { connect() } }
  }

  /// The socket breaks; with `code` the app closed it.
  func drop(_ code: CloseCode? = nil) {
    guard let id = connection, isOpen else { return }
    isOpen = false
    world.connections[id] = nil
    world.tell(.closed(id, code))
  }

  func closed(_ id: ConnectionID, _ code: CloseCode) {
    closeCodes.append(code)
    world.connections[id] = nil
    if connection == id { isOpen = false }
    world.tell(.closed(id, code))
    // a session that cannot be resumed: a fresh hello
    if code == .authFailed || code == .sequenceGap { connect() }
  }

  // MARK: sending

  private func request() -> Identifier {
    defer { nextRequest += 1 }
    return Identifier(high: UInt64(device.utf8.reduce(7) { $0 &* 31 &+ Int($1) }), low: nextRequest)
  }

  /// Sends a message, which arrives after `appDelay`; numbers it and gives it an id as its type requires.
  @discardableResult
  func send(_ message: ClientMessage, call: CallID? = nil) -> Identifier? {
    let id = message.type.isRequest ? request() : nil
    var seq: Int?
    if message.type.isNumbered {
      sentSeq += 1
      seq = sentSeq
    }
    if let id, let call {
      if case .callAnswer = message { answering[id] = call }
      if case .callReject = message { rejecting[id] = call }
    }
    if let call, case .callUnavailable = message { terminals[call, default: []].append("unavailable") }
    let frame = ClientFrame(message, id: id, seq: seq, ack: seenSeq > 0 ? seenSeq : nil, call: call)
    if seq != nil { sent.append(frame) }
    transmit(frame)
    return id
  }

  /// Lost if the socket is not open, or no longer open when the frame arrives.
  private func transmit(_ frame: ClientFrame) {
    guard isOpen, let connection else { return }
    world.after(world.appDelay) { [world, self] in
      if isOpen, self.connection == connection { world.tell(.frame(connection, frame.encoded())) }
    }
  }

  func tap(_ call: CallID, age: Int? = nil, timeout: Int? = nil) {
    let sdp = prepares ? nil : sdp(setup: "active")
    send(.callAnswer(CallAnswer(sdp: sdp, ageMs: age, timeoutMs: timeout)), call: call)
  }

  func start(
    _ call: CallID, to number: String = "+15557654321", kind: Handle.Kind = .phone, privacy: Bool? = nil,
    identity: [String]? = nil
  ) {
    offered.append(call)
    let start = CallStart(to: Handle(k: kind, h: number), sdp: sdp(setup: "actpass"), privacy: privacy, identity: identity)
    send(.callStart(start), call: call)
  }

  func end(_ call: CallID) { send(.callEnd(CallEnd()), call: call) }

  func sdp(setup: String) -> String {
    let print = (0..<32).map { _ in "01" }.joined(separator: ":")
    // the ufrag names the device to the media script
    return
      [
        "v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "t=0 0", "a=group:BUNDLE 0", "m=audio 9 UDP/TLS/RTP/SAVPF 111 0",
        "c=IN IP4 0.0.0.0",
        "a=mid:0", "a=ice-ufrag:\(device)", "a=ice-pwd:abcdefghijklmnopqrstuv", "a=fingerprint:sha-256 \(print)",
        "a=setup:\(setup)",
        "a=rtcp-mux", "a=sendrecv", "a=rtpmap:111 opus/48000/2",
      ].joined(separator: "\r\n") + "\r\n"
  }

  // MARK: receiving

  func receive(_ bytes: [UInt8], on id: ConnectionID) {
    guard isOpen, id == connection, let frame = try? ServerFrame(decoding: bytes), case .message(let message) = frame.body else {
      return
    }
    if let seq = frame.seq {
      guard seq > seenSeq else { return }
      #expect(seq == seenSeq + 1, "a gap in seq")
      seenSeq = seq
      // a bare ack within 200 ms
      world.after(.milliseconds(50)) { [self] in send(.ack) }
    }
    if let re = frame.re { answered(re, message) }
    if let call = frame.call { received.append((call, Self.text(message))) }
    switch message {
    case .welcome(let welcome):
      self.welcome = welcome
      sid = (welcome.sid, welcome.resumeToken)
      if welcome.resumed { for frame in sent where frame.seq ?? 0 >= welcome.replayFrom { transmit(frame) } }
      for snapshot in welcome.calls ?? [] where snapshot.dir == .incoming && snapshot.state == .ringing { offer(snapshot.call) }
    case .callOffer(let offer):
      offers.append(offer)
      if let call = frame.call { self.offer(call) }
    case .callWake(let wake): world.onWake(self, wake)
    case .callConnected: if let call = frame.call { send(.mediaActive(MediaActive(capture: true, playout: true)), call: call) }
    case .callCancel, .callEnded, .callGone:
      if let call = frame.call { terminals[call, default: []].append(Self.text(message)) }
      if case .callEnded(let over) = message, let call = frame.call { overs[call] = over }
    default: break
    }
  }

  private func answered(_ id: Identifier, _ message: ServerMessage) {
    #expect(answers[id] == nil, "a request was answered twice")
    answers[id] = message
    if let call = answering[id] {
      if case .ok(let success) = message, success.won == true { won.insert(call) }
      // a refusing err is a terminal message, unless one was sent already and this answer crossed it
      if case .err(let failure) = message, failure.code == .codec { terminals[call, default: []].append("err codec") }
    }
    if let call = rejecting[id], case .ok = message { terminals[call, default: []].append("ok reject") }
  }

  private func offer(_ call: CallID) {
    if !offered.contains(call) { offered.append(call) }
    if let onOffer { return onOffer(call) }
    if rings { send(.callRinging(CallRinging()), call: call) }
    if prepares { send(.callPrepare(CallPrepare(sdp: sdp(setup: "active"))), call: call) }
    if let answersAfter { world.after(answersAfter) { [self] in tap(call) } }
  }

  /// ICE and DTLS are up at the device's end. It never recreates media: the media threads' generation counts its reloads too.
  func mediaIsUp(_ call: CallID, gen: Int) {
    guard saysReady else { return }
    world.after(readyAfter) { [self] in send(.mediaReady(MediaReady(gen: 1)), call: call) }
  }

  static func text(_ message: ServerMessage) -> String {
    switch message {
    case .callCancel(let over), .callEnded(let over), .callGone(let over): "\(message.type.rawValue) \(over.reason.rawValue)"
    case .callProgress(let progress): "call.progress \(progress.stage.rawValue)"
    case .callHeld(let held): "call.held \(held.by.rawValue) \(held.on)"
    default: message.type.rawValue
    }
  }

  /// The messages of one call that it received.
  func received(_ call: CallID) -> [String] { received.filter { $0.call == call }.map(\.text) }
  var errors: [ErrorCode] { answers.values.compactMap { if case .err(let failure) = $0 { failure.code } else { nil } } }
}
