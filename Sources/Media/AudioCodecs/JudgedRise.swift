/// What `BurstGuard` judged 20 ms by that got louder than all of the last 200: a row of what `SuddenSoundWeights` are fitted to.
public struct JudgedRise: Sendable {
  /// Of `SuddenSound`: 42, and two zeros.
  public let values: InlineArray<44, Float>
  public let source: SoundSource
  /// Mean square and highest sample, before anything was brought down.
  public let power: Float
  public let peak: Float
  /// The stream was not trusted.
  public let isDistrusted: Bool
  /// The verdict of the weights there are.
  public let evidence: Float

  init(_ sound: SuddenSound, _ source: SoundSource, _ power: Float, _ peak: Float, _ isDistrusted: Bool, _ evidence: Float) {
    (values, self.source, self.power, self.peak) = (sound.values, source, power, peak)
    (self.isDistrusted, self.evidence) = (isDistrusted, evidence)
  }
}
