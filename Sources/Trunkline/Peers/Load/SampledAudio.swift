import AudioCodecs
import Bytes
import RTP
import SpeechScore

/// Audio of one direction of a sampled call, kept coded while the call runs; decoded and compared afterwards, so that it costs
/// nothing then.
struct SampledAudio {
  /// What is compared: one sentence, after the jitter buffers have settled.
  static let frames = 600
  private var kept: [(timestamp: RTPTimestamp, at: Instant, payload: [UInt8])] = []
  /// When the speaker said frame 0 of a repetition of its sentence.
  private var spokenAt: Instant?

  var isFull: Bool { kept.count >= Self.frames }

  mutating func spoke(frame: Int, at now: Instant) { if frame == 0, spokenAt == nil { spokenAt = now } }

  mutating func heard(_ timestamp: RTPTimestamp, _ payload: [UInt8], at now: Instant) {
    if spokenAt != nil, kept.count < Self.frames { kept.append((timestamp, now, payload)) }
  }

  /// What was heard of `said`, as an ideal receiver without a jitter buffer plays it. Nil if too little came.
  func compare(with said: [Int16], encoding: AudioEncoding) -> SpeechComparison? {
    guard let spokenAt, let first = kept.first else { return nil }
    let unit = 1_000_000_000 / Int64(encoding.clockRateHz)
    func offset(_ timestamp: RTPTimestamp) -> Int64 { Int64(timestamp.distance(from: first.timestamp)) * unit }
    let fastest = kept.map { ($0.at - first.at).nanoseconds - offset($0.timestamp) }.min() ?? 0
    let origin = first.at + .nanoseconds(fastest)
    var recording = Recording()
    recording.write([], at: spokenAt)
    var decoder: OpusDecoder? = nil
    if encoding == .opus { decoder = try? OpusDecoder() }
    for entry in kept.sorted(by: { $1.timestamp.isNewer(than: $0.timestamp) }) {
      var frame = [Int16](repeating: 0, count: encoding == .opus ? 960 : entry.payload.count)
      var room = frame.mutableSpan
      if encoding == .opus {
        guard let count = try? decoder?.decode(entry.payload.span, into: &room) else { continue }
        frame.removeLast(frame.count - count)
      } else {
        _ = G711.decode(entry.payload.span, law: encoding == .pcma ? .a : .mu, into: &room)
      }
      recording.write(frame, at: origin + .nanoseconds(offset(entry.timestamp)))
    }
    return SpeechComparison(played: said, heard: Array(recording.samples.prefix(said.count + 8000)), searchMilliseconds: 600)
  }
}
