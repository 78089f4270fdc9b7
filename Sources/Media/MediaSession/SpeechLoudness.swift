import TrunklineAudioCodecs
import TrunklineRTP

/// The loudness of a received stream, in mean squares: detects its pauses, in which delay is changed inaudibly.
struct SpeechLoudness {
  var band: AudioBand
  /// The loudest recent 20 ms: decays by half in 2.8 s.
  private(set) var loudest: Float = 0
  /// The newest received 20 ms.
  private var newest: Float = 0
  private static let decay: Float = 0.995
  /// 20 dB.
  private static let pauseRatio: Float = 100

  init(_ band: AudioBand) { self.band = band }

  /// Audio below this level is a pause.
  var pauseLevel: Float { loudest / Self.pauseRatio }
  /// The talker pauses, or nearly.
  var isPause: Bool { newest < pauseLevel }

  /// Measures the stream's next audio, received or repaired. HOT
  mutating func measure(_ samples: UnsafeMutableBufferPointer<Int16>) {
    guard let base = samples.baseAddress else { return }
    var start = 0
    while start < samples.count {
      let count = min(band.samplesPerTick, samples.count &- start)
      newest = Float(SampleSums.energy(base + start, count)) / Float(count)
      loudest = max(loudest * Self.decay, newest)
      start &+= count
    }
  }

  /// Lets time pass for made-up audio, which does not show the talker's level.
  mutating func pass(_ length: Int) {
    for _ in stride(from: 0, to: length, by: band.samplesPerTick) { loudest *= Self.decay }
  }
}
