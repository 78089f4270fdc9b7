import TrunklineBytes

/// Whether a leg's peer still sends.
///
/// | state | input | next | returns |
/// |---|---|---|---|
/// | any | `received` | live, since now | whether it was silent |
/// | never received | `restart` | same | |
/// | live or silent | `restart`: the silence was ours | same, since now | |
/// | live | `fellSilent` | silent | |
struct Liveness {
  private(set) var isSilent = false
  /// When the last valid packet arrived.
  private(set) var last: Instant?

  /// HOT
  @inline(__always) mutating func received(at now: Instant) -> Bool {
    last = now
    guard isSilent else { return false }
    isSilent = false
    return true
  }

  mutating func restart(at now: Instant) { if last != nil { last = now } }

  mutating func fellSilent() { isSilent = true }
}

/// How long a peer has been silent, without the time in which the process was stopped: packets that arrived meanwhile still wait
/// in the sockets.
///
/// | input | effect |
/// |---|---|
/// | `check` within `Limits.interruption` of the last one, or the first | – |
/// | `check` after a longer time | silence counts from now on |
struct SilenceWatch {
  private var checkedAt: Instant?
  private var uninterruptedSince = Instant.zero

  mutating func check(at now: Instant) {
    if let checkedAt, now - checkedAt >= Limits.interruption { uninterruptedSince = now }
    checkedAt = now
  }

  func length(since last: Instant, at now: Instant) -> Duration { now - max(last, uninterruptedSince) }
}
