#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// The payload of RFC 3389 comfort noise as far as telephone systems use it: the level, and no spectrum.
public enum ComfortNoise {
  /// The static payload type at 8 kHz (RFC 3551 §6).
  public static let payloadType: UInt8 = 13

  /// One octet: the level as −dBov, 0…127 (§3.1).
  public static func octet(level: Double) -> UInt8 { UInt8(max(0, min(127, -level.rounded()))) }

  /// The level of a payload in dBov; nil for an empty one. Spectral octets after it are ignored (§3.2 lets a receiver choose).
  public static func level(_ payload: Span<UInt8>) -> Double? {
    payload.isEmpty ? nil : -Double(payload[0] & 0x7f)
  }

  /// The root mean square of a level, full scale = 1; 0 from −127 dBov down.
  static func amplitude(level: Double) -> Double { level <= -127 ? 0 : exp(level * 0.115_129_254_6) }
}

/// White noise at a level, so that a line without speech does not seem dead. Its generator has a fixed seed; about one
/// instruction per sample; no allocation.
public struct NoiseGenerator: Sendable {
  private var state: UInt32 = 0x2545_f491

  public init() {}

  /// A sample of mean square 1.
  // HOT
  mutating func next() -> Float {
    state = state &* 1_664_525 &+ 1_013_904_223
    // Uniform distribution in ±√3.
    return Float(Int32(bitPattern: state) >> 8) * (1.732 / 8_388_608)
  }

  /// Fills `samples` with noise of `level` dBov (mean square; −127 or less is silence).
  // HOT
  public mutating func fill(_ samples: inout MutableSpan<Int16>, level: Double) {
    // A uniform distribution in ±a has a mean square of a²/3.
    let amplitude = min(32_000, 32_768 * ComfortNoise.amplitude(level: level) * 1.732)
    let scale = Int64(amplitude.rounded())
    for index in 0..<samples.count {
      state = state &* 1_664_525 &+ 1_013_904_223
      samples[index] = Int16(truncatingIfNeeded: (Int64(Int32(bitPattern: state) >> 8) &* scale) >> 23)
    }
  }
}
