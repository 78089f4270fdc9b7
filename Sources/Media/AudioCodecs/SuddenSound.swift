/// What tells a voice that begins from a packet that no encoder made, 10…20 ms at 8 kHz that are louder than all of the last
/// 200 ms: a voice has a pitch, goes on from the audio before it and grows; wrong octets begin at the packet's first sample, at
/// full strength.
struct SuddenSound {
  /// Levels in dB, correlations, and shares of the root mean square, and the payload's signs: `SuddenSoundWeights.inputs` of them, and
  /// zeros up to a multiple of four.
  private(set) var values: InlineArray<44, Float> = .init(repeating: 0)
  /// By how much the two correlations may be higher than what `compare` found so far.
  private var open = SIMD2<Float>(1, 1)

  /// Measures all but what `compare` does.
  /// - Parameters:
  ///   - samples: at least 80.
  ///   - past: the 160 samples before them.
  ///   - loudest: mean square of the loudest 20 ms of the last 200.
  ///   - payload: what they were decoded from.
  init(
    _ samples: UnsafeMutableBufferPointer<Int16>, past: UnsafeMutablePointer<Int16>, loudest: Float, payload: Span<UInt8>,
    _ source: SoundSource
  ) {
    let signs = PayloadSigns(payload, source)
    for index in 0..<8 { values[34 + index] = signs.values[index] }
    let (length, count) = (Limits.samplesPerTick, min(samples.count, Limits.samplesPerTick))
    guard let base = samples.baseAddress, count >= 80 else { return }
    // On the stack; a temporary allocation of more than 1 KiB would be of the heap. 2 × Limits.samplesPerTick, and 4.
    var floats = InlineArray<324, Float>(repeating: 0)
    var floatSpan = floats.mutableSpan
    let root = floatSpan.withUnsafeMutableBufferPointer { room -> Float in
      guard let start = room.baseAddress, room.count >= 2 * length + 4 else { return 0 }
      let (before, now) = (start + 2, start + (length + 4))
      Self.convert(past, before, length)
      Self.convert(base, now, count)
      // Before the first sample of each, once more that: a difference of 0.
      (before[-1], now[-1]) = (before[0], now[0])
      return measure(now, count, before, loudest)
    }
    let kink = Int32(base[0]) - 2 * Int32(past[length - 1]) + Int32(past[length - 2])
    values[8] = min(4, Float(abs(kink)) / (root + 1))
  }

  /// Looks for a period, and for one that goes on from the audio before: the fourth and the fifth value. Of every fourth period only
  /// they are what they are at least, and nearly what they are.
  mutating func compare(_ samples: UnsafeMutableBufferPointer<Int16>, past: UnsafeMutablePointer<Int16>, every step: Int) {
    let (length, count) = (Limits.samplesPerTick, min(samples.count, Limits.samplesPerTick))
    guard let base = samples.baseAddress, count >= 80 else { return }
    // 2 × Limits.samplesPerTick, and PeriodLikeness.padding.
    var room = InlineArray<344, Int16>(repeating: 0)
    var span = room.mutableSpan
    span.withUnsafeMutableBufferPointer { room in
      guard let start = room.baseAddress, room.count >= 2 * length + PeriodLikeness.padding else { return }
      let now = start + length
      for index in 0..<length { start[index] = max(PeriodLikeness.lowest, past[index]) }
      for index in 0..<count { now[index] = max(PeriodLikeness.lowest, base[index]) }
      let likeness = PeriodLikeness(now, count)
      values[4] = likeness.within(upTo: 100 * count / length, every: step)
      values[5] = likeness.back(80, upTo: 120, every: step)
    }
    open = step > 1 ? SIMD2(1 - values[4], 1 - values[5]) : .zero
  }

  /// How much it looks like what no encoder made: above 0 does at most 1 rise of 1000 in people's speech that it was fitted to, above −1
  /// 1 of 70 (docs/decisions/0232). A network of ten nodes over the values, one for each source (`SuddenSoundWeights`). Until all periods
  /// were compared, the most it can be.
  func evidence(_ source: SoundSource) -> Float {
    guard source != .madeUp else { return -10 }
    let (inputs, nodes) = (SuddenSoundWeights.inputs, SuddenSoundWeights.nodes)
    let first = Int(source.rawValue) * SuddenSoundWeights.count
    guard first + SuddenSoundWeights.count <= SuddenSoundWeights.all.count else { return -10 }
    let (biases, outward) = (first + inputs * nodes, first + (inputs + 1) * nodes)
    return values.span.withUnsafeBufferPointer { values in
      guard let values = values.baseAddress else { return -10 }
      var sum = SuddenSoundWeights.all[outward + nodes]
      for node in 0..<nodes {
        // The last vector reaches into the next node's weights; the values there are 0.
        let row = first + node * inputs
        var products = SIMD4<Float>.zero
        var index = 0
        while index < inputs {
          products += Self.weights(row + index) * Self.vector(values + index)
          index &+= 4
        }
        let weight = SuddenSoundWeights.all[outward + node]
        let pitch = SuddenSoundWeights.all[row + 4] * open[0]
        let before = SuddenSoundWeights.all[row + 5] * open[1]
        let most = weight > 0 ? max(0, pitch) + max(0, before) : min(0, pitch) + min(0, before)
        sum += max(0, SuddenSoundWeights.all[biases + node] + products.sum() + most) * weight
      }
      return sum
    }
  }

  /// Four weights, read as one. Invariant: all of them lie in the block of a source, whose range `evidence` checks; a span of all would
  /// be one of a copy.
  @inline(__always) private static func weights(_ place: Int) -> SIMD4<Float> {
    SIMD4(
      SuddenSoundWeights.all[unchecked: place], SuddenSoundWeights.all[unchecked: place &+ 1],
      SuddenSoundWeights.all[unchecked: place &+ 2], SuddenSoundWeights.all[unchecked: place &+ 3])
  }

  /// One period follows another that is like it: their correlation, 0…1, of all periods compared. Noise, and most of what wrong octets decode to, has none.
  var pitch: Float { values[4] }

  /// All but what goes on from before; returns the root mean square.
  private mutating func measure(
    _ now: UnsafeMutablePointer<Float>, _ count: Int, _ before: UnsafeMutablePointer<Float>, _ loudest: Float
  ) -> Float {
    let quarter = count / 4
    let own = Parts(now, quarter)
    let past = Parts(before, 40)
    var (energy, fourth, sum) = (1 + own.energies.sum(), own.fourth, own.sum)
    var peak = own.peaks.max()
    for index in 4 * quarter..<count {
      let square = now[index] * now[index]
      (energy, fourth, sum, peak) = (energy + square, fourth + square * square, sum + now[index], max(peak, square))
    }
    let power = energy / Float(count)
    // All levels at once: of the four quarters level, share of the high frequencies, highest sample; of those before, the first two.
    let share = 1 / Float(quarter)
    let levels = Self.decibels((own.energies + 1) * share)
    let tilts = Self.decibels((own.steps + 1) * share)
    let peaks = own.peaks.squareRoot() + 1
    let befores = Self.decibels((past.energies + 1) * 0.025)
    let others = Self.decibels(SIMD4(power, loudest, 1074, 1))
    let (floor, level, most) = (others[2], max(others[2], others[0]), max(others[2], others[1]))
    store(levels - most, 14)
    store(tilts - levels, 18)
    store(Self.decibels(peaks * peaks) - levels, 22)
    store(befores - most, 26)
    store(Self.decibels((past.steps + 1) * 0.025) - befores, 30)
    let quarters = levels.replacing(with: floor, where: levels .< floor)
    let highest = quarters.max()
    values[0] = level - most
    values[1] = quarters[0] - max(floor, befores[3])
    values[2] = highest - quarters.min()
    values[3] = quarters[0] - highest
    values[6] = Self.product(now, now + 1, count - 1) / energy
    values[7] = Self.product(now, now + 2, count - 2) / energy
    values[9] = level
    values[10] = min(30, fourth / Float(count) / (power * power))
    let root = power.squareRoot()
    values[11] = abs(sum / Float(count)) / root
    values[12] = (peak / power).squareRoot()
    values[13] = quarters[3] - highest
    return root
  }

  /// Sums over four stretches of audio. Before the first sample there must be one more.
  private struct Parts {
    let energies: SIMD4<Float>
    /// Squares of the highest samples.
    let peaks: SIMD4<Float>
    /// The energies of the differences of neighbours.
    let steps: SIMD4<Float>
    /// Of all four.
    let fourth: Float
    let sum: Float

    init(_ samples: UnsafePointer<Float>, _ count: Int) {
      let (a, b) = (Part(samples, count), Part(samples + count, count))
      let (c, d) = (Part(samples + 2 * count, count), Part(samples + 3 * count, count))
      energies = SIMD4(a.energy, b.energy, c.energy, d.energy)
      peaks = SIMD4(a.peak, b.peak, c.peak, d.peak)
      steps = SIMD4(a.steps, b.steps, c.steps, d.steps)
      fourth = a.fourth + b.fourth + (c.fourth + d.fourth)
      sum = a.sum + b.sum + (c.sum + d.sum)
    }
  }

  private struct Part {
    var energy: Float
    var peak: Float
    var steps: Float
    var fourth: Float
    var sum: Float

    @inline(never) init(_ samples: UnsafePointer<Float>, _ count: Int) {
      var (energies, fourths, sums) = (SIMD4<Float>.zero, SIMD4<Float>.zero, SIMD4<Float>.zero)
      var (peaks, differences) = (SIMD4<Float>.zero, SIMD4<Float>.zero)
      var index = 0
      while index &+ 4 <= count {
        let x = vector(samples + index)
        let (square, step) = (x * x, x - vector(samples + index - 1))
        energies += square
        fourths += square * square
        sums += x
        peaks.replace(with: square, where: square .> peaks)
        differences += step * step
        index &+= 4
      }
      (energy, peak, steps) = (energies.sum(), peaks.max(), differences.sum())
      (fourth, sum) = (fourths.sum(), sums.sum())
      while index < count {
        let (x, step) = (samples[index], samples[index] - samples[index - 1])
        energy += x * x
        peak = max(peak, x * x)
        steps += step * step
        fourth += x * x * (x * x)
        sum += x
        index &+= 1
      }
    }
  }

  @inline(__always) private mutating func store(_ vector: SIMD4<Float>, _ place: Int) {
    for lane in 0..<4 { values[place + lane] = vector[lane] }
  }

  /// Of powers above 0, to 0.001 dB: the exponent, and a polynomial for the logarithm of the rest.
  private static func decibels(_ powers: SIMD4<Float>) -> SIMD4<Float> {
    let bits = unsafeBitCast(powers, to: SIMD4<Int32>.self)
    let exponent = SIMD4<Float>((bits &>> 23) &- 127)
    let rest = unsafeBitCast((bits & 0x7f_ffff) | 0x3f80_0000, to: SIMD4<Float>.self) - 1
    let bend = 0.438726 + rest * (-0.239058 + rest * 0.0821306)
    return (exponent + (rest + rest * (1 - rest) * bend)) * 3.0103
  }

  private static func convert(_ samples: UnsafePointer<Int16>, _ floats: UnsafeMutablePointer<Float>, _ count: Int) {
    for index in 0..<count { floats[index] = Float(samples[index]) }
  }

  private static func product(_ a: UnsafePointer<Float>, _ b: UnsafePointer<Float>, _ count: Int) -> Float {
    var (sums, others) = (SIMD4<Float>.zero, SIMD4<Float>.zero)
    var index = 0
    while index &+ 8 <= count {
      sums += vector(a + index) * vector(b + index)
      others += vector(a + index + 4) * vector(b + index + 4)
      index &+= 8
    }
    var sum = (sums + others).sum()
    while index < count {
      sum += a[index] * b[index]
      index &+= 1
    }
    return sum
  }

  @inline(__always) private static func vector(_ floats: UnsafePointer<Float>) -> SIMD4<Float> {
    UnsafeRawPointer(floats).loadUnaligned(as: SIMD4<Float>.self)
  }
}
