import TrunklineAudioCodecs

/// A meter's peak: the loudest 20 ms lately.
struct LevelPeak: Sendable {
  private var meanSquare = 0.0
  /// What is left of a peak after 20 ms: it falls by 11 dB a second.
  private static let rest = 0.95

  /// - Returns: dBov.
  mutating func measure(_ samples: Span<Int16>) -> Double {
    meanSquare = max(LevelMeter.meanSquare(samples), meanSquare * Self.rest)
    return LevelMeter.decibels(meanSquare)
  }
}
