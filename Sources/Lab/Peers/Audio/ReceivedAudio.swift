import TrunklineBytes
import TrunklineRTP

/// Audio that a peer received, on its own time line: sample 0 is `origin`. At most ten minutes are kept.
struct ReceivedAudio: Sendable {
  static let sampleLimit = 8000 * 600
  private(set) var samples: [Int16] = []
  /// The instant of sample 0: the first write.
  private(set) var origin: Instant?

  /// Writes `frame` as received from `instant` on.
  mutating func write(_ frame: [Int16], at instant: Instant) {
    let start = origin ?? instant
    origin = start
    let offset = Int((instant - start).nanoseconds / 125_000)
    guard offset >= 0, offset + frame.count <= Self.sampleLimit else { return }
    if samples.count < offset + frame.count { samples += [Int16](repeating: 0, count: offset + frame.count - samples.count) }
    for (index, sample) in frame.enumerated() { samples[offset + index] = sample }
  }
}

extension ReceivedAudio {
  /// RTP audio as an ideal receiver without a jitter buffer plays it: each frame at its timestamp, relative to the fastest
  /// packet.
  /// - Parameter start: the instant of sample 0; nil: that of the earliest frame.
  init(_ frames: [(timestamp: RTPTimestamp, at: Instant, samples: [Int16])], clockRateHz: UInt32, from start: Instant? = nil) {
    guard let first = frames.first else { return }
    func offset(_ timestamp: RTPTimestamp) -> Int64 {
      Int64(timestamp.distance(from: first.timestamp)) * 1_000_000_000 / Int64(clockRateHz)
    }
    let fastest = frames.map { ($0.at - first.at).nanoseconds - offset($0.timestamp) }.min() ?? 0
    let zero = first.at + .nanoseconds(fastest)
    let earliest = frames.map { offset($0.timestamp) }.min() ?? 0
    write([], at: start ?? zero + .nanoseconds(earliest))
    for frame in frames { write(frame.samples, at: zero + .nanoseconds(offset(frame.timestamp))) }
  }
}
