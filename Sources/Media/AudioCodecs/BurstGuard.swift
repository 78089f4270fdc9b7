/// Keeps what no talker said from being loud: a payload of random octets decodes to noise near full scale, and so may the good
/// packet after it. Audio that is suspect is brought down to the loudest 20 ms of the last 200, in mean square and in its
/// highest sample, so that no window of 20 ms anywhere is more than 3 dB above. Audio that is not suspect passes unchanged,
/// however sudden it is; after suspect audio the factor returns to 1 within 20 ms.
///
/// G.711 has no wrong octets, but random ones look like nothing on a telephone line: white, loud and without warning. That
/// alone makes them suspect. What is suspect does not count as loudness; only when nothing else came for 200 ms it is let in, 1
/// dB every 20 ms.
///
/// Two passes over the samples; no allocation.
public struct BurstGuard: Sendable {
  /// Mean squares and highest samples of the last ten windows; the other lanes stay 0.
  private var powers = SIMD16<Float>(repeating: 0)
  private var peaks = SIMD16<Float>(repeating: 0)
  private var window = 0
  private var factor: Float = 1
  /// Suspect windows in a row.
  private var run = 0
  private static let windows = 10
  /// −60 dBov: nobody is startled below.
  private static let harmlessPower: Float = 1074
  private static let harmlessPeak: Float = 100
  /// −24 dBov.
  private static let loud: Float = 4_300_000
  /// 1 dB.
  private static let growth: Float = 1.12
  /// Share of the energy that the correlation of neighbouring samples has in speech: nearly always more than this.
  private static let white: Float = 0.25

  public init() {}

  /// Audio was brought down.
  public private(set) var limited: UInt64 = 0

  /// Takes the next `count` decoded samples, in place.
  /// - Parameters:
  ///   - isSuspect: they may not be what was sent.
  ///   - judgesNoise: suspects white noise (G.711).
  // HOT
  public mutating func admit(_ samples: UnsafeMutableBufferPointer<Int16>, isSuspect: Bool, judgesNoise: Bool) {
    var start = 0
    while start < samples.count {
      let end = min(samples.count, start + Limits.samplesPerTick)
      admit(UnsafeMutableBufferPointer(rebasing: samples[start..<end]), isSuspect, judgesNoise)
      start = end
    }
  }

  private mutating func admit(_ samples: UnsafeMutableBufferPointer<Int16>, _ isSuspect: Bool, _ judgesNoise: Bool) {
    var (energy, neighbours, peak): (Int64, Int64, Int32) = (0, 0, 0)
    for sample in samples {
      energy &+= Int64(Int32(sample) &* Int32(sample))
      peak = max(peak, abs(Int32(sample)))
    }
    var (power, highest) = (Float(energy) / Float(max(1, samples.count)), Float(peak))
    let (mostPower, mostPeak) = (max(Self.harmlessPower, powers.max()), max(Self.harmlessPeak, peaks.max()))
    var wanted: Float = 1
    var suspect = isSuspect
    if !suspect, judgesNoise, power > Self.loud, power > mostPower {
      for index in 1..<max(1, samples.count) { neighbours &+= Int64(Int32(samples[index]) &* Int32(samples[index - 1])) }
      suspect = Float(abs(neighbours)) < Self.white * Float(energy)
    }
    if suspect, power > mostPower || highest > mostPeak {
      wanted = min((mostPower / power).squareRoot(), mostPeak / highest)
      if run > Self.windows { wanted = min(1, max(wanted, factor * Self.growth)) }
      limited &+= 1
    }
    run = suspect ? run &+ 1 : 0
    if wanted < 1 {
      for index in 0..<samples.count { samples[index] = Int16(truncatingIfNeeded: Int32(Float(samples[index]) * wanted)) }
      (power, highest) = (power * wanted * wanted, highest * wanted)
    } else if factor < 1 {
      // Good audio after limited audio: from the limit to all of it.
      let step = (1 - factor) / Float(samples.count)
      for index in 0..<samples.count {
        samples[index] = Int16(truncatingIfNeeded: Int32(Float(samples[index]) * (factor + step * Float(index))))
      }
    }
    factor = wanted
    powers[window] = suspect ? 0 : power
    peaks[window] = suspect ? 0 : highest
    window = window + 1 == Self.windows ? 0 : window + 1
  }

  /// Forgets the past, for another source.
  public mutating func reset() { self = BurstGuard() }
}
