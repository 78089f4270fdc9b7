import Bytes

/// A network that dies without a word: the path is believed for as long as something comes.
extension ClientMedia {
  struct SilenceWatch: Sendable {
    enum Phase { case heard, asked, told }
    var phase = Phase.heard
    /// When the phase began; of `heard`: when something came last.
    var since = Instant.zero
    /// RTP packets of this second and of the one before.
    private var second = Instant.zero
    private var counts = (now: 0, before: 0)
    private var heardAudio = Instant.zero

    mutating func count(_ now: Instant) {
      if now - second >= .seconds(1) { (second, counts) = (now, (0, now - second < .seconds(2) ? counts.now : 0)) }
      counts.now += 1
      heardAudio = now
    }
    /// What broke off when the silence began was a stream, not a pause, nor reports alone.
    var wasStream: Bool {
      max(counts.now, counts.before) >= Limits.streamPackets && since - heardAudio <= Limits.mediaSilence + .milliseconds(200)
    }
  }

  /// An authentic packet, or an answer to a check.
  mutating func heardPeer(_ now: Instant, isAudio: Bool = false, _ output: inout Output) {
    silenceWatch.since = now
    if isAudio { silenceWatch.count(now) }
    guard silenceWatch.phase != .heard else { return }
    if silenceWatch.phase == .told { output.reports.append(.silence(.ended)) }
    silenceWatch.phase = .heard
    agent.settle()
  }

  var silenceDeadline: Instant? {
    mutating get {
      guard isActive, isConnected, isConnectedTold > 0 else { return nil }
      return switch silenceWatch.phase {
      case .heard: silenceWatch.since + Limits.mediaSilence
      case .asked: silenceWatch.since + (silenceWatch.wasStream ? Limits.mediaAnswer : Limits.mediaAnswerInPause)
      case .told: nil
      }
    }
  }

  /// On timers.
  mutating func watchSilence(_ now: Instant, _ output: inout Output) {
    guard let due = silenceDeadline, due <= now else { return }
    silenceWatch.since = now
    switch silenceWatch.phase {
    case .heard:
      silenceWatch.phase = .asked
      agent.ask(at: now)
      output.reports.append(.silence(.began))
    case .asked:
      silenceWatch.phase = .told
      output.reports.append(.silence(.stays))
    case .told: break
    }
  }
}
