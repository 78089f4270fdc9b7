/// ITU-T G.711 at 8 kHz: one octet a sample, bit exact to ITU-T G.191's reference. Stateless; about 4 instructions a sample to
/// decode.
public enum G711 {
  public enum Law: UInt8, Sendable { case mu, a }

  /// Decodes as many octets as fit and returns their number.
  // HOT
  public static func decode(_ octets: Span<UInt8>, law: Law, into samples: inout MutableSpan<Int16>) -> Int {
    let count = min(octets.count, samples.count)
    if law == .mu {
      for index in 0..<count { samples[index] = G711Tables.muLaw[Int(octets[index])] }
    } else {
      for index in 0..<count { samples[index] = G711Tables.aLaw[Int(octets[index])] }
    }
    return count
  }

  /// Encodes as many samples as fit and returns their number.
  // HOT
  public static func encode(_ samples: Span<Int16>, law: Law, into octets: inout MutableSpan<UInt8>) -> Int {
    let count = min(octets.count, samples.count)
    if law == .mu {
      for index in 0..<count { octets[index] = muLaw(samples[index]) }
    } else {
      for index in 0..<count { octets[index] = aLaw(samples[index]) }
    }
    return count
  }

  /// One sample; negative values by one's complement, as G.191 does.
  @inline(__always) static func muLaw(_ sample: Int16) -> UInt8 {
    let sign = Int32(sample) >> 31
    let magnitude = min(0x1fff, ((Int32(sample) ^ sign) >> 2) &+ 33)
    let segment = Int32(truncatingIfNeeded: 32 &- (magnitude >> 6).leadingZeroBitCount) &+ 1
    let code = (8 &- segment) << 4 | (15 &- ((magnitude >> segment) & 15))
    return UInt8(truncatingIfNeeded: code | (~sign & 0x80))
  }

  @inline(__always) static func aLaw(_ sample: Int16) -> UInt8 {
    let sign = Int32(sample) >> 31
    let magnitude = (Int32(sample) ^ sign) >> 4
    let exponent = max(0, Int32(truncatingIfNeeded: 32 &- (magnitude >> 4).leadingZeroBitCount))
    // Segments 0 and 1 have the same step.
    let shift = max(0, exponent &- 1)
    let code = exponent << 4 | ((magnitude >> shift) & 15)
    return UInt8(truncatingIfNeeded: (code | (~sign & 0x80)) ^ 0x55)
  }
}
