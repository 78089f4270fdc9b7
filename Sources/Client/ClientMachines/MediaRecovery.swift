import TrunklineBytes

/// When the media of a call restarts, and whether the user sees that it does.
///
/// | event | effect |
/// |---|---|
/// | `failsBeforeAnswer` | true once, while `Limits.restartTime` of the gate's time is left: media restarts |
/// | `waitForSession`: the path is lost and the session offline | `claimRestart` is true once, when the session is online |
/// | `stayedSilent` | the call is reconnecting |
/// | `recovered` | neither; a restart is not necessary any more |
/// | `pathChanged` | media restarts in any case: no other restart waits |
struct MediaRecovery: Sendable {
  /// The gateway has been silent for so long that media restarts.
  private(set) var isReconnecting = false
  /// The call lost its path while its session was offline.
  private(set) var waitsForSession = false
  /// Media has restarted once for the tap; a second failure is final.
  private var hasRestarted = false

  mutating func failsBeforeAnswer(tappedAt: Instant?, at now: Instant) -> Bool {
    guard !hasRestarted, let tappedAt, now + Limits.restartTime <= tappedAt + Limits.gateTime else { return false }
    hasRestarted = true
    return true
  }

  mutating func waitForSession() { waitsForSession = true }

  /// The session is online.
  mutating func claimRestart() -> Bool {
    defer { waitsForSession = false }
    return waitsForSession
  }

  mutating func pathChanged() { waitsForSession = false }
  mutating func stayedSilent() { isReconnecting = true }
  mutating func recovered() { (isReconnecting, waitsForSession) = (false, false) }
}
