#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// What tells a voice that begins from a packet that no encoder made, 10…20 ms at 8 kHz that are louder than all of the last
/// 200 ms: a voice has a pitch, goes on from the audio before it and grows; wrong octets begin at the packet's first sample, at
/// full strength.
struct SuddenSound {
  /// Levels in dB, correlations, and shares of the root mean square.
  private(set) var values: InlineArray<34, Float> = .init(repeating: 0)

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

  /// How much it looks like what no encoder made: above 0 does 1 rise of 300 in good speech (SILK: of 1500), above −1 does 1 of 30
  /// (SILK: of 70). A network of ten nodes over the values, one for each source (`SuddenSoundWeights`).
  func evidence(_ source: SoundSource) -> Float {
    guard source != .madeUp else { return -10 }
    let (inputs, nodes) = (SuddenSoundWeights.inputs, SuddenSoundWeights.nodes)
    let first = Int(source.rawValue) * SuddenSoundWeights.count
    let (biases, outward) = (first + inputs * nodes, first + inputs * nodes + nodes)
    var sum = SuddenSoundWeights.all[outward + nodes]
    for node in 0..<nodes {
      var value = SuddenSoundWeights.all[biases + node]
      for index in 0..<inputs { value += SuddenSoundWeights.all[first + node * inputs + index] * values[index] }
      sum += max(0, value) * SuddenSoundWeights.all[outward + node]
    }
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
    measureParts(now, quarter, Self.decibels(loudest))
  }

  /// Of the four quarters: level, share of the high frequencies, highest sample; of those before, the first two.
  private mutating func measureParts(_ now: UnsafeMutablePointer<Float>, _ quarter: Int, _ loudest: Float) {
    for part in 0..<4 {
      let start = now + part * quarter
      var peak: Float = 0
      for index in 0..<quarter { peak = max(peak, abs(start[index])) }
      let power = 10 * log10((1 + Self.product(start, start, quarter)) / Float(quarter))
      values[14 + part] = power - loudest
      values[18 + part] = Self.tilt(start, quarter, isFirst: part == 0) - power
      values[22 + part] = 20 * log10(peak + 1) - power
      let past = now - Limits.samplesPerTick + 40 * part
      let before = 10 * log10((1 + Self.product(past, past, 40)) / 40)
      values[26 + part] = before - loudest
      values[30 + part] = Self.tilt(past, 40, isFirst: part == 0) - before
    }
  }

  /// The level of the differences of neighbours, in dB.
  private static func tilt(_ samples: UnsafeMutablePointer<Float>, _ count: Int, isFirst: Bool) -> Float {
    var energy: Float = 1
    for index in (isFirst ? 1 : 0)..<count {
      let step = samples[index] - samples[index - 1]
      energy += step * step
    }
    return 10 * log10(energy / Float(count))
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
