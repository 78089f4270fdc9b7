import Synchronization

extension RandomSource {
  /// The same numbers for the same seed: a simulation's only source of chance.
  public static func seeded(_ seed: UInt64) -> RandomSource {
    let generator = SeededGenerator(seed: seed)
    return RandomSource { generator.next() }
  }
}

private final class SeededGenerator: Sendable {
  private let state: Mutex<SplitMix64>
  init(seed: UInt64) { state = Mutex(SplitMix64(seed: seed)) }
  func next() -> UInt64 { state.withLock { $0.next() } }
}
