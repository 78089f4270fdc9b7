/// What audio that is suddenly loud looks like: as random octets do, or as a voice does. 20 ms at 8 kHz, or what there is of it.
enum SuddenAudio {
  /// −24 dBov.
  private static let loud: Float = 4_300_000
  /// Correlation of neighbouring samples, less their mean: speech that is this loud nearly always has more.
  private static let white: Float = 0.25
  private static let nearlyWhite: Float = 0.4
  /// Share of the energy that is no sound: one octet again and again. No telephone passes that.
  private static let constant: Float = 0.9
  /// The same of octets of one sign, as text has; and how many of them are of that sign. A recording that was never on a line has
  /// rumble of as much energy under its hiss, but that reaches to both sides.
  private static let partlyConstant: Float = 0.15
  private static let oneSided: Float = 0.95
  /// Share of samples below an eighth of the root mean square: octets of G.711 are a logarithm, so that random ones have 0.4, and
  /// noise has 0.1.
  private static let small: Float = 0.25
  /// The square of a single wild sample over the mean square, at least.
  private static let alone: Float = 25

  enum Likeness { case speech, noise, octets }

  /// Noise is white and loud, and may be meant: `SuddenSound` says how it begins. Octets that are no audio are of one sign, or white
  /// with many small samples; or a single sample is wild. Of most speech only the correlation of neighbours is needed to tell.
  /// - Parameters:
  ///   - power: mean square.
  ///   - mean: of the samples.
  ///   - highest: magnitude of a sample.
  static func likeness(_ samples: UnsafeMutableBufferPointer<Int16>, power: Float, mean: Float, highest: Float) -> Likeness {
    guard let base = samples.baseAddress, samples.count > 8 else { return .speech }
    if highest * highest > alone * power, standsAlone(base, samples.count, Int32(highest)) { return .octets }
    // Sums of what the samples are beyond their mean, from those of the samples.
    let (count, constantPower) = (Float(samples.count), mean * mean)
    let energy = max(0, power - constantPower) * count + 1
    let ends = Float(base[0]) + Float(base[samples.count - 1])
    let neighbours = Float(product(base, samples.count, highest)) + mean * ends - (count + 1) * constantPower
    let (share, likeness) = (constantPower / max(1, power), abs(neighbours) / energy)
    guard likeness < nearlyWhite else { return share > constant ? .octets : .speech }
    if share > partlyConstant, ofOneSign(base, samples.count, mean) > oneSided * count { return .octets }
    guard power > loud else { return .speech }
    if smallSamples(base, samples.count, mean) > small * count { return .octets }
    return likeness < white ? .noise : .speech
  }

  /// The sum of products of neighbours.
  private static func product(_ samples: UnsafePointer<Int16>, _ count: Int, _ highest: Float) -> Int64 {
    // −32,768 again and again is more than the instruction can add up.
    if highest < 32_768 { return SampleSums.product(samples, samples + 1, count - 1) }
    var sum: Int64 = 0
    for index in 1..<count { sum &+= Int64(Int32(samples[index]) &* Int32(samples[index - 1])) }
    return sum
  }

  /// The highest sample is four times as high as those beside it.
  private static func standsAlone(_ samples: UnsafePointer<Int16>, _ count: Int, _ highest: Int32) -> Bool {
    let raw = UnsafeRawPointer(samples)
    let (above, below) = (Int16(truncatingIfNeeded: highest), Int16(truncatingIfNeeded: 0 &- highest))
    let (aboves, belows) = (SIMD8(repeating: above), SIMD8(repeating: below))
    var place = 0
    while place &+ 8 <= count {
      let x = raw.loadUnaligned(fromByteOffset: 2 &* place, as: SIMD8<Int16>.self)
      let found = unsafeBitCast((x .== aboves) .| (x .== belows), to: SIMD2<UInt64>.self)
      if found[0] | found[1] != 0 { break }
      place &+= 8
    }
    while place < count, samples[place] != above, samples[place] != below { place &+= 1 }
    guard place > 0, place < count - 1 else { return false }
    return max(abs(Int32(samples[place - 1])), abs(Int32(samples[place + 1]))) < highest / 4
  }

  /// How many samples are of the mean's sign.
  private static func ofOneSign(_ samples: UnsafePointer<Int16>, _ count: Int, _ mean: Float) -> Float {
    var number = 0
    for index in 0..<count where mean < 0 ? samples[index] < 0 : samples[index] > 0 { number += 1 }
    return Float(number)
  }

  /// How many samples are small beside those around them, in quarters: a clap that fades has no more than noise has.
  private static func smallSamples(_ samples: UnsafePointer<Int16>, _ count: Int, _ mean: Float) -> Float {
    let length = max(1, count / 4)
    var (small, start) = (0, 0)
    while start < count {
      let end = min(count, start + length)
      var energy: Float = 0
      for index in start..<end { energy += (Float(samples[index]) - mean) * (Float(samples[index]) - mean) }
      let limit = (energy / Float(64 * (end - start))).squareRoot()
      for index in start..<end where abs(Float(samples[index]) - mean) < limit { small += 1 }
      start = end
    }
    return Float(small)
  }
}
