import Bytes

/// What a peer heard, placed on its own time line: sample 0 is `origin`. At most ten minutes are kept.
struct Recording: Sendable {
  static let sampleLimit = 8000 * 600
  private(set) var samples: [Int16] = []
  /// The instant of sample 0: the first write.
  private(set) var origin: Instant?

  /// Writes `frame` as heard from `instant` on.
  mutating func write(_ frame: [Int16], at instant: Instant) {
    let start = origin ?? instant
    origin = start
    let offset = Int((instant - start).nanoseconds / 125_000)
    guard offset >= 0, offset + frame.count <= Self.sampleLimit else { return }
    if samples.count < offset + frame.count { samples += [Int16](repeating: 0, count: offset + frame.count - samples.count) }
    for (index, sample) in frame.enumerated() { samples[offset + index] = sample }
  }
}
