/// Linear PCM at 8 kHz (RFC 3551 §4.5.11): samples of 16 bits in network byte order. Stateless.
public enum L16 {
  /// Decodes as many whole samples as fit and returns their number.
  // HOT
  public static func decode(_ octets: Span<UInt8>, into samples: inout MutableSpan<Int16>) -> Int {
    let count = min(octets.count / 2, samples.count)
    for index in 0..<count {
      samples[index] = Int16(bitPattern: UInt16(octets[2 &* index]) << 8 | UInt16(octets[2 &* index &+ 1]))
    }
    return count
  }

  /// Encodes as many samples as fit and returns the number of octets.
  // HOT
  public static func encode(_ samples: Span<Int16>, into octets: inout MutableSpan<UInt8>) -> Int {
    let count = min(octets.count / 2, samples.count)
    for index in 0..<count {
      let bits = UInt16(bitPattern: samples[index])
      octets[2 &* index] = UInt8(truncatingIfNeeded: bits >> 8)
      octets[2 &* index &+ 1] = UInt8(truncatingIfNeeded: bits)
    }
    return count &* 2
  }
}
