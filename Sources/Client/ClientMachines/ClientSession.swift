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

  private var configuration: Configuration
  private let random: RandomSource
  private var phase = Phase.offline
  private var resume: (sid: String, token: String)?
  private var attempt = 0
  private var onlineAt = Instant.zero
  /// A fresh hello was sent at once after a refused resume; the next one waits.
  private var hasBegunAgain = false
  private var heartbeat = Heartbeat()
  /// Time limit of the next connection, after a socket that was replaced.
  private var connectTime: Duration?
  private var deadlines = Deadlines()
  private var messages = NumberedMessages()
  private var route = Route()
  private var hello: Identifier?
  /// The owner has a call: a lost connection is replaced at once.
  public var hasCall = false
  /// The node that has welcomed this session; nil: there is only one node, or none has welcomed it yet.
  public private(set) var node: String?

  private struct Deadlines {
    var connect: Instant?, alternate: Instant?, welcome: Instant?, ack: Instant?, answer: Instant?
    var next: Instant? { [connect, alternate, welcome, ack, answer].compactMap { $0 }.min() }
  }

  public init(configuration: Configuration, random: RandomSource) {
    (self.configuration, self.random) = (configuration, random)
  }

  /// The token of the next fresh `hello`; it also replaces the wake token.
  public mutating func use(token: Redacted<String>) { (configuration.token, configuration.wake) = (token, nil) }
  public mutating func use(state: AppState) { configuration.state = state }

  /// When `.timer` is due.
  public var nextDeadline: Instant? { [deadlines.next, heartbeat.deadline].compactMap(\.self).min() }
  public var isOnline: Bool { phase == .online }
  /// The address for the socket; nil: the owner's address.
  public var gateway: String? { route.now ?? configuration.gateway }
  /// The node's own address; nil: it has none, or none has welcomed this session.
  public var home: String? { route.home }
  /// Online, and the gateway has received all messages.
  public var isQuiet: Bool { phase == .online && messages.isEmpty }

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
      attempt = 0
      connectTime = nil
      if phase == .online { actions.append(.event(.offline)) }
      route.broken()
      connect(now, &actions)
    case .finish:
      guard phase != .ended else { return }
      if phase == .greeting || phase == .online { actions.append(.close(CloseCode.normal.rawValue)) }
      phase = .ended
      stopTimers()
    }
  }

  /// Sends a request, now or after the next welcome; its answer arrives as `.answered` (or `.mediaAnswer`) with the returned id.
  public mutating func request(_ message: ClientMessage, call: Identifier?, at now: Instant, into actions: inout [Action])
    -> Identifier
  {
    let id = Identifier(random: random)
    let request = NumberedMessages.Message(message: message, id: id, call: call)
    if let refusal = messages.isFull ? ErrorCode.tooMany : isTooBig(request) ? .badRequest : nil {
      actions.append(.event(.answered(id, call: call, .failure(Failure(refusal)))))
      return id
    }
    messages.ask(request)
    post(request, &actions)
    if call != nil { handle(.hurry, at: now, into: &actions) }
    return id
  }

  /// Sends a message that has no answer.
  public mutating func notify(_ message: ClientMessage, call: Identifier?, at now: Instant, into actions: inout [Action]) {
    let notification = NumberedMessages.Message(message: message, call: call)
    if !isTooBig(notification) { post(notification, &actions) }
  }

  /// The gateway would close the connection for such a message (1009), and for each repeat after a resume.
  private func isTooBig(_ entry: NumberedMessages.Message) -> Bool {
    ClientFrame(entry.message, id: entry.id, seq: .max, ack: .max, call: entry.call).encoded().count > Limits.frameBytes
  }

  private mutating func post(_ entry: NumberedMessages.Message, _ actions: inout [Action]) {
    guard entry.message.type.isNumbered else {
      if phase == .online { write(ClientFrame(entry.message, id: entry.id, call: entry.call), &actions) }
      return
    }
    guard let numbered = messages.number(entry) else { return startAfresh(&actions) }
    if phase == .online { write(numbered, &actions) }
  }

  private mutating func write(_ entry: NumberedMessages.Message, _ actions: inout [Action]) {
    deadlines.ack = nil
    write(ClientFrame(entry.message, id: entry.id, seq: entry.seq, ack: messages.ack, call: entry.call), &actions)
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
    stopTimers()
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
    stopTimers()
    deadlines.welcome = now + Limits.welcomeDeadline
    let proof: Hello.Proof =
      if let resume {
        .resume(Hello.Resume(sid: resume.sid, token: resume.token, lastSeq: messages.lastSeen))
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
    stopTimers()
    if wasOnline { actions.append(.event(.offline)) }
    // A gateway that closes directly after each welcome must not be contacted five times a second.
    if wasOnline, now - onlineAt >= Limits.stableTime {
      attempt = 0
      hasBegunAgain = false
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
    if wasOnline, isBreak(code), !hasCall, !messages.hasCallRequest, let wait = route.spread(random) {
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
      write(ClientFrame(.ack, ack: messages.lastSeen), &actions)
    }
    if due(deadlines.answer) {
      deadlines.answer = nil
      connectTime = Limits.connectTime
      actions.append(.event(.offline))
      phase = .offline
      route.broken()
      return connect(now, &actions)
    }
    switch heartbeat.due(at: now) {
    case .nothing: break
    case .ping: write(ClientFrame(.ping), &actions)
    case .dead:
      actions.append(.close(CloseCode.goingAway.rawValue))
      closed(CloseCode.abnormal.rawValue, now, &actions)
    }
  }

  private mutating func stopTimers() {
    deadlines = Deadlines()
    heartbeat.stop()
  }

  private mutating func received(_ bytes: [UInt8], _ now: Instant, _ actions: inout [Action]) {
    guard phase == .greeting || phase == .online, bytes.count <= Limits.frameBytes else { return }
    heartbeat.received(at: now)
    deadlines.answer = nil
    guard let frame = try? ServerFrame(decoding: bytes) else { return startAfresh(&actions) }
    if let ack = frame.ack { messages.acked(ack) }
    if let seq = frame.seq {
      switch messages.received(seq) {
      case .next: break
      case .repeated: return
      case .gap: return startAfresh(&actions)
      }
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
      guard let id = frame.re, let request = messages.answered(id) else { return }
      actions.append(.event(.mediaAnswer(id, call: request.call, answer)))
    case .ping: write(ClientFrame(.pong), &actions)
    default: actions.append(.event(.message(message, call: frame.call)))
    }
  }

  private mutating func complete(_ id: Identifier?, _ result: Result<Success, Failure>, _ actions: inout [Action]) {
    guard let id, let request = messages.answered(id) else { return }
    actions.append(.event(.answered(id, call: request.call, result)))
  }

  private mutating func welcomed(_ welcome: Welcome, _ now: Instant, _ actions: inout [Action]) {
    guard phase == .greeting else { return }
    phase = .online
    onlineAt = now
    resume = (welcome.sid, welcome.resumeToken)
    node = welcome.node
    route.welcomed(welcome)
    stopTimers()
    heartbeat.begin(every: welcome.hb, at: now)
    connectTime = nil
    if welcome.resumed {
      let (kept, asked) = messages.resumed(from: welcome.replayFrom)
      for entry in kept { write(entry, &actions) }
      for entry in asked { post(entry, &actions) }
    } else {
      // the old numbers are void (docs/reference/protocol.md, Session)
      for entry in messages.renumber(live: Set((welcome.calls ?? []).map(\.call))) { post(entry, &actions) }
    }
    write(ClientFrame(.ping), &actions)
    actions.append(.event(.online(welcome, calls: welcome.resumed ? nil : welcome.calls ?? [])))
  }
}
