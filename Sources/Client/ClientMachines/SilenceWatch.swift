import TrunklineBytes

/// Detects a network that fails without an error: the path is alive while packets arrive.
///
/// | phase | input | → | returns |
/// |---|---|---|---|
/// | receiving | `received`, `connected` | receiving; the silence begins now | `receiving` |
/// | receiving | `due` after `Limits.mediaSilence` | probing: checks are sent | `probing` |
/// | probing | `received` | receiving | `probing` |
/// | probing | `due`: after a stream `Limits.mediaAnswer`, otherwise `mediaAnswerInPause` | reported: the path is dead | `reported` |
/// | reported | `received` | receiving | `reported` |
/// | any | `due` before that; in `reported` ever | same | nil |
struct SilenceWatch: Sendable {
  enum Phase: Sendable { case receiving, probing, reported }
  private var phase = Phase.receiving
  /// When the phase began; in `receiving`: when the last packet arrived.
  private var since = Instant.zero
  /// The numbers of RTP packets in this second and in the previous one.
  private var second = Instant.zero
  private var counts = (now: 0, before: 0)
  private var lastAudioAt = Instant.zero

  /// The call is connected: it was not monitored before.
  mutating func connected(at now: Instant) { since = now }

  /// An authentic packet, or an answer to a check, was received. HOT
  /// - Returns: the phase that it ended.
  mutating func received(at now: Instant, isAudio: Bool) -> Phase {
    since = now
    if isAudio { count(now) }
    defer { phase = .receiving }
    return phase
  }

  private mutating func count(_ now: Instant) {
    if now - second >= .seconds(1) { (second, counts) = (now, (0, now - second < .seconds(2) ? counts.now : 0)) }
    counts.now += 1
    lastAudioAt = now
  }

  /// Whether a stream was interrupted, and not a pause or reports alone.
  private var wasStream: Bool {
    max(counts.now, counts.before) >= Limits.streamPackets && since - lastAudioAt <= Limits.mediaSilence + .milliseconds(200)
  }

  var deadline: Instant? {
    switch phase {
    case .receiving: since + Limits.mediaSilence
    case .probing: since + (wasStream ? Limits.mediaAnswer : Limits.mediaAnswerInPause)
    case .reported: nil
    }
  }

  /// - Returns: the phase that begins; nil: none does.
  mutating func due(at now: Instant) -> Phase? {
    guard let deadline, deadline <= now else { return nil }
    (since, phase) = (now, phase == .receiving ? .probing : .reported)
    return phase
  }
}
