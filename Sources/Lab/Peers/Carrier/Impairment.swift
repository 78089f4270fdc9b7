import TrunklineBytes

/// Imitates a bad network for the packets of a peer: loss, delay variation and reordering, the same for the same seed.
struct Impairment: Sendable {
  var lossPercent = 0.0
  /// Each packet waits 0 to this long.
  var jitterMilliseconds = 0.0
  /// This share of packets waits 30 ms more and so arrives after the next.
  var reorderPercent = 0.0
  private var random: SplitMix64

  init(lossPercent: Double = 0, jitterMilliseconds: Double = 0, reorderPercent: Double = 0, seed: UInt64 = 4733) {
    (self.lossPercent, self.jitterMilliseconds, self.reorderPercent) = (lossPercent, jitterMilliseconds, reorderPercent)
    random = SplitMix64(seed: seed)
  }

  var isNone: Bool { lossPercent <= 0 && jitterMilliseconds <= 0 && reorderPercent <= 0 }

  /// How long the next packet is held back; nil if it is lost.
  mutating func next() -> Duration? {
    if Double.random(in: 0..<100, using: &random) < lossPercent { return nil }
    var wait = jitterMilliseconds > 0 ? Double.random(in: 0..<jitterMilliseconds, using: &random) : 0
    if Double.random(in: 0..<100, using: &random) < reorderPercent { wait += 30 }
    return .nanoseconds(Int64(wait * 1e6))
  }
}
