/// One sub-band's adaptive predictor and scale factor (ITU-T G.722 §3.6, the blocks of its figures 4 to 6), the same in encoder
/// and decoder. Arithmetic on 16 bits in Int32: products of two such values always fit.
struct G722Band: Sendable {
  /// Scale factor, linear and logarithmic.
  private(set) var step: Int32
  private var logarithm: Int32 = 0
  /// The prediction of the next sample: in total, and by the zeros.
  private(set) var prediction: Int32 = 0
  private var zeros: Int32 = 0
  // Reconstructed and partly reconstructed signal, the poles' coefficients.
  private var (r1, r2): (Int32, Int32) = (0, 0)
  private var (p1, p2): (Int32, Int32) = (0, 0)
  private var (a1, a2): (Int32, Int32) = (0, 0)
  /// Six past differences, doubled, the newest first, and the coefficients of the zeros.
  private var d = SIMD8<Int32>.zero
  private var b = SIMD8<Int32>.zero
  private let isHigh: Bool

  static let low = G722Band(step: 32, isHigh: false)
  static let high = G722Band(step: 8, isHigh: true)

  private init(step: Int32, isHigh: Bool) { (self.step, self.isHigh) = (step, isHigh) }

  @inline(__always) static func saturate(_ value: Int32) -> Int32 { max(-32_768, min(32_767, value)) }

  /// LOGSCL and SCALEL, LOGSCH and SCALEH: adapts the scale factor to the coded value.
  @inline(__always) mutating func scale(by change: Int32) {
    logarithm = max(0, min(isHigh ? 22_528 : 18_432, (logarithm &* 127) >> 7 &+ change))
    let mantissa = G722Tables.inverseLogarithm[Int((logarithm >> 6) & 31)]
    let shift = (isHigh ? 10 : 8) &- (logarithm >> 11)
    step = (shift < 0 ? mantissa << -shift : mantissa >> shift) << 2
  }

  /// Block 4: adapts to the quantised difference and predicts the next sample.
  @inline(__always) mutating func adapt(_ difference: Int32) {
    let r0 = Self.saturate(prediction &+ difference)
    let p0 = Self.saturate(zeros &+ difference)
    // UPPOL2
    var wide = Self.saturate(a1 << 2)
    wide = (p0 ^ p1) < 0 ? wide : min(32_767, 0 &- wide)
    var next2 = ((p0 ^ p2) < 0 ? -128 : 128) &+ (wide >> 7) &+ (a2 &* 32_512) >> 15
    next2 = max(-12_288, min(12_288, next2))
    // UPPOL1
    let limit = Self.saturate(15_360 &- next2)
    let next1 = Self.saturate(((p0 ^ p1) < 0 ? -192 : 192) &+ (a1 &* 32_640) >> 15)
    (a1, a2) = (max(0 &- limit, min(limit, next1)), next2)
    // UPZERO: lanes 0…5 are the six zeros. (x · 32640) >> 15 is x + (−x >> 8), without a multiplication; it stays within 16 bits.
    let nudge: Int32 = difference == 0 ? 0 : 128
    let differs = (d ^ SIMD8(repeating: difference)) &>> SIMD8(repeating: 31)
    b = b &+ (SIMD8.zero &- b) &>> SIMD8(repeating: 8) &+ ((SIMD8(repeating: nudge) ^ differs) &- differs)
    // DELAYA
    d = SIMD8(Self.saturate(difference &+ difference), d[0], d[1], d[2], d[3], d[4], 0, 0)
    (r2, r1) = (r1, r0)
    (p2, p1) = (p1, p0)
    // FILTEP, FILTEZ, PREDIC
    let poles = Self.saturate((a1 &* Self.saturate(r1 &+ r1)) >> 15 &+ (a2 &* Self.saturate(r2 &+ r2)) >> 15)
    zeros = Self.saturate(((b &* d) &>> SIMD8(repeating: 15)).wrappedSum())
    prediction = Self.saturate(poles &+ zeros)
  }

  /// QUANTL and the blocks after it: one 15-bit sample of the low band to its 6-bit code.
  @inline(__always) mutating func encodeLow(_ sample: Int32) -> UInt8 {
    let difference = Self.saturate(sample &- prediction)
    let magnitude = difference >= 0 ? difference : ~difference
    // A decision level is reached where (level · step) >> 12 is not above the magnitude, and so up to this. The step is 32 at
    // least.
    let highest = min(2_919, (((magnitude &+ 1) << 12) &- 1) / step)
    var level = Int(G722Tables.q6Below[Int(highest >> 5)])
    level &+= highest >= G722Tables.q6[level &+ 1] ? 2 : 1
    let code = difference < 0 ? G722Tables.negativeLow[level] : G722Tables.positiveLow[level]
    let coarse = Int(code >> 2)
    let quantised = (step &* G722Tables.qm4[coarse]) >> 15
    scale(by: G722Tables.lowSteps[coarse])
    adapt(quantised)
    return code
  }

  /// QUANTH and the blocks after it: one sample of the high band to its 2-bit code.
  @inline(__always) mutating func encodeHigh(_ sample: Int32) -> UInt8 {
    let difference = Self.saturate(sample &- prediction)
    let magnitude = difference >= 0 ? difference : ~difference
    let isLarge = magnitude >= (564 &* step) >> 12
    let code: UInt8 = difference < 0 ? (isLarge ? 0 : 1) : (isLarge ? 2 : 3)
    let quantised = (step &* G722Tables.qm2[Int(code)]) >> 15
    scale(by: G722Tables.highSteps[Int(code)])
    adapt(quantised)
    return code
  }
}
