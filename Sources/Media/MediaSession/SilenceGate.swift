import AudioCodecs

/// Leaves silence out of an outgoing stream (RFC 3551 §4.1): frames of a pause are not sent, a refresh is, and at the beginning
/// of speech the two frames before it go first, so that the first sound is whole.
///
/// | state | frame | step |
/// |---|---|---|
/// | talking | speech, or within the detector's hang-over | `.send(lookBack: 0)` |
/// | talking | silence | `.describe`: the pause begins |
/// | pausing | silence, `Limits.noiseRefreshFrames` since the last | `.describe` |
/// | pausing | silence | `.skip` |
/// | pausing | speech | `.send(lookBack:)` the frames left out, two at most |
struct SilenceGate: ~Copyable {
  enum Step: Equatable {
    case send(lookBack: Int)
    /// The noise of the pause is to be told: as a frame of it, or as its level.
    case describe
    case skip
  }

  private(set) var detector = SilenceDetector()
  private(set) var noise = NoiseGenerator()
  /// Frames of the present pause, 0 while talking.
  private var pausing = 0
  /// Frames kept since the last one that was sent or described.
  private var unsent = 0
  // A ring of `Limits.lookBackFrames` frames, from `remember` to `forget`; freed in deinit.
  private var past: UnsafeMutablePointer<Int16>?
  private var head = 0

  init() {}
  deinit { past?.deallocate() }

  /// From here on frames that are left out can be fetched back; allocates if they could not before.
  mutating func remember() {
    guard past == nil else { return }
    let memory = UnsafeMutablePointer<Int16>.allocate(capacity: Limits.lookBackFrames * Frame.samples)
    memory.initialize(repeating: 0, count: Limits.lookBackFrames * Frame.samples)
    past = memory
  }

  /// Nothing is fetched back any more: the stream is relayed.
  mutating func forget() {
    unsent = 0
    past?.deallocate()
    past = nil
  }

  /// What to do with this frame. HOT
  mutating func judge(_ frame: UnsafePointer<Int16>) -> Step {
    let isSilence = detector.isSilence(Span(_unsafeStart: frame, count: Frame.samples))
    guard isSilence else {
      defer { (pausing, unsent) = (0, 0) }
      return .send(lookBack: pausing == 0 ? 0 : unsent)
    }
    return pause(frame)
  }

  /// Takes a frame of a relayed stream into the levels. HOT
  mutating func measure(_ frame: UnsafePointer<Int16>) {
    _ = detector.isSilence(Span(_unsafeStart: frame, count: Frame.samples))
  }

  /// The frame is made-up noise because nothing comes in: a pause, whatever the detector would say.
  mutating func absent(_ frame: UnsafePointer<Int16>) -> Step { pause(frame) }

  /// Something else takes the audio's place: what was left out before is not fetched back.
  mutating func interrupt() { unsent = 0 }

  private mutating func pause(_ frame: UnsafePointer<Int16>) -> Step {
    defer { pausing &+= 1 }
    guard pausing % Limits.noiseRefreshFrames != 0 else {
      unsent = 0
      return .describe
    }
    guard let past else { return .skip }
    (past + head * Frame.samples).update(from: frame, count: Frame.samples)
    head = (head + 1) % Limits.lookBackFrames
    unsent = min(Limits.lookBackFrames, unsent + 1)
    return .skip
  }

  /// The frame `back` (1 is the last) before the present one, among those left out; nil if they are not remembered.
  func frame(back: Int) -> UnsafePointer<Int16>? {
    guard let past, back >= 1, back <= Limits.lookBackFrames else { return nil }
    return UnsafePointer(past + (head + Limits.lookBackFrames - back) % Limits.lookBackFrames * Frame.samples)
  }

  /// Noise such as there was between the words, but neither dead nor a nuisance.
  mutating func fillNoise(_ frame: UnsafeMutablePointer<Int16>) {
    var samples = MutableSpan(_unsafeStart: frame, count: Frame.samples)
    noise.fill(&samples, level: noiseLevel)
  }

  var noiseLevel: Double { max(Limits.quietestNoise, min(Limits.loudestNoise, detector.noiseLevel)) }
}
