import AudioCodecs
import RTP

/// Tells the pauses of an outgoing stream, in which frames need not be encoded or sent (RFC 3551 §4.1).
///
/// | state | frame | step |
/// |---|---|---|
/// | talking | speech, or within the detector's hang-over | `.send` |
/// | talking | silence | `.describe`: the pause begins |
/// | pausing | silence, `Limits.noiseRefreshFrames` since the last | `.describe` |
/// | pausing | silence | `.skip` |
/// | pausing | speech | `.send` |
///
/// What was left out is not sent after all when speech begins: packets never come later than their timestamps say, or receivers
/// take it for jitter.
struct SilenceGate: ~Copyable {
  enum Step: Equatable {
    case send
    /// The noise of the pause is to be told: as a frame of it, or as its level.
    case describe
    case skip
  }

  private(set) var detector = SilenceDetector()
  private(set) var noise = NoiseGenerator()
  private let widen = BandConverter()
  /// Frames of the present pause, 0 while talking.
  private var pausing = 0

  /// What to do with this frame. HOT
  mutating func classify(_ frame: UnsafePointer<Int16>, _ band: AudioBand) -> Step {
    guard detector.isSilence(Span(_unsafeStart: frame, count: band.samplesPerTick)) else {
      pausing = 0
      return .send
    }
    return absent()
  }

  /// Takes a frame of a relayed stream into the levels. HOT
  mutating func measure(_ frame: UnsafePointer<Int16>, _ band: AudioBand) {
    _ = detector.isSilence(Span(_unsafeStart: frame, count: band.samplesPerTick))
  }

  /// The frame is made-up noise because nothing comes in: a pause, whatever the detector would say.
  mutating func absent() -> Step {
    defer { pausing &+= 1 }
    return pausing % Limits.noiseRefreshFrames == 0 ? .describe : .skip
  }

  /// Noise such as there was between the words, but neither dead nor a nuisance; below 4 kHz in either band, where rooms have theirs.
  mutating func fillNoise(_ frame: UnsafeMutablePointer<Int16>, _ band: AudioBand) {
    let count = AudioBand.narrowband.samplesPerTick
    let start = band == .wideband ? frame + count : frame
    var samples = MutableSpan(_unsafeStart: start, count: count)
    noise.fill(&samples, level: noiseLevel)
    if band == .wideband { widen.convert(start, count, from: .narrowband, to: .wideband, into: frame) }
  }

  var noiseLevel: Double { max(Limits.quietestNoise, min(Limits.loudestNoise, detector.noiseLevel)) }
}
