import TrunklineAppProtocol
import TrunklineBytes

extension SessionMachine {
  mutating func rearm(connection id: ConnectionID) {
    guard let connection = connections[id] else { return }
    switch connection.phase {
    case .awaitingHello(let until): timers.schedule(.connection(id), notLaterThan: until)
    case .bound:
      var deadline = connection.lastReceived + (connection.isPinged ? settings.heartbeat * 2 : pingAfter)
      if let since = connection.unansweredSince {
        deadline = min(deadline, since + (connection.isPinged ? Limits.unanswered : Limits.unansweredPing))
      }
      // Rounded up to a grid, so that idle sessions share timer wake-ups.
      let grid = max(1, settings.heartbeat.nanoseconds / Limits.heartbeatGrid)
      let remainder = deadline.nanoseconds % grid
      timers.schedule(.connection(id), notLaterThan: remainder == 0 ? deadline : deadline + .nanoseconds(grid - remainder))
    case .closing: break
    }
  }

  /// A client that pings each heartbeat, as it should, is not pinged back.
  private var pingAfter: Duration { settings.heartbeat * Limits.pingAfterEighths / 8 }

  mutating func rearm(session id: SessionID, _ now: Instant) {
    guard let session = sessions[id] else { return }
    var next = session.ackDue ?? .distantFuture
    if let until = session.resumableUntil { next = min(next, until) }
    if session.connection != nil, session.awaitsWelcome == nil {
      let left = (session.expiryNoticeAt ?? session.expiresAt).subtractingReportingOverflow(unixMilliseconds(now)).partialValue
      // An expired session with live calls waits for `callDead`, not for the clock.
      if left > 0 || session.expiryNoticeAt != nil || session.live.isEmpty {
        next = min(next, now + .milliseconds(min(max(left, 0), 86_400_000)))
      }
    }
    if next != .distantFuture { timers.schedule(.session(id), notLaterThan: next) }
  }

  mutating func timerFired(_ key: TimerKey, _ now: Instant, _ output: inout Output) {
    switch key {
    case .connection(let id): connectionTimerFired(id, now, &output)
    case .session(let id): sessionTimerFired(id, now, &output)
    case .drain: sendAway(now, &output)
    case .answers(let device): if sessionOfDevice[device] == nil { answers[device] = nil }
    }
  }

  private mutating func connectionTimerFired(_ id: ConnectionID, _ now: Instant, _ output: inout Output) {
    guard let connection = connections[id] else { return }
    switch connection.phase {
    case .awaitingHello(let until) where now >= until:
      stats.refusals[.helloMissing, default: 0] += 1
      close(id, .authFailed, now, &output)
    case .bound
    where now - connection.lastReceived >= settings.heartbeat * 2
      || connection.isPinged && isUnanswered(connection, Limits.unanswered, now):
      close(id, .goingAway, now, &output)
    case .bound
    where !connection.isPinged
      && (now - connection.lastReceived >= pingAfter || isUnanswered(connection, Limits.unansweredPing, now)):
      connections[id]?.isPinged = true
      // the ping has its time, also where this thread itself was late
      if connection.unansweredSince != nil { connections[id]?.unansweredSince = now - Limits.unansweredPing }
      output.actions.append(.ping(id))
    default: break
    }
    rearm(connection: id)
  }

  private func isUnanswered(_ connection: Connection, _ time: Duration, _ now: Instant) -> Bool {
    connection.unansweredSince.map { now - $0 >= time } ?? false
  }

  private mutating func sessionTimerFired(_ id: SessionID, _ now: Instant, _ output: inout Output) {
    guard let session = sessions[id] else { return }
    if let until = session.resumableUntil, now >= until { return end(id, nil, now, &output) }
    if let due = session.ackDue, now >= due {
      sessions[id]?.ackDue = nil
      write(.ack, on: id, &output)
    }
    if session.connection != nil, session.awaitsWelcome == nil {
      let unix = unixMilliseconds(now)
      if let due = session.expiryNoticeAt, unix >= due {
        sessions[id]?.expiryNoticeAt = nil
        write(.authExpiring(AuthExpiring(at: session.expiresAt - Limits.expiryLeewayMilliseconds)), on: id, &output)
      }
      endIfDue(id, now, &output)
    }
    rearm(session: id, now)
  }
}
