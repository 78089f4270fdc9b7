import SpeechScore
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

/// Audio of one direction of a sampled call, kept coded while the call runs, then decoded and compared, so that it costs nothing
/// during the call.
struct SampledAudio {
  /// Limit of kept frames: a sentence from the call's first word on, and the frames after it.
  static let frames = 600
  /// Frames spoken so shortly before the call's end need not arrive: the gateway may still catch up kept first words.
  static let onTheirWay = 25
  /// Fewer frames prove too little: 3 s, in which kept first words are caught up.
  static let leastSaid = 150
  private var kept: [(timestamp: RTPTimestamp, at: Instant, payload: [UInt8])] = []
  /// When the speaker began its sentence, and the number of its frames spoken before the call's end.
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

  /// The call is hung up now: speech from here on need not be received.
  mutating func callEnds() { isEnding = true }

  mutating func received(_ timestamp: RTPTimestamp, _ payload: [UInt8], at now: Instant) {
    if spokenAt != nil, kept.count < Self.frames { kept.append((timestamp, now, payload)) }
  }

  /// Samples of a sentence of `count` that should have been received; nil if the call was too short.
  func expected(of count: Int) -> Int? {
    let frames = spoken - Self.onTheirWay
    return frames < Self.leastSaid ? nil : min(count, frames * 160)
  }

  /// Compares the received audio with `sentence`, as far as it was spoken before the call's end, as an ideal receiver without a
  /// jitter buffer plays it. Nil if the call was too short, or no audio was received.
  func compare(with sentence: [Int16], encoding: AudioEncoding) -> SpeechComparison? {
    guard let spokenAt, !kept.isEmpty, let count = expected(of: sentence.count) else { return nil }
    let said = Array(sentence.prefix(count))
    guard var decoder = try? AudioDecoder(encoding: encoding) else { return nil }
    var frames: [(timestamp: RTPTimestamp, at: Instant, samples: [Int16])] = []
    for entry in kept.sorted(by: { $1.timestamp.isNewer(than: $0.timestamp) }) {
      var samples = [Int16](repeating: 0, count: TrunklineAudioCodecs.Limits.packetMilliseconds * 8)
      var room = samples.mutableSpan
      let count = decoder.decode(entry.payload.span, into: &room)
      frames.append((entry.timestamp, entry.at, Array(samples[..<count])))
    }
    let recording = ReceivedAudio(frames, clockRateHz: encoding.clockRateHz, from: spokenAt)
    return SpeechComparison(played: said, heard: Array(recording.samples.prefix(said.count + 8000)), searchMilliseconds: 600)
  }
}
