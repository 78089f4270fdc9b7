import TrunklineRTP

/// Extrapolates audio: repeats the last pitch period, after 20 ms the last two and three so that it does not buzz. The period is
/// known to a fraction of a sample; it continues to change as it did, and so does a falling strength. The less alike the last two
/// periods are, the softer the audio. From 10 ms on it fades, to noise at the level of earlier pauses.
///
/// With reversed audio it extrapolates backwards: `PitchConcealer` has one for each direction.
///
/// Own memory, 2.3 KB, twice that in wideband; a search over the last 40 ms per `begin`, a copy of 320 octets and 160
/// multiplications per `remember`.
struct PitchExtrapolator: ~Copyable {
  /// Samples in 1/8 ms: 1, or 2 in wideband. All lengths below are multiples of it.
  private let scale: Int
  /// 2.5 to 15 ms: 400 to 66 Hz.
  let shortestPeriod: Int
  let longestPeriod: Int
  private let historyLength: Int
  /// 10 ms; also the length compared in the search for a period.
  private let stage: Int
  /// The length of the audio before there is only noise: 120 ms.
  private let longest: Int
  /// Full strength for 10 ms, zero at 120.
  private let fadeLength: Float
  /// The period continues this fraction of its measured trend: the pitch of speech turns back.
  private static let trendShare: Float = 0.7
  /// By how much audio without a period is softened.
  private static let unvoicedShare: Float = 0.6

  /// The last audio, newest at the end.
  private let history: UnsafeMutablePointer<Int16>
  /// One to three of its periods, to repeat, and one sample more at both ends for interpolation: index −1…length + 1 is valid.
  private let cycle: UnsafeMutablePointer<Float>
  private var periods = 1
  private var position: Float = 0
  /// Cycle samples per output sample: the inverse of the period's current relative length, and its change per sample.
  private var speed: Float = 1
  private var speedChange: Float = 0
  private var strength: Float = 1
  private var decay: Float = 1
  private var highest: Float = 0
  /// The step between real and repeated audio, fading.
  private var step: Float = 0
  private var stepLeft = 0
  private var noise = NoiseGenerator()
  /// Correlation of neighbouring samples of the quietest tick, −1…1: noise of a room is darker than white, which is audible in
  /// wideband.
  private var darkness: Float = 0
  private var lastNoise: Float = 0
  /// Mean square of the quietest recent tick: rises by 0.5 dB a second, falls at once; negative before any.
  private var floor: Float = -1
  /// Root mean square of the noise that a long loss ends in: that of a pause, at most −50 dBov.
  private var background: Float = 0
  private static let loudestBackground: Float = 10_737
  /// Samples extrapolated since the last received one.
  private(set) var made = 0
  /// The length of the repeated audio, in samples.
  private(set) var period: Int
  /// The audio repeats itself over a longer time than a pitch period, as two tones do by their beat: the extrapolated audio
  /// equals the lost audio.
  private(set) var isRepetition = false

  init(band: AudioBand) {
    scale = band.sampleRateHz / 8_000
    (shortestPeriod, longestPeriod, stage) = (20 * scale, 120 * scale, 80 * scale)
    historyLength = 390 * scale
    longest = Limits.concealedMilliseconds * 8 * scale
    fadeLength = Float(longest - stage)
    period = longestPeriod
    history = .allocate(capacity: historyLength)
    history.initialize(repeating: 0, count: historyLength)
    let slab = UnsafeMutablePointer<Float>.allocate(capacity: 3 * longestPeriod + 4)
    slab.initialize(repeating: 0, count: 3 * longestPeriod + 4)
    cycle = slab + 1
  }

  deinit {
    history.deallocate()
    (cycle - 1).deallocate()
  }

  /// Clears the state, for another source.
  mutating func reset() {
    history.update(repeating: 0, count: historyLength)
    made = 0
    floor = -1
  }

  /// Stores audio that continues the audio stored before.
  // HOT
  mutating func remember(_ samples: Span<Int16>, _ count: Int) {
    keep(samples, count)
    let used = min(count, historyLength)
    let kept = historyLength - used
    let power = Float(SampleSums.energy(history + kept, used)) / Float(used)
    let raised = floor < 0 ? power : floor * 1.0023 + 0.05
    if scale > 1, power <= raised, used > 1 {
      darkness = Float(SampleSums.product(history + kept, history + kept + 1, count: used - 1)) / max(1, power * Float(used))
      darkness = max(0, min(0.98, darkness))
    }
    floor = min(power, raised)
    made = 0
  }

  /// Stores audio that a repetition has extrapolated, which equals the lost audio, so that the next loss finds the repetition,
  /// too.
  func keep(_ samples: Span<Int16>, _ count: Int) {
    let kept = max(0, historyLength - count)
    if kept > 0 { history.update(from: history + (historyLength - kept), count: kept) }
    let used = historyLength - kept
    samples.withUnsafeBufferPointer { source in
      guard let base = source.baseAddress, count <= source.count else { return }
      (history + kept).update(from: base + (count - used), count: used)
    }
  }

  /// Stores only the beginning of some audio, reversed.
  mutating func rememberReversed(_ samples: Span<Int16>) {
    reset()
    for index in 0..<min(samples.count, historyLength) { history[historyLength - 1 - index] = samples[index] }
  }

  // MARK: The repeated audio

  /// Analyses the stored audio: `next` continues it.
  mutating func begin() {
    let (lag, likeness) = findPeriod()
    isRepetition = false
    if likeness < Self.periodic, let beat = findRepetition() { return begin(repeating: beat) }
    period = Int(lag.rounded())
    periods = 1
    position = 0
    let end = historyLength
    // The change of period and strength from one cycle to the next.
    var trend: Float = 0
    if likeness > 0.7 { trend = max(-0.05, min(0.05, (lag - previousPeriod()) / lag)) * Self.trendShare }
    let relative = lag / Float(period) * (1 + 0.5 * trend)
    speed = 1 / relative
    speedChange = -speed * trend / Float(period)
    let ratio = (power(from: end - period, count: period) / power(from: end - 2 * period, count: period)).squareRoot()
    decay = 1 - (1 - max(0.5, min(1, ratio))) / Float(period)
    buildCycle()
    limit(likeness)
    step = Float(history[end - 1]) - cycle[period - 1]
    stepLeft = 16 * scale
  }

  private mutating func begin(repeating lag: Int) {
    period = lag
    periods = 1
    position = 0
    isRepetition = true
    speed = 1
    speedChange = 0
    decay = 1
    buildCycle()
    limit(1)
    step = Float(history[historyLength - 1]) - cycle[period - 1]
    stepLeft = 16 * scale
  }

  /// A lag beyond any pitch period after which the last 20 ms repeat unchanged and equally loud: the beat of ringback's two tones
  /// (440 and 480 Hz: 25 ms; 400 and 450: 20 ms). Repeating the last period alone of the beat's quiet part would make a hole.
  private func findRepetition() -> Int? {
    let (end, window) = (historyLength, 2 * stage)
    let own = power(from: end - window, count: window)
    var best: (lag: Int, likeness: Float)?
    for lag in longestPeriod + 1...historyLength - window {
      let there = power(from: end - window - lag, count: window)
      guard there > 0.8 * own, there < 1.25 * own else { continue }
      let product = SampleSums.product(history + (end - window), history + (end - window - lag), count: window)
      let value = product > 0 ? Float(product) / (own * there).squareRoot() : 0
      if value > best?.likeness ?? Self.repeated { best = (lag, value) }
    }
    return best?.lag
  }

  /// Correlations above which the last period is enough, and above which audio repeats itself.
  private static let periodic: Float = 0.995
  private static let repeated: Float = 0.985

  /// The sum of squares of part of the history, at least 1.
  private func power(from start: Int, count: Int) -> Float {
    Float(1 &+ SampleSums.energy(history + start, count))
  }

  /// Correlation of the 10 ms before `end` with those `lag` earlier, normalised by the strength of the latter.
  private func likeness(endingAt end: Int, lag: Int) -> Float {
    Self.likeness(of: history + (end - stage), lag: lag, count: stage)
  }

  private static func likeness(of samples: UnsafePointer<Int16>, lag: Int, count: Int) -> Float {
    let product = SampleSums.product(samples, samples - lag, count: count)
    return product > 0 ? Float(product) / Float(1 &+ SampleSums.energy(samples - lag, count)).squareRoot() : 0
  }

  /// The lag of the highest normalised correlation, searched over every second lag and sample first, then around the best, then
  /// between the samples by a parabola; and that correlation, 0…1.
  private func findPeriod() -> (lag: Float, likeness: Float) {
    let end = historyLength
    var best = (lag: longestPeriod, score: Float(-1))
    // (longestPeriod + stage) / 2 of 1/8 ms
    withUnsafeTemporaryAllocation(of: Int16.self, capacity: 100) { halved in
      guard let base = halved.baseAddress else { return }
      let step = 2 * scale
      let first = history + (end - step * halved.count)
      if scale == 1 {
        for index in 0..<halved.count { base[index] = first[2 * index] }
      } else {
        for index in 0..<halved.count { base[index] = Int16((Int(first[4 * index]) + Int(first[4 * index + 1])) / 2) }
      }
      for lag in stride(from: shortestPeriod, through: longestPeriod, by: step) {
        let value = Self.likeness(of: base + longestPeriod / step, lag: lag / step, count: stage / step)
        if value > best.score { best = (lag, value) }
      }
    }
    let width = 2 * scale - 1
    let around = max(shortestPeriod, best.lag - width)...min(longestPeriod, best.lag + width)
    best.score = -1
    for lag in around {
      let value = likeness(endingAt: end, lag: lag)
      if value > best.score { best = (lag, value) }
    }
    var lag = Float(best.lag)
    if best.lag > shortestPeriod, best.lag < longestPeriod {
      let (left, right) = (likeness(endingAt: end, lag: best.lag - 1), likeness(endingAt: end, lag: best.lag + 1))
      let bend = left - 2 * best.score + right
      if bend < 0 { lag += max(-0.5, min(0.5, 0.5 * (left - right) / bend)) }
    }
    return (lag, best.score / power(from: end - stage, count: stage).squareRoot())
  }

  /// The period one period earlier.
  private func previousPeriod() -> Float {
    let end = historyLength - period
    var best = (lag: period, score: Float(-1))
    for lag in max(shortestPeriod, period - 4 * scale)...min(longestPeriod + 5 * scale, period + 4 * scale) {
      let value = likeness(endingAt: end, lag: lag)
      if value > best.score { best = (lag, value) }
    }
    return Float(best.lag)
  }

  /// Copies the last `periods` periods, whose end is blended with the audio before their beginning, so that the repetition is
  /// smooth.
  private func buildCycle() {
    let length = periods * period
    let start = historyLength - length
    let quarter = period / 4
    for index in 0..<length { cycle[index] = Float(history[start + index]) }
    for index in 0..<quarter {
      let share = Float(index + 1) / Float(quarter + 1)
      let at = length - quarter + index
      cycle[at] = cycle[at] * (1 - share) + Float(history[start - quarter + index]) * share
    }
    cycle[-1] = cycle[length - 1]
    (cycle[length], cycle[length + 1]) = (cycle[0], cycle[1])
  }

  /// Limits the strength: repeating the last period of a beginning vowel would make 20 ms of it where there were three.
  private mutating func limit(_ likeness: Float) {
    let window = 2 * stage
    let loudest =
      max(power(from: historyLength - window, count: window), power(from: historyLength - 2 * window, count: window))
      / Float(window)
    let own = power(from: historyLength - period, count: period) / Float(period)
    strength = min(1, (1.58 * loudest / own).squareRoot()) * (1 - Self.unvoicedShare * (1 - min(1, likeness)))
    background = max(0, min(floor, Self.loudestBackground)).squareRoot()
    highest = 0
    for index in historyLength - 2 * window..<historyLength { highest = max(highest, abs(Float(history[index]))) }
  }

  // MARK: Sample by sample

  mutating func next() -> Float {
    if made >= longest { return nextNoise() * background }
    if made > 0, made.isMultiple(of: 2 * stage), periods < 3, !isRepetition { lengthenCycle() }
    let length = Float(periods * period)
    let index = Int(position)
    let rest = position - Float(index)
    let (a, b, c, d) = (cycle[index - 1], cycle[index], cycle[index + 1], cycle[index + 2])
    var value = b + 0.5 * rest * (c - a + rest * (2 * a - 5 * b + 4 * c - d + rest * (3 * (b - c) + d - a)))
    position += speed
    if position >= length { position -= length }
    if made < 2 * stage { speed += speedChange }
    if stepLeft > 0 {
      value += step * Float(stepLeft) / Float(16 * scale + 1)
      stepLeft -= 1
    }
    strength *= decay
    var fade = min(1, Float(longest - made) / fadeLength)
    fade *= fade
    made += 1
    return max(-highest, min(highest, value * fade * strength)) + (fade < 1 ? nextNoise() * background * (1 - fade) : 0)
  }

  /// Noise with a mean square of 1.
  private mutating func nextNoise() -> Float {
    guard darkness > 0 else { return noise.next() }
    lastNoise = darkness * lastNoise + (1 - darkness * darkness).squareRoot() * noise.next()
    return lastNoise
  }

  private mutating func lengthenCycle() {
    periods += 1
    buildCycle()
  }
}
