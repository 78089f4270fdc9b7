#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// What tells a voice that begins from a packet that no encoder made, 10…20 ms at 8 kHz that are louder than all of the last
/// 200 ms: a voice has a pitch, goes on from the audio before it and grows; wrong octets begin at the packet's first sample, at
/// full strength.
struct SuddenSound {
  /// In the order of `weights`: levels in dB, correlations, and shares of the root mean square.
  private(set) var values: InlineArray<14, Float> = .init(repeating: 0)

  /// - Parameters:
  ///   - samples: at least 80.
  ///   - past: the 160 samples before them.
  ///   - loudest: mean square of the loudest 20 ms of the last 200.
  init(_ samples: UnsafeMutableBufferPointer<Int16>, past: UnsafeMutablePointer<Int16>, loudest: Float) {
    let count = min(samples.count, Limits.samplesPerTick)
    // On the stack; a temporary allocation of more than 1 KiB would be of the heap. 2 × Limits.samplesPerTick.
    var room = InlineArray<320, Float>(repeating: 0)
    var span = room.mutableSpan
    span.withUnsafeMutableBufferPointer { scratch in
      guard let audio = scratch.baseAddress, scratch.count >= 2 * Limits.samplesPerTick else { return }
      for index in 0..<Limits.samplesPerTick { audio[index] = Float(past[index]) }
      let now = audio + Limits.samplesPerTick
      for index in 0..<count { now[index] = Float(samples[index]) }
      measure(now, count, loudest)
    }
  }

  /// Logistic regression over the values, two squares, a product and 1: G.722, SILK, CELT. Fitted with 26 voices of eSpeak NG and
  /// twelve kinds of damage by `bench-noise` (docs/decisions/0160).
  private static let weights: InlineArray<3, InlineArray<18, Float>> = [
    [
      0.07008, -0.03322, 0.03839, 0.03033, 1.531, -2.934, -2.581, 0.9059, 0.04021,
      0.1929, -0.2708, 4.661, 1.727, 0.02809, -0.1053, -5.644, 5.17, -13.81,
    ],
    [
      0.0425, -0.05947, -0.02578, 0.04777, -1.431, -6.221, -3.415, -0.5073, -0.004276,
      0.1959, 0.3169, 19.42, -1.276, -0.01497, -0.006902, -3.181, 7.161, -3.785,
    ],
    [
      0.02075, -0.001306, -0.02565, 0.03196, 6.964, -4.558, 0.1068, 0.4291, -0.1104,
      0.1647, 0.2455, 17.81, -0.8255, -0.04692, 0.008752, -5.94, -2.008, -6.878,
    ],
  ]

  /// How much likelier the packet is wrong than right, as a natural logarithm; nil where only `pitch` tells.
  func evidence(_ source: SoundSource) -> Float? {
    let place: Int
    switch source {
    case .g722: place = 0
    case .silk: place = 1
    case .celt: place = 2
    case .g711, .madeUp: return nil
    }
    let row = Self.weights[place]
    var sum = row[17] + row[14] * values[0] * values[0] / 50 + row[15] * values[4] * values[4] + row[16] * values[6] * values[4]
    for index in 0..<14 { sum += row[index] * values[index] }
    return sum
  }

  /// One period follows another that is like it: their correlation, 0…1. Noise, and most of what wrong octets decode to, has none.
  var pitch: Float { values[4] }

  private mutating func measure(_ now: UnsafeMutablePointer<Float>, _ count: Int, _ loudest: Float) {
    let energy = 1 + Self.product(now, now, count)
    let power = energy / Float(count)
    var (sum, fourth, peak): (Float, Float, Float) = (0, 0, 0)
    for index in 0..<count {
      let value = now[index]
      sum += value
      fourth += value * value * (value * value)
      peak = max(peak, abs(value))
    }
    let quarter = count / 4
    var (first, highest, lowest, last): (Float, Float, Float, Float) = (0, 0, .infinity, 0)
    for part in 0..<4 {
      let level = Self.decibels(Self.product(now + part * quarter, now + part * quarter, quarter) / Float(quarter))
      if part == 0 { first = level }
      (highest, lowest, last) = (max(highest, level), min(lowest, level), level)
    }
    let root = power.squareRoot()
    values[0] = Self.decibels(power) - Self.decibels(loudest)
    values[1] = first - Self.decibels(Self.product(now - 40, now - 40, 40) / 40)
    values[2] = highest - lowest
    values[3] = first - highest
    values[4] = Self.likeness(now, count, from: 100 * count / 160)
    values[5] = Self.likeness(now, 80, back: 120)
    values[6] = Self.product(now, now + 1, count - 1) / energy
    values[7] = Self.product(now, now + 2, count - 2) / energy
    values[8] = min(4, abs(now[0] - 2 * now[-1] + now[-2]) / (root + 1))
    values[9] = Self.decibels(power)
    values[10] = min(30, fourth / Float(count) / (power * power))
    values[11] = abs(sum / Float(count)) / root
    values[12] = peak / root
    values[13] = last - highest
  }

  /// Of a period 20…`longest` samples long within the samples: the highest correlation of one with the next, 0…1.
  private static func likeness(_ now: UnsafeMutablePointer<Float>, _ count: Int, from longest: Int) -> Float {
    var best: Float = 0
    for lag in PitchConcealer.shortestPeriod...max(PitchConcealer.shortestPeriod, longest) {
      let value = product(now, now + lag, count - lag)
      guard value > 0 else { continue }
      let (first, second) = (product(now, now, count - lag), product(now + lag, now + lag, count - lag))
      if value * value > best * first * second { best = value * value / (first * second) }
    }
    return best.squareRoot()
  }

  /// How well the first samples go on from those up to `back` samples before: the highest correlation, 0…1.
  private static func likeness(_ now: UnsafeMutablePointer<Float>, _ count: Int, back longest: Int) -> Float {
    var best: Float = 0
    let own = product(now, now, count)
    for lag in PitchConcealer.shortestPeriod...longest {
      let value = product(now, now - lag, count)
      guard value > 0 else { continue }
      let before = product(now - lag, now - lag, count)
      if value * value > best * before * own { best = value * value / (before * own) }
    }
    return best.squareRoot()
  }

  @inline(__always) private static func product(_ a: UnsafeMutablePointer<Float>, _ b: UnsafeMutablePointer<Float>, _ count: Int)
    -> Float
  {
    var sums = SIMD8<Float>.zero
    var index = 0
    let (left, right) = (UnsafeRawPointer(a), UnsafeRawPointer(b))
    while index + 8 <= count {
      let (x, y) = (
        left.loadUnaligned(fromByteOffset: 4 * index, as: SIMD8<Float>.self),
        right.loadUnaligned(fromByteOffset: 4 * index, as: SIMD8<Float>.self)
      )
      sums += x * y
      index += 8
    }
    var sum = sums.sum()
    while index < count {
      sum += a[index] * b[index]
      index += 1
    }
    return sum
  }

  private static func decibels(_ power: Float) -> Float { 10 * log10(max(1074, power)) }
}
