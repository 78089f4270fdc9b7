/// What audio that is suddenly loud looks like: as random octets do, or as a voice does. 20 ms at 8 kHz, or what there is of it.
enum SuddenAudio {
  /// −24 dBov.
  private static let loud: Float = 4_300_000
  /// Correlation of neighbouring samples, less their mean: speech that is this loud nearly always has more.
  private static let white: Float = 0.25
  private static let nearlyWhite: Float = 0.4
  /// Share of the energy that is no sound: octets of one sign (text, one octet again and again). No telephone passes that.
  private static let constant: Float = 0.3
  private static let partlyConstant: Float = 0.15
  /// Share of samples below an eighth of the root mean square: octets of G.711 are a logarithm, so that random ones have 0.4, and
  /// noise has 0.1.
  private static let small: Float = 0.25
  /// Fourth moment over the square of the second: noise has 3, single wrong octets among quiet ones far more.
  private static let peaky: Float = 16

  enum Likeness { case speech, noise, octets }

  /// Noise is white and loud. Octets that are no audio are of one sign, or white with many small samples; or single samples
  /// of them are wild.
  static func likeness(_ samples: UnsafeMutableBufferPointer<Int16>, power: Float) -> Likeness {
    guard samples.count > 8 else { return .speech }
    var sum: Int64 = 0
    for sample in samples { sum &+= Int64(sample) }
    let count = Float(samples.count)
    let mean = Float(sum) / count
    let limit = (power / 64).squareRoot()
    var (before, energy, neighbours, fourth, low): (Float, Float, Float, Float, Float) = (0, 1, 0, 0, 0)
    var (highest, place): (Int32, Int) = (0, 0)
    for index in 0..<samples.count {
      let sample = samples[index]
      if abs(Int32(sample)) > highest { (highest, place) = (abs(Int32(sample)), index) }
      let value = Float(sample) - mean
      energy += value * value
      neighbours += value * before
      fourth += value * value * (value * value)
      if abs(value) < limit { low += 1 }
      before = value
    }
    let beside = max(abs(Int32(samples[max(0, place - 1)])), abs(Int32(samples[min(samples.count - 1, place + 1)])))
    if place > 0, place < samples.count - 1, beside < highest / 4 { return .octets }
    let (share, likeness) = (mean * mean / max(1, power), abs(neighbours) / energy)
    if likeness < white, fourth * count > peaky * energy * energy { return .octets }
    guard power > loud || share > constant else { return .speech }
    if share > constant { return .octets }
    if likeness < nearlyWhite, low > small * count || share > partlyConstant { return .octets }
    return likeness < white ? .noise : .speech
  }
}
