/// Tells speech from the pauses between, a tick at a time and ahead of an encoder: what is silence need not be encoded. About
/// 0.15 µs a tick of speech, and the work of `Tonality` for one that is quiet; no allocation, one stream.
///
/// A tick is silence when it is near nothing at all, or when neither its energy nor the energy of its high frequencies (an "s"
/// has little else) stands out from the least of the last two seconds, and it is no tone: music that is turned down is quiet
/// and steady, too. Anything at or above −45 dBov is never silence: music, tones and loud surroundings are what the caller is
/// meant to hear. A constant offset is no energy. After speech the verdict stays for a hang-over, so that the end of a word is
/// whole.
///
///     if detector.isSilence(samples) { … }
public struct SilenceDetector: Sendable {
  /// Mean squares of raw samples; 2³⁰ is 0 dBov.
  private static let fullScale = 1_073_741_824.0
  /// −45 dBov.
  private static let alwaysHeard = fullScale * 3.162e-5
  /// −66 dBov.
  private static let neverHeard = fullScale * 2.512e-7
  /// 6 dB above the least of two seconds, so about 4.5 above the mean of steady noise.
  private static let ratio = 4.0
  /// 8 dB: foretold by so much, the mean of some ticks is a tone.
  private static let tonalGain: Float = 6.3
  private static let windowTicks = 25
  private static let windows = 4
  private static let hangOver = 12
  /// After less than three ticks of "speech", which may have been a click.
  private static let shortHangOver = 4

  /// The least of each half second, the present one first: what noise there is under the speech. At first as in a quiet room.
  private var least = SIMD4<Double>(repeating: neverHeard)
  private var leastHigh = SIMD4<Double>(repeating: neverHeard)
  private var ticksInWindow = 0
  /// The same without the assumption; infinite before the first tick.
  private var measured = SIMD4<Double>(repeating: .infinity)
  private var talking = 0
  private var hang = 0
  /// The prediction gain of quiet ticks lately.
  private var tonality: Float = 1
  private var speechSum = 0.0
  private var speechTicks = 0

  public init() {}

  /// Classifies 20 ms; true: nobody speaks.
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
    follow(energy, highEnergy)
    guard stands(energy, highEnergy) || isTonal(samples, energy) else {
      talking = 0
      hang = max(0, hang &- 1)
      return hang == 0
    }
    talking &+= 1
    (speechSum, speechTicks) = (speechSum + energy, speechTicks &+ 1)
    hang = max(hang, talking >= 3 ? Self.hangOver : Self.shortHangOver)
    return false
  }

  private func stands(_ energy: Double, _ high: Double) -> Bool {
    if energy >= Self.alwaysHeard { return true }
    if energy <= Self.neverHeard { return false }
    return energy > least.min() * Self.ratio || high > leastHigh.min() * Self.ratio
  }

  /// A tick that does not stand out, but is of tones.
  private mutating func isTonal(_ samples: Span<Int16>, _ energy: Double) -> Bool {
    guard energy > Self.neverHeard else { return false }
    // Tones far above their noise foretell more than the mean of a few ticks needs: bounded, it takes three.
    let gain = min(Tonality.predictionGain(samples), 2 * Self.tonalGain)
    tonality += (gain - tonality) / 4
    return tonality >= Self.tonalGain
  }

  private mutating func follow(_ energy: Double, _ high: Double) {
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

  /// The last tick counted as speech only because of what was said before it: it is what the pause will sound like.
  public var isLingering: Bool { talking == 0 && hang > 0 }
  /// The noise between the words in dBov, −127 at least and before anything was heard.
  public var noiseLevel: Double {
    let energy = measured.min()
    return energy.isFinite ? LevelMeter.decibels(energy / Self.fullScale) : -127
  }
  /// The mean level of what counted as speech, hang-over left out, in dBov; nil before any.
  public var speechLevel: Double? {
    speechTicks == 0 ? nil : LevelMeter.decibels(speechSum / Double(speechTicks) / Self.fullScale)
  }
}
