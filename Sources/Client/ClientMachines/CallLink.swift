import TrunklineBytes

/// The session that a call belongs to, and the time at which the call ends without a message of its gateway (`deadline`).
///
/// | event | session | deadline |
/// |---|---|---|
/// | `waits`: pushed, or dialled | – | `Limits.snapshotTime` |
/// | `tapped` | – | `Limits.snapshotTimeAfterTap`, if there is one |
/// | `offered` | – | none |
/// | `started` | its node is known | none |
/// | `assigned`: to a session that has to reach the gateway | this one | same |
/// | `belongs`: a session names the call | this one, and its node | none after `lost`; else the same |
/// | `lost` | none | `Limits.snapshotTime`; connected: `Limits.strayTime`, if its media has failed |
/// | `mediaFailed`, `mediaConnected`, without a session | – | `Limits.strayTime`; none |
/// | `ringsAlone`: its session is disconnected | – | `Limits.ringsAloneTime`, if there is none |
/// | `ringsOn` after it | – | none |
struct CallLink: Sendable {
  private(set) var session = SessionTable.own
  /// The node of the call, if known.
  private(set) var node: String?
  private(set) var deadline: Instant?
  /// No session is at the call's node: the call ends by that node's message at another node's session, by its media, or after a
  /// silence.
  private(set) var hasNoSession = false
  /// The snapshot lacks the call; `call.gone` may still give the reason.
  private(set) var isMissing = false
  /// The call rings while its session is disconnected.
  private var isAlone = false
  /// No message about the call came in time.
  private var isGivenUp = false

  /// The gateway of a ringing call cannot be reached.
  var isUnreachable: Bool { hasNoSession || isAlone }

  // MARK: messages

  mutating func waits(from now: Instant) { deadline = now + Limits.snapshotTime }

  mutating func tapped(at now: Instant) { if deadline != nil { deadline = now + Limits.snapshotTimeAfterTap } }

  mutating func offered() { deadline = nil }

  mutating func started(at node: String?) { (self.node, deadline) = (node, nil) }

  /// Should a message come later, this device rejects the call once, and others continue to ring.
  mutating func giveUp() { isGivenUp = true }

  /// True once for a call that was given up.
  mutating func claimGivenUp() -> Bool {
    defer { isGivenUp = false }
    return isGivenUp
  }

  // MARK: the session

  mutating func assigned(to number: Int) { session = number }

  mutating func belongs(to number: Int, at node: String?) {
    if hasNoSession { deadline = nil }
    session = number
    self.node = node
    hasNoSession = false
    isAlone = false
    isMissing = false
  }

  mutating func lost(isConnected: Bool, hasFailedMedia: Bool, at now: Instant) {
    guard !hasNoSession else { return }
    hasNoSession = true
    session = SessionTable.own
    if !isConnected {
      deadline = now + Limits.snapshotTime
    } else if hasFailedMedia {
      deadline = now + Limits.strayTime
    }
  }

  mutating func missing() { isMissing = true }
  /// The session that would report the call is at another node.
  mutating func notMissing() { isMissing = false }

  mutating func ringsAlone(at now: Instant) {
    guard deadline == nil else { return }
    isAlone = true
    deadline = now + Limits.ringsAloneTime
  }

  /// The session is online again. Also for a call that was answered meanwhile: its tap has its own deadline.
  mutating func ringsOn() { if isAlone { (isAlone, deadline) = (false, nil) } }

  // MARK: media

  mutating func mediaFailed(at now: Instant) { if hasNoSession { deadline = now + Limits.strayTime } }
  mutating func mediaConnected() { if hasNoSession { deadline = nil } }
}
