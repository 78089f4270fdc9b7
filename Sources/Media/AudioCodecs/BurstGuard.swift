/// How audio came about: what is wrong with it shows differently.
public enum SoundSource: UInt8, Sendable { case g711, g722, silk, hybrid, celt, madeUp }

/// Keeps what no talker said from being loud: a payload of random octets decodes to noise near full scale, and so may the good
/// packet after it. Audio that is suspect is brought down to the loudest 20 ms of the last 200, in mean square and in its
/// highest sample, so that no window of 20 ms anywhere is more than 3 dB above. Audio that is not suspect passes unchanged,
/// however sudden it is; after suspect audio the factor returns to 1 within 20 ms.
///
/// Only what is louder than all of the last 200 ms is judged, some 5 % of speech. Suspect is what the caller says is, and what
/// looks like nothing on a line (`SuddenAudio`) or no voice that begins (`SuddenSound`); single wild samples are put right
/// (`ClickRepair`). A stream that has sent such things, or no audio at all, is not trusted for five seconds: what gets louder then
/// must have a pitch, as a word's first vowel has, or begin like nothing that is wrong.
/// Such a rise, and one that looks a little wrong, is let in by 2.5 dB for 20 ms, or for 60 while much is wrong, and in full when it
/// goes on.
///
/// What is suspect does not count as loudness. White noise, and what has no pitch on a stream that is not trusted, is let in when
/// nothing else came for 200 ms (2 s while much is wrong), 3 dB every 20 ms: a line may really be noise. Random octets never are.
///
/// One pass over the samples; no allocation after `init`.
public struct BurstGuard: ~Copyable {
  /// Mean squares of the last ten windows, and behind them their highest samples. Freed in deinit.
  private let levels: UnsafeMutablePointer<Float>
  private var mostPower = BurstGuard.harmlessPower
  private var mostPeak = BurstGuard.harmlessPeak
  private var window = 0
  private var factor: Float = 1
  /// Samples brought down in a row that may be a line's noise.
  private var run = 0
  /// Windows until the stream is trusted again.
  private var distrust = 0
  /// Rises in a row that were let in by a step only.
  private var steps = 0
  /// What was wrong lately, ten for each time, one less every window.
  private var strikes = 0
  /// The last 20 ms that were let in. Freed in deinit.
  private let past: UnsafeMutablePointer<Int16>
  private static let windows = 10
  /// −60 dBov: nobody is startled below.
  private static let harmlessPower: Float = 1074
  private static let harmlessPeak: Float = 100
  /// 3 dB.
  private static let growth: Float = 1.41
  /// 2 dB: noise is never quite even.
  private static let uneven: Float = 1.58
  private static let unevenPeak: Float = 1.26
  /// Square of the highest sample over the mean square: 17 dB. A voice has 8 to 15.
  private static let wildest: Float = 50
  /// What counts as a highest sample: no more than this times the root mean square.
  private static let crest: Float = 5
  /// Of `SuddenSound`'s evidence.
  private static let certain: Float = 1.2
  /// By `SoundSource`: above it one verdict takes the trust away, below it what was wrong just before must be more than this.
  private static let surely: InlineArray<6, Float> = [1.8, 1.8, 1.8, 1.8, 1.8, 0]
  private static let chances: InlineArray<6, Int> = [Limits.strike, 0, Limits.strike, Limits.strike, Limits.strike, 0]
  private static let unlikely: Float = -1
  /// Below, it needs no pitch.
  private static let harmlessForSure: Float = -3
  /// By `SoundSource`: from where on it is most likely wrong, and by how much less it is doubted.
  private static let likely: InlineArray<6, Float> = [0.1, -0.4, -0.3, 0.2, -0.2, 0]
  private static let doubtful: InlineArray<6, Float> = [0.4, 0.3, 0.3, 0.4, 0.3, 0]
  private static let harmless: Float = -10
  private static let voice: Float = 0.75
  /// A tone may begin anywhere at full strength.
  private static let tone: Float = 0.97
  /// More single wild samples in 20 ms are not all that is wrong.
  private static let clicks = 4
  /// What may be wrong gets louder by 2.5 dB at first.
  private static let step: Float = 1.78

  public init() {
    past = .allocate(capacity: Limits.samplesPerTick)
    past.initialize(repeating: 0, count: Limits.samplesPerTick)
    levels = .allocate(capacity: 2 * Self.windows)
    levels.initialize(repeating: 0, count: 2 * Self.windows)
  }
  deinit {
    past.deallocate()
    levels.deallocate()
  }

  /// The mean square of the loudest 20 ms lately: down by half in 2.8 s.
  public private(set) var loudness: Float = 0

  /// What the last 20 ms that were judged were judged by, while `isWatched`; taken by whoever fits the judgement.
  public var rise: JudgedRise?
  public var isWatched = false

  /// The mean square of the newest 20 ms that were received.
  private var latest: Float = 0
  /// The talker pauses, or nearly: those are 20 dB below the loudest lately.
  public var isQuiet: Bool { latest < loudness / 100 }

  /// Audio was brought down.
  public private(set) var limited: UInt64 = 0

  /// The mean square above which a payload had better be looked at twice: louder than all of the last 200 ms by 2 dB, or any while the
  /// stream is not trusted.
  public var alarm: Float { isDistrusting ? Self.harmlessPower : mostPower * Self.uneven }
  /// The stream sent what it cannot have meant, in the last five seconds.
  public var isDistrusting: Bool { distrust > 0 }

  /// A payload was no audio of the stream's codec.
  public mutating func alarmed() {
    distrust = Limits.distrustedWindows
    strike()
  }
  /// No encoder made a payload, most likely.
  public mutating func doubted() {
    distrust = max(distrust, Limits.doubtedWindows)
    strike()
  }

  private mutating func strike() { strikes = min(Limits.strikes, strikes &+ Limits.strike) }

  /// Takes the next decoded samples, in place.
  /// - Parameters:
  ///   - isSuspect: they may not be what was sent.
  ///   - isDoubtful: there is a reason to doubt it: what gets louder must go on to be heard in full.
  ///   - payload: what they were decoded from; empty where it is not known.
  // HOT
  public mutating func admit(
    _ samples: UnsafeMutableBufferPointer<Int16>, isSuspect: Bool, isDoubtful: Bool = false, from source: SoundSource,
    payload: Span<UInt8> = Span()
  ) {
    var start = 0
    while start < samples.count {
      let end = min(samples.count, start + Limits.samplesPerTick)
      // An octet of G.722 is a sample here.
      let part = source == .g722 && payload.count >= end ? payload.extracting(start..<end) : payload
      let verdict = Verdict(isSuspect: isSuspect, isDoubtful: isDoubtful)
      admit20(UnsafeMutableBufferPointer(rebasing: samples[start..<end]), verdict, source, part)
      start = end
    }
  }

  private mutating func admit20(
    _ samples: UnsafeMutableBufferPointer<Int16>, _ first: Verdict, _ source: SoundSource, _ payload: Span<UInt8>
  ) {
    var (power, highest, mean) = Self.level(samples)
    let isWild = source == .g711 && highest * highest > Self.wildest * power
    let isStrange = power > mostPower || highest > mostPeak * Self.unevenPeak || distrust > 0 || mean * mean > power / 4 || isWild
    if source != .madeUp { latest = power }
    var verdict = first
    if power > Self.harmlessPower || highest > Self.harmlessPeak, isStrange {
      if source == .g711, isWild || highest > mostPeak * Self.unevenPeak {
        let bound = min(mostPeak * Self.unevenPeak, max(Self.harmlessPeak, 3 * power.squareRoot()))
        let repaired = ClickRepair.repair(samples, before: past[159], above: Int32(bound))
        if repaired > 0 { (power, highest, mean) = Self.level(samples) }
        if repaired >= Self.clicks {
          verdict.isSuspect = true
          doubted()
        }
      }
      if !verdict.isSuspect { judge(samples, source, payload, (power, highest, mean), &verdict) }
    }
    let wanted = limit(samples.count, power, highest, verdict)
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
    (distrust, strikes) = (max(0, distrust &- 1), max(0, strikes &- 1))
    let isHeard = !verdict.isSuspect && !verdict.isUnproven
    remember(samples, isHeard ? power : 0, isHeard ? min(highest, Self.crest * power.squareRoot()) : 0)
  }

  private struct Verdict {
    var isSuspect: Bool
    /// Louder without a sign that it is a voice, on a stream that is not trusted.
    var isUnproven = false
    /// It may be a line's noise.
    var mayBeMeant = false
    /// A rise that may be a voice: it must be followed by another to be heard in full.
    var isDoubtful = false
  }

  private mutating func judge(
    _ samples: UnsafeMutableBufferPointer<Int16>, _ source: SoundSource, _ payload: Span<UInt8>, _ level: (Float, Float, Float),
    _ verdict: inout Verdict
  ) {
    let (power, highest, mean) = level
    let isSudden = power > mostPower * Self.uneven || highest > mostPeak * Self.unevenPeak
    let isWaveform = source == .g711 || source == .g722
    let likeness = isWaveform ? SuddenAudio.likeness(samples, power: power, mean: mean, highest: highest) : .speech
    verdict.isSuspect = likeness == .octets
    verdict.mayBeMeant = likeness != .octets
    guard source != .madeUp, isSudden || distrust > 0 else { return }
    guard samples.count >= 80 else { return verdict.isUnproven = distrust > 0 }
    // Out of silence all of a word's beginning would be held back, not what is too loud of it: only what is surely wrong is. So it is
    // with less than 20 ms, of which less can be told: they hold no two periods of a low voice.
    let isFirst = mostPower <= Self.harmlessPower && distrust == 0 && strikes == 0
    let isShort = samples.count < Limits.samplesPerTick
    let threshold = Self.likely[Int(source.rawValue)] + (isFirst || isShort ? Self.certain : 0)
    let doubtful = Self.doubtful[Int(source.rawValue)]
    var sound = SuddenSound(samples, past: past, loudest: mostPower, payload: payload, source)
    if distrust == 0, !isWatched {
      // Of nine good rises in ten this tells already that nothing is wrong with them.
      if sound.evidence(source) <= threshold - doubtful { return }
      sound.compare(samples, past: past, every: 4)
      if sound.pitch >= Self.tone || sound.evidence(source) <= threshold - doubtful { return }
    }
    sound.compare(samples, past: past, every: 1)
    let evidence = isSudden && sound.pitch < Self.tone ? sound.evidence(source) : Self.harmless
    if isWatched, isSudden { rise = JudgedRise(sound, source, power, highest, distrust > 0, evidence) }
    if evidence > threshold {
      (verdict.isSuspect, verdict.mayBeMeant) = (true, likeness != .octets)
      // Once may be chance.
      let (chances, surely) = (Self.chances[Int(source.rawValue)], Self.surely[Int(source.rawValue)])
      if strikes > chances || evidence > surely { doubted() } else { strike() }
    }
    let hasVoice = isShort || sound.pitch >= Self.voice || isSudden && evidence < Self.harmlessForSure
    verdict.isUnproven = distrust > 0 && (evidence > (isShort ? threshold : Self.unlikely) || !hasVoice)
    verdict.isDoubtful = verdict.isDoubtful || distrust > 0 || evidence > threshold - doubtful
  }

  /// The factor that brings suspect audio down to what was heard lately.
  private mutating func limit(_ count: Int, _ power: Float, _ highest: Float, _ verdict: Verdict) -> Float {
    var wanted: Float = 1
    if verdict.isSuspect || verdict.isUnproven {
      if power > mostPower || highest > mostPeak {
        wanted = min((mostPower / power).squareRoot(), mostPeak / highest)
        let patience = strikes > Limits.manyStrikes ? Limits.doubtedWindows : Self.windows
        if run > patience * Limits.samplesPerTick { wanted = min(1, max(wanted, factor * Self.growth)) }
        limited &+= 1
      }
      steps = 0
    } else if verdict.isDoubtful, power > mostPower * Self.step || highest * highest > mostPeak * mostPeak * Self.step {
      if steps < (strikes > Limits.manyStrikes ? 3 : 1) {
        wanted = (Self.step * min(mostPower / power, mostPeak * mostPeak / (highest * highest))).squareRoot()
        steps &+= 1
        limited &+= 1
      }
    } else {
      steps = 0
    }
    run = wanted < 1 && verdict.mayBeMeant ? run &+ count : 0
    return wanted
  }

  private mutating func remember(_ samples: UnsafeMutableBufferPointer<Int16>, _ power: Float, _ highest: Float) {
    loudness = max(loudness * 0.995, power)
    mostPower = Self.most(levels, window, power, Self.harmlessPower, mostPower)
    mostPeak = Self.most(levels + Self.windows, window, highest, Self.harmlessPeak, mostPeak)
    window = window + 1 == Self.windows ? 0 : window + 1
    let (length, count) = (Limits.samplesPerTick, samples.count)
    guard let base = samples.baseAddress else { return }
    if count < length { past.update(from: past + count, count: length - count) }
    (past + (length - count)).update(from: base, count: count)
  }

  /// Puts a value in the place of the oldest and returns the highest of all, `least` at least; looks at all only when the oldest was
  /// the highest.
  @inline(__always) private static func most(
    _ values: UnsafeMutablePointer<Float>, _ place: Int, _ value: Float, _ least: Float, _ most: Float
  ) -> Float {
    let oldest = values[place]
    values[place] = value
    if value >= most { return max(least, value) }
    guard oldest >= most else { return most }
    var highest = least
    for index in 0..<windows { highest = max(highest, values[index]) }
    return highest
  }

  /// Mean square and highest sample.
  @inline(__always) private static func level(_ samples: UnsafeMutableBufferPointer<Int16>) -> (Float, Float, Float) {
    guard let base = samples.baseAddress else { return (0, 0, 0) }
    let (energy, sum, peak) = SampleSums.level(base, samples.count)
    let count = Float(max(1, samples.count))
    return (Float(energy) / count, Float(peak), Float(sum) / count)
  }

  /// Forgets the past, for another source.
  public mutating func reset() {
    levels.update(repeating: 0, count: 2 * Self.windows)
    (mostPower, mostPeak) = (Self.harmlessPower, Self.harmlessPeak)
    (window, factor, run, distrust, steps, strikes, loudness, latest, limited) = (0, 1, 0, 0, 0, 0, 0, 0, 0)
    past.update(repeating: 0, count: Limits.samplesPerTick)
  }
}
