import TrunklineRTP

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// Detects DTMF digits (ITU-T Q.23) in audio below 4 kHz, for trunks that send tones instead of telephone-events. Conforms to
/// ITU-T Q.24: frequencies within 1.5 % + 2 Hz are accepted and beyond 3.5 % refused, the high tone may be 6 dB stronger or 10 dB
/// weaker than the low one, 40 ms of tone are enough and 23 are not, a break of 10 ms is bridged and one of 40 separates two
/// digits.
///
/// Every 5 ms the last 20 ms are checked in three stages. First the strongest row and column tone are found; if they have less
/// than 45 % of the energy, the check ends. Then their true frequencies are measured from the phase rotation between two halves.
/// Then, if those could be a digit, two sines are fitted by least squares: when they leave more than 15 % of the energy
/// unexplained it is speech or music, not a digit (talk-off). Four such checks in a row make a digit.
///
/// Some 0.7 µs per tick of speech, 2.6 of a digit (`bench-codec`); no allocation after `init`; one stream.
public struct ToneDetector: ~Copyable {
  /// 5 ms.
  private static let hop = 40
  private static let hops = 4
  private static let window = hop * hops
  private static let hitsForDigit = 4
  /// 35 ms without the tone end a digit.
  private static let missesForEnd = 7
  private static let fullScale: Float = 1_073_741_824
  /// −42 dBov over the window.
  private static let leastEnergy = fullScale * 6.3e-5 * Float(window)
  private static let frequencyTolerance: Float = 0.025
  /// Power ratios high/low: +6 dB and −10 dB.
  private static let twist: ClosedRange<Float> = 0.1...3.98
  private static let explained: Float = 0.85
  /// The least share of the sums at the nominal frequencies for a tone that is 1.5 % + 2 Hz away: 0.79 over half a window, less
  /// the interference of row and column tone.
  private static let plausible: Float = 0.45
  private static let frequencies = SIMD8<Float>(697, 770, 852, 941, 1_209, 1_336, 1_477, 1_633)
  private static let keys: [UInt8] = Array("123A456B789C*0#D".utf8)

  // The last `window` samples, hop by hop in a ring whose oldest is `oldest`; freed in deinit.
  private let samples: UnsafeMutablePointer<Float>
  private var oldest = 0
  private let waves = Self.waves
  private let converter = BandConverter()
  /// Rotation of each frequency per hop.
  private let hopCos: SIMD8<Float>
  private let hopSin: SIMD8<Float>
  /// Correlations of the last four hops, the oldest first, each from its own first sample.
  private var real: (SIMD8<Float>, SIMD8<Float>, SIMD8<Float>, SIMD8<Float>)
  private var imaginary: (SIMD8<Float>, SIMD8<Float>, SIMD8<Float>, SIMD8<Float>)
  private var energies = SIMD4<Float>.zero

  private var candidate: UInt8 = 0
  private var run = 0
  private var current: UInt8 = 0
  private var heardHops = 0
  private var misses = 0

  public init() {
    samples = .allocate(capacity: Self.window)
    samples.initialize(repeating: 0, count: Self.window)
    (hopCos, hopSin) = Self.rotation(after: Self.hop)
    real = (.zero, .zero, .zero, .zero)
    imaginary = (.zero, .zero, .zero, .zero)
  }

  deinit { samples.deallocate() }

  /// Analyses the next samples, a multiple of 40 (a tick: 160; the rest is ignored). Returns a digit that has ended.
  // HOT
  public mutating func hear(_ input: Span<Int16>, _ band: AudioBand) -> ReceivedDigit? {
    guard band == .wideband else { return hear(input) }
    return input.withUnsafeBufferPointer { input in
      withUnsafeTemporaryAllocation(of: Int16.self, capacity: AudioBand.narrowband.samplesPerTick) { narrow in
        guard let from = input.baseAddress, let to = narrow.baseAddress else { return nil }
        let count = min(input.count, 2 &* narrow.count)
        converter.convert(from, count, from: .wideband, to: .narrowband, into: to)
        return hear(Span(_unsafeStart: to, count: count / 2))
      }
    }
  }

  /// The same at 8 kHz.
  // HOT
  public mutating func hear(_ input: Span<Int16>) -> ReceivedDigit? {
    var ended: ReceivedDigit?
    var start = 0
    while start &+ Self.hop <= input.count {
      process(input, from: start)
      if let digit = track(look()) { ended = digit }
      start &+= Self.hop
    }
    return ended
  }

  /// Nothing was received for 20 ms.
  public mutating func absent() -> ReceivedDigit? {
    guard current != 0 || run > 0 else { return nil }
    return withUnsafeTemporaryAllocation(of: Int16.self, capacity: AudioBand.narrowband.samplesPerTick) { silence in
      silence.initialize(repeating: 0)
      return hear(silence.span)
    }
  }

  /// Clears the state, for another source.
  public mutating func reset() {
    (candidate, run, current, heardHops, misses) = (0, 0, 0, 0, 0)
    energies = .zero
    real = (.zero, .zero, .zero, .zero)
    imaginary = (.zero, .zero, .zero, .zero)
  }

  // MARK: Measuring

  /// Cosine and negative sine of the eight frequencies, sample by sample for a hop; made once for all detectors.
  private static let waves: [(cos: SIMD8<Float>, sin: SIMD8<Float>)] = (0..<hop).map { rotation(after: $0) }

  private static func rotation(after samples: Int) -> (cos: SIMD8<Float>, sin: SIMD8<Float>) {
    var (c, s) = (SIMD8<Float>.zero, SIMD8<Float>.zero)
    for index in 0..<8 {
      let rotation = 2 * Double.pi * Double(frequencies[index]) / 8_000 * Double(samples)
      (c[index], s[index]) = (Float(cos(rotation)), Float(-sin(rotation)))
    }
    return (c, s)
  }

  private mutating func process(_ input: Span<Int16>, from start: Int) {
    let last = samples + oldest
    oldest = oldest &+ Self.hop == Self.window ? 0 : oldest &+ Self.hop
    var (re, im, energy) = (SIMD8<Float>.zero, SIMD8<Float>.zero, Float(0))
    for index in 0..<Self.hop {
      let sample = Float(input[start &+ index])
      last[index] = sample
      energy += sample * sample
    }
    // Below the least energy the sums are set to zero.
    if energy * Float(Self.hops) > Self.leastEnergy / 8 {
      waves.withUnsafeBufferPointer { waves in
        for index in 0..<Self.hop {
          let sample = SIMD8<Float>(repeating: last[index])
          re += sample * waves[index].cos
          im += sample * waves[index].sin
        }
      }
    }
    real = (real.1, real.2, real.3, re)
    imaginary = (imaginary.1, imaginary.2, imaginary.3, im)
    energies = SIMD4(energies.y, energies.z, energies.w, energy)
  }

  /// The digit that fills the window, 0 for none.
  private func look() -> UInt8 {
    let energy = energies.sum()
    guard energy >= Self.leastEnergy else { return 0 }
    // Two halves, each from its first sample.
    let (firstRe, firstIm) = join(re: real.0, im: imaginary.0, nextRe: real.1, nextIm: imaginary.1)
    let (secondRe, secondIm) = join(re: real.2, im: imaginary.2, nextRe: real.3, nextIm: imaginary.3)
    let power = firstRe * firstRe + firstIm * firstIm + secondRe * secondRe + secondIm * secondIm
    let row = strongest(power.lowHalf)
    let column = strongest(power.highHalf)
    // A sine of amplitude a has energy a²h/2 in a half of h samples, and its sum has the power (ah/2)².
    guard (power[row] + power[4 + column]) * (2 / Float(Self.window / 2)) >= Self.plausible * energy else { return 0 }
    guard let low = frequency(row, firstRe: firstRe, firstIm: firstIm, secondRe: secondRe, secondIm: secondIm),
      let high = frequency(4 + column, firstRe: firstRe, firstIm: firstIm, secondRe: secondRe, secondIm: secondIm)
    else { return 0 }
    guard let fit = TwoSines(samples, from: oldest, count: Self.window, low: low, high: high) else { return 0 }
    guard fit.explained >= Self.explained * energy, fit.lowPower > 0, Self.twist.contains(fit.highPower / fit.lowPower) else {
      return 0
    }
    return Self.keys[row * 4 + column]
  }

  /// The correlation of two hops, the second rotated back to the first's beginning.
  private func join(re: SIMD8<Float>, im: SIMD8<Float>, nextRe: SIMD8<Float>, nextIm: SIMD8<Float>)
    -> (SIMD8<Float>, SIMD8<Float>)
  {
    (re + nextRe * hopCos - nextIm * hopSin, im + nextRe * hopSin + nextIm * hopCos)
  }

  private func strongest(_ power: SIMD4<Float>) -> Int {
    var best = 0
    for index in 1..<4 where power[index] > power[best] { best = index }
    return best
  }

  /// The true frequency near the nominal one, from the rotation between the halves; nil if it is too far off.
  private func frequency(
    _ index: Int, firstRe: SIMD8<Float>, firstIm: SIMD8<Float>, secondRe: SIMD8<Float>, secondIm: SIMD8<Float>
  ) -> Float? {
    // The second half, rotated back by two hops at the nominal frequency.
    let (c, s) = (hopCos[index] * hopCos[index] - hopSin[index] * hopSin[index], 2 * hopCos[index] * hopSin[index])
    let re = secondRe[index] * c - secondIm[index] * s
    let im = secondRe[index] * s + secondIm[index] * c
    let rotation = atan2f(im * firstRe[index] - re * firstIm[index], re * firstRe[index] + im * firstIm[index])
    let offset = rotation * 8_000 / (2 * .pi * Float(2 * Self.hop))
    let nominal = Self.frequencies[index]
    return abs(offset) <= nominal * Self.frequencyTolerance ? nominal + offset : nil
  }

  // MARK: Deciding

  private mutating func track(_ hit: UInt8) -> ReceivedDigit? {
    run = hit == candidate && hit != 0 ? run &+ 1 : (hit == 0 ? 0 : 1)
    candidate = hit
    var ended: ReceivedDigit?
    if current != 0 {
      if hit == current {
        heardHops &+= 1 &+ misses
        misses = 0
      } else {
        misses &+= 1
        if misses >= Self.missesForEnd || run >= Self.hitsForDigit { ended = end() }
      }
    }
    if current == 0, run >= Self.hitsForDigit { (current, heardHops, misses) = (candidate, run, 0) }
    return ended
  }

  private mutating func end() -> ReceivedDigit {
    defer { (current, heardHops, misses) = (0, 0, 0) }
    // A window counts when four fifths of it are tone: the digit is 12 ms longer than its counted hops.
    return ReceivedDigit(digit: current, durationMilliseconds: heardHops &* 5 &+ 12)
  }
}

/// Two sines of known frequencies fitted to samples by least squares.
struct TwoSines {
  /// Energy of the fit, and mean powers of each sine.
  let explained: Float
  let lowPower: Float
  let highPower: Float

  /// Nil if the two cannot be told apart.
  /// - Parameter from: the index of the oldest of the `count` samples in their ring.
  init?(_ samples: UnsafePointer<Float>, from: Int, count: Int, low: Float, high: Float) {
    let (lowRotation, highRotation) = (2 * Float.pi * low / 8_000, 2 * Float.pi * high / 8_000)
    let step = SIMD4<Float>(cosf(lowRotation), sinf(lowRotation), cosf(highRotation), sinf(highRotation))
    // cos and sin of both at the current sample, their products with each other and with the samples.
    var basis = SIMD4<Float>(1, 0, 1, 0)
    var (g0, g1, g2, g3) = (SIMD4<Float>.zero, SIMD4<Float>.zero, SIMD4<Float>.zero, SIMD4<Float>.zero)
    var target = SIMD4<Float>.zero
    var index = from
    for _ in 0..<count {
      target += basis * samples[index]
      index = index &+ 1 == count ? 0 : index &+ 1
      g0 += basis * basis.x
      g1 += basis * basis.y
      g2 += basis * basis.z
      g3 += basis * basis.w
      basis = SIMD4(
        basis.x * step.x - basis.y * step.y, basis.y * step.x + basis.x * step.y, basis.z * step.z - basis.w * step.w,
        basis.w * step.z + basis.z * step.w)
    }
    guard let solution = Self.solve((g0, g1, g2, g3), target) else { return nil }
    explained = (solution * target).sum()
    lowPower = (solution.x * solution.x + solution.y * solution.y) / 2
    highPower = (solution.z * solution.z + solution.w * solution.w) / 2
  }

  /// Gauss elimination of a positive definite system; nil if it is not positive definite.
  private static func solve(_ rows: (SIMD4<Float>, SIMD4<Float>, SIMD4<Float>, SIMD4<Float>), _ target: SIMD4<Float>)
    -> SIMD4<Float>?
  {
    var (a, b, c, d, t) = (rows.0, rows.1, rows.2, rows.3, target)
    guard a.x > 1 else { return nil }
    var f = b.x / a.x
    (b, t.y) = (b - a * f, t.y - t.x * f)
    f = c.x / a.x
    (c, t.z) = (c - a * f, t.z - t.x * f)
    f = d.x / a.x
    (d, t.w) = (d - a * f, t.w - t.x * f)
    guard b.y > 1 else { return nil }
    f = c.y / b.y
    (c, t.z) = (c - b * f, t.z - t.y * f)
    f = d.y / b.y
    (d, t.w) = (d - b * f, t.w - t.y * f)
    guard c.z > 1 else { return nil }
    f = d.z / c.z
    (d, t.w) = (d - c * f, t.w - t.z * f)
    guard d.w > 1 else { return nil }
    let w = t.w / d.w
    let z = (t.z - c.w * w) / c.z
    let y = (t.y - b.z * z - b.w * w) / b.y
    a.x = a.x == 0 ? 1 : a.x
    return SIMD4((t.x - a.y * y - a.z * z - a.w * w) / a.x, y, z, w)
  }
}
