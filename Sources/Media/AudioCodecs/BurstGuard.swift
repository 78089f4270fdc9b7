/// Keeps what no talker said from being loud: a payload of random octets decodes to noise near full scale, and so may the good
/// packet after it. Audio that is suspect is brought down to the loudest 20 ms of the last 200, in mean square and in its
/// highest sample, so that no window of 20 ms anywhere is more than 3 dB above. Audio that is not suspect passes unchanged,
/// however sudden it is; after suspect audio the factor returns to 1 within 20 ms.
///
/// Only what is louder than all of the last 200 ms is judged, some 3 % of speech. Suspect is what the caller says is, and what
/// looks like nothing on a line (`SuddenAudio`). A stream that has sent such things, or no audio at all, is not trusted
/// for five seconds: what gets louder then must have a pitch, as a word's first vowel has.
///
/// What is suspect does not count as loudness. White noise, and what has no pitch on a stream that is not trusted, is let in when
/// nothing else came for 200 ms, 1 dB every 20 ms: a line may really be noise. Random octets never are.
///
/// Two passes over the samples; no allocation.
public struct BurstGuard: Sendable {
  /// Mean squares and highest samples of the last ten windows; the other lanes stay 0.
  private var powers = SIMD16<Float>(repeating: 0)
  private var peaks = SIMD16<Float>(repeating: 0)
  private var window = 0
  private var factor: Float = 1
  /// Samples brought down in a row that may be a line's noise.
  private var run = 0
  /// Windows until the stream is trusted again.
  private var distrust = 0
  private static let windows = 10
  /// −60 dBov: nobody is startled below.
  private static let harmlessPower: Float = 1074
  private static let harmlessPeak: Float = 100
  /// 1 dB.
  private static let growth: Float = 1.12
  /// 2 dB: noise is never quite even.
  private static let uneven: Float = 1.58

  public init() {}

  /// The mean square of the loudest 20 ms lately: down by half in 2.8 s.
  public private(set) var loudness: Float = 0

  /// Audio was brought down.
  public private(set) var limited: UInt64 = 0

  /// The mean square above which a payload had better be looked at twice: louder than all of the last 200 ms by 2 dB, or any while the
  /// stream is not trusted.
  public var alarm: Float { isDistrusting ? Self.harmlessPower : max(Self.harmlessPower, powers.max()) * Self.uneven }
  /// The stream sent what it cannot have meant, in the last five seconds.
  public var isDistrusting: Bool { distrust > 0 }

  /// A payload was no audio of the stream's codec, or no encoder can have made it.
  public mutating func alarmed() { distrust = Limits.distrustedWindows }

  /// Takes the next decoded samples, in place.
  /// - Parameters:
  ///   - isSuspect: they may not be what was sent.
  ///   - judgesNoise: suspects what looks like random octets (all codecs but Opus, whose decoder knows better).
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
    var (energy, peak, sum): (Int64, Int32, Int32) = (0, 0, 0)
    for sample in samples {
      energy &+= Int64(Int32(sample) &* Int32(sample))
      sum &+= Int32(sample)
      peak = max(peak, abs(Int32(sample)))
    }
    var (power, highest) = (Float(energy) / Float(max(1, samples.count)), Float(peak))
    let (mostPower, mostPeak) = (max(Self.harmlessPower, powers.max()), max(Self.harmlessPeak, peaks.max()))
    var (suspect, unproven, mayBeMeant) = (isSuspect, false, false)
    let isSudden = power > mostPower * Self.uneven || highest > mostPeak * Self.uneven
    let mean = Float(sum) / Float(max(1, samples.count))
    let isStrange = power > mostPower || isSudden || distrust > 0 || mean * mean > power / 4
    if !suspect, power > Self.harmlessPower, isStrange {
      let likeness = judgesNoise ? SuddenAudio.likeness(samples, power: power) : .speech
      suspect = likeness != .speech
      unproven = distrust > 0 && isSudden && !SuddenAudio.hasPitch(samples)
      mayBeMeant = likeness != .octets
    }
    var wanted: Float = 1
    if suspect || unproven, power > mostPower || highest > mostPeak {
      wanted = min((mostPower / power).squareRoot(), mostPeak / highest)
      if run > Self.windows * Limits.samplesPerTick { wanted = min(1, max(wanted, factor * Self.growth)) }
      limited &+= 1
    }
    run = wanted < 1 && mayBeMeant ? run &+ samples.count : 0
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
    distrust = max(0, distrust &- 1)
    loudness = max(loudness * 0.995, suspect ? 0 : power)
    powers[window] = suspect ? 0 : power
    peaks[window] = suspect ? 0 : highest
    window = window + 1 == Self.windows ? 0 : window + 1
  }

  /// Forgets the past, for another source.
  public mutating func reset() { self = BurstGuard() }
}
