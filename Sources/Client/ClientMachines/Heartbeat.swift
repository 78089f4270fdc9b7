import TrunklineBytes

/// When a session pings its gateway, and when the connection counts as dead.
///
/// | state | `begin` | `received` | `due` | `stop` |
/// |---|---|---|---|---|
/// | stopped | pings after its time | – | nothing | – |
/// | runs, a frame was received since the last ping | begins again | same | `ping` at its time | stopped |
/// | runs, a ping has no answer | begins again | not silent | `ping` at its time; at twice the time since the last frame, `dead` → stopped; the first time by a late timer `ping`, and again `Limits.timerLateness` later | stopped |
struct Heartbeat: Sendable {
  enum Due { case nothing, ping, dead }

  private var interval = Duration.seconds(15)
  /// When the next ping is due; nil: stopped.
  private var pingAt: Instant?
  private var lastReceived = Instant.zero
  /// When the first ping was sent that nothing was received after; nil: none waits.
  private var unansweredSince: Instant?
  /// The timer of a stopped process is late, and received frames may still be unread: the session checks a second time.
  private var checksAgain = false

  /// - Parameter milliseconds: the gateway's time.
  mutating func begin(every milliseconds: Int, at now: Instant) {
    interval = min(.milliseconds(max(1000, milliseconds)), Limits.heartbeatLongest)
    pingAt = now + interval
    unansweredSince = nil
    checksAgain = false
  }

  mutating func stop() { pingAt = nil }

  /// When `due` is to be called. A connection that falls silent between two pings is dead between two pings, too: the next one
  /// would find it half as long again later.
  var deadline: Instant? {
    guard let pingAt, let unansweredSince, !checksAgain else { return pingAt }
    return min(pingAt, max(lastReceived + interval * 2, unansweredSince + interval))
  }

  mutating func received(at now: Instant) {
    lastReceived = now
    unansweredSince = nil
  }

  mutating func due(at now: Instant) -> Due {
    guard let due = deadline, due <= now else { return .nothing }
    let isSilent = unansweredSince != nil && now - lastReceived >= interval * 2
    if isSilent, now - due < Limits.timerLateness || checksAgain {
      pingAt = nil
      return .dead
    }
    checksAgain = isSilent
    unansweredSince = unansweredSince ?? now
    pingAt = now + (isSilent ? Limits.timerLateness : interval)
    return .ping
  }
}
