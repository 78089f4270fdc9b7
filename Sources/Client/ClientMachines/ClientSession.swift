public import TrunklineAppProtocol
public import TrunklineBytes

/// One device's session with the gateway: numbering, acks, replay, resume, heartbeat and reconnect of `trunkline.v1`, client
/// side. It has no socket, clock or randomness: the shell connects and writes as each `Action` requires, and passes every event
/// in.
///
/// | phase | opened | closed | frame | timer |
/// |---|---|---|---|---|
/// | offline | ignored | ignored | ignored | connect |
/// | connecting | hello → greeting | back off → offline | ignored | a second attempt in parallel; at the node's own address: after 3 s elsewhere |
/// | greeting | ignored | back off, or to the named node → offline | welcome → online, other ignored | give up after 10 s |
/// | online | ignored | spread or back off, or to the named node → offline | handled | ping, ack, dead after 2 × hb; after `checkLiveness`, 1 s |
/// | ended | ignored | ignored | ignored | – |
public struct ClientSession: Sendable {
  public struct Configuration: Sendable {
    public var token: Redacted<String>
    /// The token of a push: the session is for that call only, and needs no login token.
    public var wake: Redacted<String>?
    public var device: Hello.Device
    public var capabilities: [String]
    public var state = AppState.fg
    /// The device's own session is at another node; this one is for calls here.
    public var isFurther = false
    /// The general address; nil: the owner's address.
    public var gateway: String?
    public init(token: String, device: Hello.Device, capabilities: [String] = ["media.active", "quality", "nodes"]) {
      (self.token, self.device, self.capabilities) = (Redacted(token), device, capabilities)
    }
  }

  public enum Input: Sendable {
    case start, socketOpened
    /// The code is 1006 if no close frame was received.
    case socketClosed(UInt16)
    case frame([UInt8])
    case timer
    /// The owner's other paths to the gateway are silent: a socket that does not answer within a second is replaced.
    case checkLiveness
    /// The network path changed: a new socket replaces the present one at once.
    case networkChanged
    /// There is a reason not to wait for the end of a spread any longer.
    case hurry
    /// Ends the session for good.
    case finish
  }

  public enum Action: Sendable {
    /// Connect to ``ClientSession/gateway`` and replace the present socket: its events are no longer passed in.
    case connect
    /// A second attempt, to the same address over another interface than the default route's, in parallel to that of ``connect``.
    /// The socket that opens first is the session's, the other is dropped; ``Input/socketClosed(_:)`` is for both.
    case connectAlternate
    case write([UInt8])
    case close(UInt16)
    case event(Event)
  }

  public enum Event: Sendable {
    /// `calls` is the snapshot; nil when the session was resumed.
    case online(Welcome, calls: [CallSnapshot]?)
    case offline
    /// The gateway refuses this device: a new token is needed (4001), it was revoked (4003) or replaced (4009).
    case refused(code: UInt16)
    case message(ServerMessage, call: Identifier?)
    case answered(Identifier, call: Identifier?, Result<Success, Failure>)
    /// The answer to a `media.restart`.
    case mediaAnswer(Identifier, call: Identifier?, MediaAnswer)
  }

  private enum Phase { case offline, connecting, greeting, online, ended }
  struct Outgoing: Sendable {
    var message: ClientMessage
    var id: Identifier?
    var call: Identifier?
    var seq: Int
  }

  private var configuration: Configuration
  private let random: RandomSource
  private var phase = Phase.offline
  private var resume: (sid: String, token: String)?
  private var attempt = 0
  private var onlineAt = Instant.zero
  /// A fresh hello was sent at once after a refused resume; the next one waits.
  private var hasBegunAgain = false
  private var heartbeat = Duration.seconds(15)
  private var lastReceived = Instant.zero
  private var pingedAt = Instant.zero
  /// The timer of a stopped process is late, and received frames may still be unread: the session checks a second time.
  private var looksAgain = false
  /// Time limit of the next connection, after a socket that was replaced.
  private var connectTime: Duration?
  private var deadlines = Deadlines()
  private var lastSent = 0
  private var lastSeen = 0
  private var outbox: [Outgoing] = []
  private var open: [Outgoing] = []
  private var route = Route()
  private var hello: Identifier?
  /// The owner has a call: a lost connection is replaced at once.
  public var hasCall = false
  /// The node that has welcomed this session; nil: there is only one node, or none has welcomed it yet.
  public private(set) var node: String?

  private struct Deadlines {
    var connect: Instant?, alternate: Instant?, welcome: Instant?, ping: Instant?, ack: Instant?, answer: Instant?
    var next: Instant? { [connect, alternate, welcome, ping, ack, answer].compactMap { $0 }.min() }
  }

  public init(configuration: Configuration, random: RandomSource) {
    (self.configuration, self.random) = (configuration, random)
  }

  /// The token of the next fresh `hello`; it also replaces the wake token.
  public mutating func use(token: Redacted<String>) { (configuration.token, configuration.wake) = (token, nil) }
  public mutating func use(state: AppState) { configuration.state = state }

  /// When `.timer` is due.
  public var nextDeadline: Instant? { deadlines.next }
  public var isOnline: Bool { phase == .online }
  /// The address for the socket; nil: the owner's address.
  public var gateway: String? { route.now ?? configuration.gateway }
  /// The node's own address; nil: it has none, or none has welcomed this session.
  public var home: String? { route.home }
  /// Online, and the gateway has received all messages.
  public var isQuiet: Bool { phase == .online && open.isEmpty && outbox.isEmpty }

  /// Handles one event and appends its effects to `actions`. Accepts any bytes.
  public mutating func handle(_ input: Input, at now: Instant, into actions: inout [Action]) {
    switch input {
    case .start: if phase == .offline { connect(now, &actions) }
    case .hurry: if phase == .offline, route.isSpread { connect(now, &actions) }
    case .socketOpened: opened(now, &actions)
    case .socketClosed(let code): closed(code, now, &actions)
    case .frame(let bytes): received(bytes, now, &actions)
    case .timer: timers(now, &actions)
    case .checkLiveness:
      guard phase == .online, deadlines.answer == nil else { return }
      deadlines.answer = now + Limits.socketAnswer
      write(ClientFrame(.ping), &actions)
    case .networkChanged:
      guard phase != .ended else { return }
      (attempt, connectTime) = (0, nil)
      if phase == .online { actions.append(.event(.offline)) }
      route.broken()
      connect(now, &actions)
    case .finish:
      guard phase != .ended else { return }
      if phase == .greeting || phase == .online { actions.append(.close(CloseCode.normal.rawValue)) }
      phase = .ended
      deadlines = Deadlines()
    }
  }

  /// Sends a request, now or after the next welcome; its answer arrives as `.answered` (or `.mediaAnswer`) with the returned id.
  public mutating func request(_ message: ClientMessage, call: Identifier?, at now: Instant, into actions: inout [Action])
    -> Identifier
  {
    let id = Identifier(random: random)
    guard open.count < Limits.openRequests else {
      actions.append(.event(.answered(id, call: call, .failure(Failure(.tooMany)))))
      return id
    }
    guard !isTooBig(message, id: id, call: call) else {
      actions.append(.event(.answered(id, call: call, .failure(Failure(.badRequest)))))
      return id
    }
    open.append(Outgoing(message: message, id: id, call: call, seq: 0))
    post(message, id: id, call: call, &actions)
    if call != nil { handle(.hurry, at: now, into: &actions) }
    return id
  }

  /// Sends a message that has no answer.
  public mutating func notify(_ message: ClientMessage, call: Identifier?, at now: Instant, into actions: inout [Action]) {
    if !isTooBig(message, id: nil, call: call) { post(message, id: nil, call: call, &actions) }
  }

  /// The gateway would close the connection for such a message (1009), and for each repeat after a resume.
  private func isTooBig(_ message: ClientMessage, id: Identifier?, call: Identifier?) -> Bool {
    ClientFrame(message, id: id, seq: .max, ack: .max, call: call).encoded().count > Limits.frameBytes
  }

  private mutating func post(_ message: ClientMessage, id: Identifier?, call: Identifier?, _ actions: inout [Action]) {
    guard message.type.isNumbered else {
      if phase == .online { write(ClientFrame(message, id: id, call: call), &actions) }
      return
    }
    guard outbox.count < Limits.outboxMessages else { return startAfresh(&actions) }
    lastSent += 1
    let entry = Outgoing(message: message, id: id, call: call, seq: lastSent)
    outbox.append(entry)
    if phase == .online { write(entry, &actions) }
  }

  private mutating func write(_ entry: Outgoing, _ actions: inout [Action]) {
    deadlines.ack = nil
    let ack = lastSeen > 0 ? lastSeen : nil
    write(ClientFrame(entry.message, id: entry.id, seq: entry.seq, ack: ack, call: entry.call), &actions)
  }

  private func write(_ frame: ClientFrame, _ actions: inout [Action]) { actions.append(.write(frame.encoded())) }

  /// After a gap or an overflow: the next hello is a fresh one.
  private mutating func startAfresh(_ actions: inout [Action]) {
    resume = nil
    if phase == .online || phase == .greeting { actions.append(.close(CloseCode.sequenceGap.rawValue)) }
  }
}

extension ClientSession {
  private mutating func connect(_ now: Instant, _ actions: inout [Action]) {
    phase = .connecting
    deadlines = Deadlines()
    // an address that does not answer must not delay the next one
    deadlines.connect = route.choose(at: now, resumes: resume != nil)
    actions.append(.connect)
    guard let time = connectTime else { return deadlines.alternate = now + Limits.alternateDelay }
    // the default route has failed one socket already: start both attempts at once
    deadlines.connect = min(deadlines.connect ?? .distantFuture, now + time)
    connectTime = min(time * 2, Limits.connectTimeLongest)
    actions.append(.connectAlternate)
  }

  private mutating func opened(_ now: Instant, _ actions: inout [Action]) {
    guard phase == .connecting else { return }
    phase = .greeting
    deadlines = Deadlines()
    deadlines.welcome = now + Limits.welcomeDeadline
    let proof: Hello.Proof =
      if let resume {
        .resume(Hello.Resume(sid: resume.sid, token: resume.token, lastSeq: lastSeen))
      } else if let wake = configuration.wake {
        .wake(wake.exposed)
      } else {
        .auth(configuration.token.exposed)
      }
    var message = Hello(proof, device: configuration.device, caps: configuration.capabilities, state: configuration.state)
    if configuration.isFurther, case .auth = proof { message.further = true }
    let id = Identifier(random: random)
    hello = id
    write(ClientFrame(.hello(message), id: id), &actions)
  }

  private mutating func closed(_ code: UInt16, _ now: Instant, _ actions: inout [Action]) {
    guard phase != .ended, phase != .offline else { return }
    let wasOnline = phase == .online
    phase = .offline
    deadlines = Deadlines()
    if wasOnline { actions.append(.event(.offline)) }
    // A gateway that closes directly after each welcome must not be contacted five times a second.
    if wasOnline, now - onlineAt >= Limits.stableTime {
      (attempt, hasBegunAgain) = (0, false)
      route.resetPointers()
    }
    switch code {
    // directly after `welcome` this ends the session of a push's token (docs/reference/protocol.md, Details): nothing to repeat
    case CloseCode.authFailed.rawValue where resume != nil && !(wasOnline && configuration.wake != nil):
      resume = nil
      if hasBegunAgain { return connectLater(now) }
      hasBegunAgain = true
      return connect(now, &actions)
    case CloseCode.authFailed.rawValue, CloseCode.revoked.rawValue, CloseCode.replaced.rawValue:
      phase = .ended
      return actions.append(.event(.refused(code: code)))
    case CloseCode.sequenceGap.rawValue, CloseCode.overflow.rawValue:
      resume = nil
    default: break
    }
    if wasOnline { route.broken() }
    if let wait = route.follow() {
      if wait == .zero { return connect(now, &actions) }
      return deadlines.connect = now + wait
    }
    if wasOnline, isBreak(code), !hasCall, !open.contains(where: { $0.call != nil }), let wait = route.spread(random) {
      return deadlines.connect = now + wait
    }
    connectLater(now)
  }

  private mutating func connectLater(_ now: Instant) {
    let step = Limits.reconnectFirst * Int(1 << UInt64(min(attempt, hasCall ? Limits.reconnectStepsInCall : 5)))
    let wait = min(step, Limits.reconnectLongest)
    attempt += 1
    let jitter = Duration.nanoseconds(Int64(random.next() % UInt64(max(1, wait.nanoseconds / 4))))
    deadlines.connect = now + wait + jitter
  }

  /// The connection or the node is lost, and probably those of many others.
  private func isBreak(_ code: UInt16) -> Bool { code == 1001 || code == 1005 || code == 1006 || code == 1012 || code == 1013 }

  private mutating func timers(_ now: Instant, _ actions: inout [Action]) {
    func due(_ deadline: Instant?) -> Bool { deadline.map { $0 <= now } ?? false }
    if due(deadlines.connect) { connect(now, &actions) }
    if due(deadlines.alternate) {
      // no socket has opened yet: the default route may be dead without an event
      deadlines.alternate = nil
      actions.append(.connectAlternate)
    }
    if due(deadlines.welcome) {
      deadlines.welcome = nil
      actions.append(.close(CloseCode.goingAway.rawValue))
    }
    if due(deadlines.ack) {
      deadlines.ack = nil
      write(ClientFrame(.ack, ack: lastSeen), &actions)
    }
    if due(deadlines.answer) {
      deadlines.answer = nil
      connectTime = Limits.connectTime
      actions.append(.event(.offline))
      phase = .offline
      route.broken()
      return connect(now, &actions)
    }
    if due(deadlines.ping) {
      let isLate = deadlines.ping.map { now - $0 >= Limits.timerLateness } ?? false
      let isSilent = lastReceived < pingedAt && now - lastReceived >= heartbeat * 2
      if isSilent, !isLate || looksAgain {
        deadlines.ping = nil
        actions.append(.close(CloseCode.goingAway.rawValue))
        closed(CloseCode.abnormal.rawValue, now, &actions)
      } else {
        (looksAgain, pingedAt) = (isSilent, now)
        deadlines.ping = now + (isSilent ? Limits.timerLateness : heartbeat)
        write(ClientFrame(.ping), &actions)
      }
    }
  }

  private mutating func received(_ bytes: [UInt8], _ now: Instant, _ actions: inout [Action]) {
    guard phase == .greeting || phase == .online, bytes.count <= Limits.frameBytes else { return }
    (lastReceived, deadlines.answer) = (now, nil)
    guard let frame = try? ServerFrame(decoding: bytes) else { return startAfresh(&actions) }
    if let ack = frame.ack { outbox.removeAll { $0.seq <= ack } }
    if let seq = frame.seq {
      guard seq > lastSeen else { return }
      guard seq == lastSeen + 1 else { return startAfresh(&actions) }
      lastSeen = seq
      if deadlines.ack == nil { deadlines.ack = now + Limits.ackDelay }
    }
    guard case .message(let message) = frame.body else { return }
    switch message {
    case .welcome(let welcome): welcomed(welcome, now, &actions)
    case .ok(let success): complete(frame.re, .success(success), &actions)
    case .err(let failure) where phase == .greeting && frame.re == hello && failure.code == .overload:
      route.point(to: failure.url, after: failure.retryMs, mayHurry: false)
    case .bye(let bye) where bye.code == Int(CloseCode.draining.rawValue):
      route.point(to: bye.url, after: bye.afterMs, mayHurry: true)
    case .err(let failure) where frame.re != nil: complete(frame.re, .failure(failure), &actions)
    case .mediaAnswer(let answer):
      guard let index = open.firstIndex(where: { $0.id == frame.re }), let id = frame.re else { return }
      actions.append(.event(.mediaAnswer(id, call: open.remove(at: index).call, answer)))
    case .ping: write(ClientFrame(.pong), &actions)
    default: actions.append(.event(.message(message, call: frame.call)))
    }
  }

  private mutating func complete(_ id: Identifier?, _ result: Result<Success, Failure>, _ actions: inout [Action]) {
    guard let id, let index = open.firstIndex(where: { $0.id == id }) else { return }
    actions.append(.event(.answered(id, call: open.remove(at: index).call, result)))
  }

  private mutating func welcomed(_ welcome: Welcome, _ now: Instant, _ actions: inout [Action]) {
    guard phase == .greeting else { return }
    phase = .online
    onlineAt = now
    resume = (welcome.sid, welcome.resumeToken)
    node = welcome.node
    route.welcomed(welcome)
    heartbeat = min(.milliseconds(max(1000, welcome.hb)), Limits.heartbeatLongest)
    deadlines = Deadlines()
    deadlines.ping = now + heartbeat
    (pingedAt, looksAgain, connectTime) = (now, false, nil)
    if welcome.resumed {
      outbox.removeAll { $0.seq < welcome.replayFrom }
      for entry in outbox { write(entry, &actions) }
      let queued = Set(outbox.compactMap(\.id))
      for entry in open where !queued.contains(entry.id ?? Identifier(high: 0, low: 0)) {
        post(entry.message, id: entry.id, call: entry.call, &actions)
      }
    } else {
      renumber(live: Set((welcome.calls ?? []).map(\.call)), &actions)
    }
    write(ClientFrame(.ping), &actions)
    actions.append(.event(.online(welcome, calls: welcome.resumed ? nil : welcome.calls ?? [])))
  }

  /// After `resumed: false` the old numbers are void (docs/reference/protocol.md, Session): open requests, and messages that the
  /// snapshot's calls still need, are sent again.
  private mutating func renumber(live: Set<Identifier>, _ actions: inout [Action]) {
    let pending = outbox.filter { entry in
      guard entry.id == nil, let call = entry.call, live.contains(call) else { return false }
      switch entry.message {
      case .callRinging, .callUnavailable, .mediaReady, .mediaFail, .mediaActive: return true
      default: return false
      }
    }
    (outbox, lastSent, lastSeen) = ([], 0, 0)
    for entry in open { post(entry.message, id: entry.id, call: entry.call, &actions) }
    for entry in pending { post(entry.message, id: nil, call: entry.call, &actions) }
  }
}
