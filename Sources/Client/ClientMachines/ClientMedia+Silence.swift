import TrunklineBytes

/// Detects a network that fails without an error: the path is alive while packets arrive.
extension ClientMedia {
  struct SilenceWatch: Sendable {
    enum Phase { case receiving, probing, reported }
    var phase = Phase.receiving
    /// When the phase began; in `receiving`: when the last packet arrived.
    var since = Instant.zero
    /// The numbers of RTP packets in this second and in the previous one.
    private var second = Instant.zero
    private var counts = (now: 0, before: 0)
    private var lastAudioAt = Instant.zero

    mutating func count(_ now: Instant) {
      if now - second >= .seconds(1) { (second, counts) = (now, (0, now - second < .seconds(2) ? counts.now : 0)) }
      counts.now += 1
      lastAudioAt = now
    }
    /// Whether a stream was interrupted, and not a pause or reports alone.
    var wasStream: Bool {
      max(counts.now, counts.before) >= Limits.streamPackets && since - lastAudioAt <= Limits.mediaSilence + .milliseconds(200)
    }
  }

  /// An authentic packet, or an answer to a check, was received.
  mutating func packetReceived(_ now: Instant, isAudio: Bool = false, _ output: inout Output) {
    silenceWatch.since = now
    if isAudio { silenceWatch.count(now) }
    guard silenceWatch.phase != .receiving else { return }
    if silenceWatch.phase == .reported { output.reports.append(.silence(.ended)) }
    silenceWatch.phase = .receiving
    agent.endProbe()
  }

  var silenceDeadline: Instant? {
    mutating get {
      guard isActive, isConnected, connectedReportedGeneration > 0 else { return nil }
      return switch silenceWatch.phase {
      case .receiving: silenceWatch.since + Limits.mediaSilence
      case .probing: silenceWatch.since + (silenceWatch.wasStream ? Limits.mediaAnswer : Limits.mediaAnswerInPause)
      case .reported: nil
      }
    }
  }

  /// Call on timers.
  mutating func watchSilence(_ now: Instant, _ output: inout Output) {
    guard let due = silenceDeadline, due <= now else { return }
    silenceWatch.since = now
    switch silenceWatch.phase {
    case .receiving:
      silenceWatch.phase = .probing
      agent.probe(at: now)
      output.reports.append(.silence(.began))
    case .probing:
      silenceWatch.phase = .reported
      output.reports.append(.silence(.stays))
    case .reported: break
    }
  }
}
