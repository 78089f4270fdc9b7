import TrunklineBytes

/// The state of the call as control has set it, so far as its audio depends on it.
///
/// | operation | condition | effect |
/// |---|---|---|
/// | `lock` | `mayLock`: not locked, not connected | the winner's audio is accepted, and kept |
/// | `openEarly` | not connected | the trunk's audio reaches the winner |
/// | `connect` | not connected | both directions are open; returns true. The time stays with a second `connect` |
/// | `winnerRemoved` | – | neither locked nor early; a connected call stays connected |
/// | `mute` | – | set |
/// | `hold` | differs from the present state | set; returns true |
/// | `awaitPlayout` | the device has not reported that it plays | the deadline is set; returns true |
/// | `playoutActive` | – | the device plays; there is no deadline any more |
/// | `playoutIsAssumed` | the deadline has passed | true once |
/// | `close` | – | closed, for good: the session ignores every further input |
struct SessionState {
  private(set) var isLocked = false
  private(set) var isEarly = false
  private(set) var isMuted = false
  private(set) var isHeld = false
  private(set) var isClosed = false
  /// `playoutActive` was received, maybe before the connect.
  private var isPlaying = false
  private(set) var connectedAt: Instant?
  private var playoutAssumedAt = Instant.distantFuture

  @inline(__always) var isConnected: Bool { connectedAt != nil }
  var mayLock: Bool { !isLocked && !isConnected }
  /// The winner's audio is accepted, to be kept or sent.
  @inline(__always) var acceptsApp: Bool { isConnected || isLocked }
  /// The trunk's audio reaches the winner.
  @inline(__always) var reachesApp: Bool { isConnected || isEarly }

  mutating func lock() { if mayLock { isLocked = true } }

  mutating func openEarly() { if !isConnected { isEarly = true } }

  @discardableResult mutating func connect(at now: Instant) -> Bool {
    guard !isConnected else { return false }
    connectedAt = now
    return true
  }

  mutating func winnerRemoved() { (isLocked, isEarly) = (false, false) }

  mutating func mute(_ on: Bool) { isMuted = on }

  mutating func hold(_ on: Bool) -> Bool {
    guard isHeld != on else { return false }
    isHeld = on
    return true
  }

  mutating func close() { isClosed = true }

  // MARK: The device's play-out

  mutating func awaitPlayout(at now: Instant) -> Bool {
    guard !isPlaying else { return false }
    playoutAssumedAt = now + Limits.playoutAssumed
    return true
  }

  mutating func playoutActive() { (isPlaying, playoutAssumedAt) = (true, .distantFuture) }

  mutating func playoutIsAssumed(at now: Instant) -> Bool {
    guard now >= playoutAssumedAt else { return false }
    playoutAssumedAt = .distantFuture
    return true
  }
}
