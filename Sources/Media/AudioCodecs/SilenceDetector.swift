/// Distinguishes speech from pauses, one tick at a time and before the encoder: silence need not be encoded. About 0.15 µs per
/// tick of speech, and the work of `Tonality` for a quiet tick; no allocation, one stream.
///
/// A tick is silence if it is close to digital silence, or if neither its energy nor the energy of its high frequencies (an "s"
/// has little else) is 6 dB above the minimum of the last two seconds, and it is not a tone: music at low volume is quiet and
/// steady, too. A tick at or above −45 dBov is never silence: the caller should hear music, tones and loud surroundings. A
/// constant offset has no energy. After speech the verdict holds for a hang-over, so that the end of a word is complete.
///
///     if detector.isSilence(samples) { … }
public struct SilenceDetector: Sendable {
  /// Mean squares of raw samples; 2³⁰ is 0 dBov.
  private static let fullScale = 1_073_741_824.0
  /// −45 dBov.
  private static let alwaysHeard = fullScale * 3.162e-5
  /// −66 dBov.
  private static let neverHeard = fullScale * 2.512e-7
  /// 6 dB above the minimum of two seconds, so about 4.5 above the mean of steady noise.
  private static let ratio = 4.0
  /// 8 dB: a mean prediction gain this high over some ticks means a tone.
  private static let tonalGain: Float = 6.3
  private static let windowTicks = 25
  private static let windows = 4
  private static let hangOver = 12
  /// After less than three ticks of "speech", which may have been a click.
  private static let shortHangOver = 4

  /// The minimum of each half second, the current one first: the noise floor under the speech. It starts at the level of a quiet
  /// room.
  private var least = SIMD4<Double>(repeating: neverHeard)
  private var leastHigh = SIMD4<Double>(repeating: neverHeard)
  private var ticksInWindow = 0
  /// The minima without that assumption; infinite before the first tick.
  private var measured = SIMD4<Double>(repeating: .infinity)
  private var talking = 0
  private var hang = 0
  /// Running mean of the prediction gain of quiet ticks.
  private var tonality: Float = 1
  private var speechSum = 0.0
  private var speechTicks = 0

  public init() {}

  /// Classifies 20 ms; true means silence.
  // HOT
  public mutating func isSilence(_ samples: Span<Int16>) -> Bool {
    guard samples.count > 1 else { return true }
    var (sum, high, total): (Int64, Int64, Int64) = (0, 0, 0)
    var last = Int32(samples[0])
    for index in 0..<samples.count {
      let sample = Int32(samples[index])
      let step = sample &- last
      total &+= Int64(sample)
      sum &+= Int64(sample &* sample)
      high &+= Int64(step) &* Int64(step)
      last = sample
    }
    let mean = Double(total) / Double(samples.count)
    let (energy, highEnergy) = (max(0, Double(sum) / Double(samples.count) - mean * mean), Double(high) / Double(samples.count))
    follow(energy, high: highEnergy)
    guard stands(energy, high: highEnergy) || isTonal(samples, energy) else {
      talking = 0
      hang = max(0, hang &- 1)
      return hang == 0
    }
    talking &+= 1
    speechSum = speechSum + energy
    speechTicks = speechTicks &+ 1
    hang = max(hang, talking >= 3 ? Self.hangOver : Self.shortHangOver)
    return false
  }

  private func stands(_ energy: Double, high: Double) -> Bool {
    if energy >= Self.alwaysHeard { return true }
    if energy <= Self.neverHeard { return false }
    return energy > least.min() * Self.ratio || high > leastHigh.min() * Self.ratio
  }

  /// A tick that is not louder than the noise floor, but consists of tones.
  private mutating func isTonal(_ samples: Span<Int16>, _ energy: Double) -> Bool {
    guard energy > Self.neverHeard else { return false }
    // Tones far above their noise have a very large gain; the bound makes the mean need three ticks.
    let gain = min(Tonality.predictionGain(samples), 2 * Self.tonalGain)
    tonality += (gain - tonality) / 4
    return tonality >= Self.tonalGain
  }

  private mutating func follow(_ energy: Double, high: Double) {
    if ticksInWindow == Self.windowTicks {
      least = SIMD4(energy, least.x, least.y, least.z)
      leastHigh = SIMD4(high, leastHigh.x, leastHigh.y, leastHigh.z)
      measured = SIMD4(energy, measured.x, measured.y, measured.z)
      ticksInWindow = 0
    }
    measured.x = min(measured.x, energy)
    least.x = min(least.x, energy)
    leastHigh.x = min(leastHigh.x, high)
    ticksInWindow &+= 1
  }

  /// The last tick counts as speech only because of the hang-over: it resembles the pause after it.
  public var isLingering: Bool { talking == 0 && hang > 0 }
  /// The noise between words in dBov; at least −127, which is also the value before any tick.
  public var noiseLevel: Double {
    let energy = measured.min()
    return energy.isFinite ? LevelMeter.decibels(energy / Self.fullScale) : -127
  }
  /// The mean level of ticks that counted as speech, without hang-over, in dBov; nil before any.
  public var speechLevel: Double? {
    speechTicks == 0 ? nil : LevelMeter.decibels(speechSum / Double(speechTicks) / Self.fullScale)
  }
}
