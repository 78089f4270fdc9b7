import TrunklineAudioCodecs
import TrunklineRTP

/// Detects the pauses of an outgoing stream, in which frames need not be encoded or sent (RFC 3551 §4.1).
///
/// | state | frame | step |
/// |---|---|---|
/// | talking | speech, or within the detector's hang-over | `.send` |
/// | talking | silence | `.describe`: the pause begins |
/// | pausing | silence, `Limits.noiseRefreshFrames` since the last | `.describe` |
/// | pausing | silence | `.skip` |
/// | pausing | speech | `.send` |
///
/// Skipped frames are not sent when speech begins: packets are never sent later than their timestamps state, or receivers treat
/// it as jitter.
struct SilenceGate: ~Copyable {
  enum Step: Equatable {
    case send
    /// The noise of the pause is to be sent: as a frame, or as its level.
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

  /// Measures the level of a relayed stream's frame. HOT
  mutating func measure(_ frame: UnsafePointer<Int16>, _ band: AudioBand) {
    _ = detector.isSilence(Span(_unsafeStart: frame, count: band.samplesPerTick))
  }

  /// The frame is made-up noise because nothing is received: a pause, whatever the detector would report.
  mutating func absent() -> Step {
    defer { pausing &+= 1 }
    return pausing % Limits.noiseRefreshFrames == 0 ? .describe : .skip
  }

  /// Fills in noise like that between the words, limited to `Limits.quietestNoise` and `loudestNoise`; below 4 kHz in either
  /// band, like the noise of rooms.
  mutating func fillNoise(_ frame: UnsafeMutablePointer<Int16>, _ band: AudioBand) {
    let count = AudioBand.narrowband.samplesPerTick
    let start = band == .wideband ? frame + count : frame
    var samples = MutableSpan(_unsafeStart: start, count: count)
    noise.fill(&samples, level: noiseLevel)
    if band == .wideband { widen.convert(start, count, from: .narrowband, to: .wideband, into: frame) }
  }

  var noiseLevel: Double { max(Limits.quietestNoise, min(Limits.loudestNoise, detector.noiseLevel)) }
}
