/// ITU-T G.722 at 64 kbit/s to 16 kHz samples, or its low band alone to 8 kHz: the part that a telephone can carry, at half the
/// cost. Any octets decode to something; no allocation; 20 ms take about 7 µs at 16 kHz, half of it at 8. One stream.
public struct G722Decoder: ~Copyable {
  /// 16000, or 8000 for the low band alone.
  public let sampleRateHz: Int
  private var low = G722Band.low
  private var high = G722Band.high
  private let synthesis = QuadratureMirror()
  /// Analyses concealed audio.
  private let analysis = QuadratureMirror()

  public init(sampleRateHz: Int) { self.sampleRateHz = sampleRateHz }

  /// Continues another decoder's stream at a different rate.
  init(continuing other: borrowing G722Decoder, sampleRateHz: Int) {
    self.sampleRateHz = sampleRateHz
    low = other.low
    high = other.high
  }

  /// Decodes as many octets as there is room for and returns the samples: two an octet at 16 kHz, one at 8 kHz.
  // HOT
  public mutating func decode(_ octets: Span<UInt8>, into samples: inout MutableSpan<Int16>) -> Int {
    guard sampleRateHz > 8_000 else {
      let count = min(octets.count, samples.count)
      for index in 0..<count { samples[index] = Int16(truncatingIfNeeded: decodeLow(octets[index]) << 1) }
      return count
    }
    let count = min(octets.count, samples.count / 2)
    for index in 0..<count {
      let lower = decodeLow(octets[index])
      let upper = decodeHigh(octets[index])
      let (first, second) = synthesis.join(low: lower, high: upper)
      samples[2 &* index] = Int16(truncatingIfNeeded: first)
      samples[2 &* index &+ 1] = Int16(truncatingIfNeeded: second)
    }
    return 2 &* count
  }

  /// Adapts the state to concealed audio as if these samples had been received (as G.722 Appendix III does), so that the next
  /// packet finds a scale near its own.
  public mutating func follow(_ samples: Span<Int16>) {
    guard sampleRateHz > 8_000 else {
      for index in 0..<samples.count { _ = low.encodeLow(Int32(samples[index]) >> 1) }
      return
    }
    for index in 0..<(samples.count / 2) {
      let (lower, upper) = analysis.split(Int32(samples[2 &* index]), Int32(samples[2 &* index &+ 1]))
      _ = low.encodeLow(lower)
      _ = high.encodeHigh(upper)
    }
  }

  /// Clears the state, for another source.
  public mutating func reset() {
    (low, high) = (.low, .high)
    synthesis.reset()
    analysis.reset()
  }

  @inline(__always) private static func limit(_ value: Int32) -> Int32 { max(-16_384, min(16_383, value)) }

  @inline(__always) private mutating func decodeLow(_ octet: UInt8) -> Int32 {
    let code = Int(octet & 0x3f)
    let fine = (low.step &* G722Tables.qm6[code]) >> 15
    let sample = Self.limit(low.prediction &+ fine)
    let quantised = (low.step &* G722Tables.qm4[code >> 2]) >> 15
    low.scale(by: G722Tables.lowSteps[code >> 2])
    low.adapt(quantised)
    return sample
  }

  @inline(__always) private mutating func decodeHigh(_ octet: UInt8) -> Int32 {
    let code = Int(octet >> 6)
    let quantised = (high.step &* G722Tables.qm2[code]) >> 15
    let sample = Self.limit(high.prediction &+ quantised)
    high.scale(by: G722Tables.highSteps[code])
    high.adapt(quantised)
    return sample
  }
}
