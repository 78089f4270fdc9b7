import AudioCodecs
import Bytes
import RTP
import SpeechScore

/// Audio of one direction of a sampled call, kept coded while the call runs; decoded and compared afterwards, so that it costs
/// nothing then.
struct SampledAudio {
  /// Kept at most: a sentence from the call's first word on, and what comes after it.
  static let frames = 600
  /// Said that shortly before the call ends, frames need not arrive: first words that were kept may still be caught up.
  static let onTheirWay = 25
  /// Fewer frames say too little: 3 s, in which kept first words are caught up.
  static let leastSaid = 150
  private var kept: [(timestamp: RTPTimestamp, at: Instant, payload: [UInt8])] = []
  /// When the speaker began its sentence, and how many frames of it were said before the call's end.
  private var spokenAt: Instant?
  private var spoken = 0
  private var isEnding = false

  var isFull: Bool { kept.count >= Self.frames }

  /// The speaker's next frame; the first is the sentence's first.
  mutating func spoke(at now: Instant) {
    guard !isEnding else { return }
    if spokenAt == nil { spokenAt = now }
    spoken += 1
  }

  /// The call is hung up now: what is said from here on need not be heard.
  mutating func callEnds() { isEnding = true }

  mutating func received(_ timestamp: RTPTimestamp, _ payload: [UInt8], at now: Instant) {
    if spokenAt != nil, kept.count < Self.frames { kept.append((timestamp, now, payload)) }
  }

  /// Samples of a sentence of `count` that should have been heard; nil if the call was too short to say.
  func expected(of count: Int) -> Int? {
    let frames = spoken - Self.onTheirWay
    return frames < Self.leastSaid ? nil : min(count, frames * 160)
  }

  /// What was heard of `sentence`, as far as it was said before the call's end, as an ideal receiver without a jitter buffer
  /// plays it. Nil if the call was too short, or nothing was heard.
  func compare(with sentence: [Int16], encoding: AudioEncoding) -> SpeechComparison? {
    guard let spokenAt, !kept.isEmpty, let count = expected(of: sentence.count) else { return nil }
    let said = Array(sentence.prefix(count))
    guard var decoder = try? AudioDecoder(encoding: encoding) else { return nil }
    var frames: [(timestamp: RTPTimestamp, at: Instant, samples: [Int16])] = []
    for entry in kept.sorted(by: { $1.timestamp.isNewer(than: $0.timestamp) }) {
      var samples = [Int16](repeating: 0, count: AudioCodecs.Limits.packetMilliseconds * 8)
      var room = samples.mutableSpan
      let count = decoder.decode(entry.payload.span, into: &room)
      frames.append((entry.timestamp, entry.at, Array(samples[..<count])))
    }
    let recording = Recording(frames, clockRateHz: encoding.clockRateHz, from: spokenAt)
    return SpeechComparison(played: said, heard: Array(recording.samples.prefix(said.count + 8000)), searchMilliseconds: 600)
  }
}
