import JSONWebToken
import TrunklineAppProtocol
import TrunklineBytes

/// All WebSocket sessions of one app thread: hello, welcome, numbering, replay, answers, heartbeat and expiry
/// (docs/reference/protocol.md). The machine has no sockets and no calls: it receives frames as bytes and knows calls by id only.
/// One thread.
///
/// A connection:
///
/// | phase | input | → | what happens |
/// |---|---|---|---|
/// | awaitingHello | `hello{auth}`, good | bound | old session of the device ends (4009), `.connected`, waits for `.welcome` |
/// | awaitingHello | `hello{resume}`, good | bound | old socket closed (4009), `welcome{resumed}`, replay |
/// | awaitingHello | `hello{resume}` of a session of the cluster that this node does not have | bound | as `hello{auth}` |
/// | awaitingHello | `hello{wake}` of another node's call | closing | `err{overload, fatal, url}`, 1012 |
/// | awaitingHello | `hello`, refused | closing | `err{auth, fatal}`, 4001 (draining 1012, overload 1013) |
/// | awaitingHello | other message, 5 s | closing | 4001 |
/// | bound, not welcomed | any message | bound | queued until control welcomes or refuses; more than 64: 1008 |
/// | bound, not welcomed | control refuses | closing | `err{…, fatal}`, 4001 (1013, 4003); queued messages are dropped |
/// | bound | silence of hb; 2 × hb | bound; closing | WebSocket ping; 1001 |
/// | bound | silence of 2 s; 6 s after a numbered message | bound; closing | WebSocket ping; 1001 |
/// | bound | gap in `seq`, outbox over its bound | closing | 4002, 4008; the session is dead |
/// | any | not JSON, too deep, too big, too fast | closing | 1007, 1009, 1008; the session can be resumed |
/// | closing | anything but `.closed` | closing | ignored |
///
/// A session: connected ⇄ disconnected (resumable) → ended. It ends by the client's close 1000, a new `hello{auth}` of its
/// device, 4001, 4002, 4003, 4008, 1012, or after 2 minutes without socket and live call.
public struct SessionMachine {
  enum TimerKey: Hashable {
    case connection(ConnectionID)
    case session(SessionID)
    /// The answers of a device without a session.
    case answers(DeviceKey)
    /// The next sessions that a drain closes.
    case drain
  }

  var settings: SessionSettings
  let random: RandomSource
  var connections: [ConnectionID: Connection] = [:]
  var sessions: [SessionID: Session] = [:]
  var sessionOfDevice: [DeviceKey: SessionID] = [:]
  /// The next time at which a session may be ended to free a slot for another device.
  var roomAgain = Instant.zero
  var sessionsOfUser: [String: Int] = [:]
  var answers: [DeviceKey: AnswerStore] = [:]
  var timers = DeadlineQueue<TimerKey>()
  var wakeUses = WakeUses()
  var unknownKeys = UnknownKeys()
  /// HTTP requests that wait for the control thread's answer.
  var pendingHTTP: [HTTPRequestID: PendingHTTP] = [:]
  var isDraining = false
  /// Sessions that a drain in a cluster has yet to close, the next one last.
  var leaving: [SessionID] = []
  /// How many of them each step of the drain closes.
  var leavingAtOnce = 0
  var nodes = NodeTable()
  /// By scope (`DirectoryScope`).
  var directoryVersions: [String: Int]
  /// Wall clock minus monotonic clock, in milliseconds.
  var wallOffset: Int64 = 0
  public internal(set) var stats = SessionStats()

  /// - Parameter directoryVersions: the present ones, by scope (`DirectoryScope`).
  public init(settings: SessionSettings, random: RandomSource, directoryVersions: [String: Int] = [:]) {
    (self.settings, self.random, self.directoryVersions) = (settings, random, directoryVersions)
  }

  /// When `.timer` is due next; it may find nothing to do.
  public var nextDeadline: Instant? { timers.next }
  /// Sessions with a socket, and those that could be resumed.
  public internal(set) var connectedCount = 0
  public var resumableCount: Int { sessions.count - connectedCount }
  /// Sockets, including those that are not yet bound.
  public var connectionCount: Int { connections.count }

  /// Sets the wall clock, on which token expiry and `welcome.time` depend. Call it again after the system's clock was changed.
  public mutating func setWallClock(unixMilliseconds: Int64, at now: Instant) {
    wallOffset = unixMilliseconds - now.nanoseconds / 1_000_000
  }

  /// Applies new settings to later sessions. Sessions of users that were removed are closed with 4003, after their calls.
  public mutating func reconfigure(_ settings: SessionSettings, at now: Instant, into output: inout Output) {
    self.settings = settings
    for (id, session) in sessions where !settings.users.contains(session.device.user) {
      closeAfterCalls(id, .revoked, now, &output)
    }
  }

  /// Replaces the keys that were fetched from their URL, for later tokens.
  public mutating func replaceKeys(_ verifier: TokenVerifier, fetchedAt: Instant?) {
    settings.verifier = verifier
    settings.keysFetchedAt = fetchedAt
  }

  public mutating func handle(_ input: Input, at now: Instant, into output: inout Output) {
    switch input {
    case .opened(let id, let address):
      connections[id] = Connection(address: address, at: now)
      rearm(connection: id)
    case .frame(let id, let bytes): frameReceived(bytes, on: id, now, &output)
    case .alive(let id): received(id, now)
    case .congested(let id):
      if case .bound(let session) = connections[id]?.phase {
        end(session, .overflow, now, &output)
      } else {
        close(id, .overflow, now, &output)
      }
    case .commandLost(let device): if let id = sessionOfDevice[device] { end(id, .overflow, now, &output) }
    case .welcomeLost(let id): end(id, .tryAgainLater, now, &output)
    case .closed(let id, let code): socketClosed(id, code, now, &output)
    case .httpReject(let request, let call, let bearer, let body):
      httpReject(request, call: call, bearer: bearer, body: body, now, &output)
    case .httpLogin(let request, let bearer): httpLogin(request, bearer: bearer, now, &output)
    case .httpGone(let request): pendingHTTP[request] = nil
    case .command(let command): perform(command, now, &output)
    case .timer: while let key = timers.popDue(at: now) { timerFired(key, now, &output) }
    }
  }

  func unixMilliseconds(_ now: Instant) -> Int64 { now.nanoseconds / 1_000_000 &+ wallOffset }
}

// Endings.
extension SessionMachine {
  /// Closes the socket. Its session, if any, is disconnected and can be resumed.
  mutating func close(_ id: ConnectionID, _ code: CloseCode, _ now: Instant, _ output: inout Output) {
    guard let phase = connections[id]?.phase, phase != .closing else { return }
    connections[id]?.phase = .closing
    timers.cancel(.connection(id))
    output.actions.append(.close(id, code))
    stats.closes[code, default: 0] += 1
    if case .bound(let session) = phase { disconnected(session, now, &output) }
  }

  mutating func socketClosed(_ id: ConnectionID, _ code: CloseCode?, _ now: Instant, _ output: inout Output) {
    guard let connection = connections.removeValue(forKey: id) else { return }
    timers.cancel(.connection(id))
    guard case .bound(let session) = connection.phase else { return }
    disconnected(session, now, &output)
    if code == .normal { end(session, nil, now, &output) }
  }

  mutating func disconnected(_ id: SessionID, _ now: Instant, _ output: inout Output) {
    guard var session = sessions[id], session.connection != nil else { return }
    session.connection = nil
    connectedCount -= 1
    session.ackDue = nil
    session.resumableUntil = session.live.isEmpty ? now + Limits.resumeWindow : nil
    sessions[id] = session
    output.events.append(.disconnected(session.device, id))
    if session.awaitsWelcome != nil { return end(id, nil, now, &output) }  // the client never received the sid
    rearm(session: id, now)
  }

  /// Ends the session; its socket, if any, is closed with `code`.
  mutating func end(_ id: SessionID, _ code: CloseCode?, _ now: Instant, _ output: inout Output) {
    if let connection = sessions[id]?.connection, let code {
      if code == .draining { write(.bye(draining()), on: id, &output) }
      close(connection, code, now, &output)
    }
    guard let session = sessions.removeValue(forKey: id) else { return }
    timers.cancel(.session(id))
    let user = session.device.user
    sessionsOfUser[user] = sessionsOfUser[user].flatMap { $0 > 1 ? $0 - 1 : nil }
    if sessionOfDevice[session.device] == id {
      sessionOfDevice[session.device] = nil
      if answers[session.device] != nil {
        timers.schedule(.answers(session.device), notLaterThan: now + Limits.answersWithoutSession)
      }
    }
    output.events.append(.ended(session.device, id))
  }

  mutating func closeAfterCalls(_ id: SessionID, _ code: CloseCode, _ now: Instant, _ output: inout Output) {
    sessions[id]?.closesAfterCalls = code
    endIfDue(id, now, &output)
  }

  /// Ends a session that is to be closed or has expired, once it has no live call and does not wait for its welcome.
  mutating func endIfDue(_ id: SessionID, _ now: Instant, _ output: inout Output) {
    guard let session = sessions[id], session.live.isEmpty, session.awaitsWelcome == nil else { return }
    if let code = session.closesAfterCalls {
      end(id, code, now, &output)
    } else if session.isExpired(unixMilliseconds: unixMilliseconds(now)) {
      end(id, .authFailed, now, &output)
    }
  }
}

// Writing.
extension SessionMachine {
  /// Sends a message that is not numbered, with the ack that is due.
  mutating func write(
    _ message: ServerMessage, re: Identifier? = nil, call: Identifier? = nil, on id: SessionID, _ output: inout Output
  ) {
    write(ServerFrame(message, re: re, call: call), on: id, &output)
  }

  mutating func write(_ frame: ServerFrame, on id: SessionID, _ output: inout Output) {
    guard var session = sessions[id], let connection = session.connection else { return }
    var frame = frame
    if session.receivedSeq > session.ackSentSeq {
      frame.ack = session.receivedSeq
      session.ackSentSeq = session.receivedSeq
      session.ackDue = nil
      sessions[id] = session
    }
    output.actions.append(.send(connection, frame.encoded()))
    stats.messagesSent += 1
  }

  /// Numbers a message, keeps it until it is acked, and sends it. A full outbox ends the session (4008).
  mutating func writeNumbered(
    _ message: ServerMessage, re: Identifier? = nil, call: Identifier, on id: SessionID, _ now: Instant,
    _ output: inout Output
  ) {
    guard let frame = sessions[id]?.outbox.append(message, re: re, call: call) else {
      return end(id, .overflow, now, &output)
    }
    write(frame, on: id, &output)
    if let connection = sessions[id]?.connection, connections[connection]?.unansweredSince == nil {
      connections[connection]?.unansweredSince = now
      rearm(connection: connection)
    }
  }
}
