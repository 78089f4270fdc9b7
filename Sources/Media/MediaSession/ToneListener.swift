import TrunklineAudioCodecs
import TrunklineRTP

/// Detects the trunk's digits in its audio, while it may send them as tones.
///
/// | input | listening | not listening |
/// |---|---|---|
/// | `listen(true)` | same: a digit may be in progress | listening |
/// | `listen(false)` | not listening; a digit in progress is dropped | same |
/// | `receive` | a digit that has ended | nil |
struct ToneListener: ~Copyable {
  private var detector: ToneDetector?
  /// Stored, because each packet asks: `detector != nil` through this struct copies the detector.
  private(set) var isListening = false

  init() {}

  mutating func listen(_ on: Bool) {
    guard on != isListening else { return }
    isListening = on
    detector = on ? ToneDetector() : nil
  }

  /// `count` 0: no audio. HOT
  mutating func receive(_ samples: UnsafePointer<Int16>, count: Int, band: AudioBand) -> ReceivedDigit? {
    let digit = count == 0 ? detector?.absent() : detector?.hear(Span(_unsafeStart: samples, count: count), band)
    return digit ?? nil
  }
}
