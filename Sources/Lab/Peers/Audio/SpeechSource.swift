import SpeechScore
import TrunklineAudioCodecs

/// A peer's speech: samples played once or repeatedly, in frames of 20 ms.
struct SpeechSource: Sendable {
  let samples: [Int16]
  var repeats = false
  private(set) var position = 0

  init(samples: [Int16], repeats: Bool = false) { (self.samples, self.repeats) = (samples, repeats) }

  static var telephone: [Int16] { WAVFile.samples(ofG711: DemoSpeech.telephone, law: .mu) }
  static var app: [Int16] { WAVFile.samples(ofG711: DemoSpeech.app, law: .mu) }

  /// True once a source that does not repeat has been played to its end.
  var isOver: Bool { !repeats && position >= samples.count }

  /// The next 160 samples; silence after the end.
  mutating func next() -> [Int16] {
    var frame = [Int16](repeating: 0, count: 160)
    for index in 0..<160 {
      if position >= samples.count {
        guard repeats, !samples.isEmpty else { break }
        position = 0
      }
      frame[index] = samples[position]
      position += 1
    }
    return frame
  }
}

/// The peers' speech if no file is given, to compare with received audio.
public enum PeerSpeech {
  public static var telephone: [Int16] { SpeechSource.telephone }
  public static var app: [Int16] { SpeechSource.app }
}
