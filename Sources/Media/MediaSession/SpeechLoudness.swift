import AudioCodecs
import RTP

/// How loud a received stream is, in mean squares: what tells its pauses, in which delay is changed unheard.
struct SpeechLoudness {
  var band: AudioBand
  /// The loudest 20 ms lately: down by half in 2.8 s.
  private(set) var loudest: Float = 0
  /// The newest 20 ms that were received.
  private var newest: Float = 0
  private static let decay: Float = 0.995
  /// 20 dB.
  private static let pauseRatio: Float = 100

  init(_ band: AudioBand) { self.band = band }

  /// What is quieter is a pause.
  var pauseLevel: Float { loudest / Self.pauseRatio }
  /// The talker pauses, or nearly.
  var isPause: Bool { newest < pauseLevel }

  /// Takes the next audio of the stream, received or repaired. HOT
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

  /// Made-up audio says nothing of the talker; its time goes by.
  mutating func pass(_ length: Int) {
    for _ in stride(from: 0, to: length, by: band.samplesPerTick) { loudest *= Self.decay }
  }
}
