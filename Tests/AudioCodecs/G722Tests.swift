import Testing
import TrunklineAudioCodecs
import TrunklineBytes

/// Hashes are of what spandsp 0.0.6 (Debian's libspandsp) and ffmpeg's decoder make of the same signal:
/// Tests/Vectors/g722/oracle.c.
@Suite struct G722Tests {
  /// Silence, rumble, noise at full scale, a square wave whose pitch rises; and the generator's state after it.
  private func signal() -> (samples: [Int16], state: UInt32) {
    var state: UInt32 = 1
    var low: Int32 = 0
    let samples = (0..<32_000).map { k -> Int16 in
      state = state &* 1_664_525 &+ 1_013_904_223
      let noise = Int32(bitPattern: state) >> 17
      low += (noise - low) / 8
      switch k / 4_000 % 4 {
      case 0: return k % 4_000 < 2_000 ? 0 : Int16(truncatingIfNeeded: noise >> 8)
      case 1: return Int16(truncatingIfNeeded: low)
      case 2: return Int16(truncatingIfNeeded: noise * 2)
      default: return (k * (k / 64) / 512) % 2 != 0 ? 12_000 : -12_000
      }
    }
    return (samples, state)
  }
  private func anyOctets() -> [UInt8] {
    var state = signal().state
    return (0..<16_000).map { _ in
      state = state &* 1_664_525 &+ 1_013_904_223
      return UInt8(state >> 24)
    }
  }
  private func encode(_ samples: [Int16], _ rate: Int) -> [UInt8] {
    var encoder = G722Encoder(sampleRateHz: rate)
    var octets = [UInt8](repeating: 0, count: samples.count)
    var span = octets.mutableSpan
    let count = encoder.encode(samples.span, into: &span)
    return Array(octets[..<count])
  }
  private func decode(_ octets: [UInt8], _ rate: Int) -> [Int16] {
    var decoder = G722Decoder(sampleRateHz: rate)
    var samples = [Int16](repeating: 0, count: octets.count * 2)
    var span = samples.mutableSpan
    let count = decoder.decode(octets.span, into: &span)
    return Array(samples[..<count])
  }
  private func hash(_ bytes: [UInt8]) -> UInt64 { FNV1a(bytes).value }
  private func hash(_ samples: [Int16]) -> UInt64 {
    hash(samples.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] })
  }

  @Test func `the encoder is bit exact, wide and narrow`() {
    let samples = signal().samples
    #expect(hash(encode(samples, 16_000)) == 0x3de2_e2e8_11b6_7be1)
    #expect(hash(encode(samples, 8_000)) == 0x0b15_c48f_feb0_ae53)
  }

  @Test func `the decoder is bit exact for any octets, wide and narrow`() {
    // Wide as ffmpeg has it: spandsp wraps around where the Recommendation limits.
    #expect(hash(decode(anyOctets(), 16_000)) == 0xcf2d_8f6f_9b1e_98f6)
    #expect(hash(decode(anyOctets(), 8_000)) == 0xa4b9_f12c_2308_7409)
  }

  @Test func `a voice comes back at its level, and its upper band too`() {
    let low = (0..<16_000).map { Int16([0, 5_000, 7_071, 5_000, 0, -5_000, -7_071, -5_000][$0 / 2 % 8]) }
    let narrow = decode(encode(low, 8_000), 8_000)
    #expect(narrow.count == 16_000)
    #expect(abs(level(narrow) - level(low)) < 0.3)
    // 6 kHz at a rate of 16 kHz: above what a telephone carries.
    let high = (0..<16_000).map { Int16([0, 4_000, 5_657, 4_000, 0, -4_000, -5_657, -4_000][$0 * 3 % 8]) }
    let wide = decode(encode(high, 16_000), 16_000)
    #expect(wide.count == 16_000)
    #expect(abs(level(Array(wide[800...])) - level(high)) < 1)
    #expect(level(Array(decode(encode(high, 16_000), 8_000)[800...])) < level(high) - 25, "the low band has none of it")
  }

  @Test func `a reset coder begins anew, and room is never exceeded`() {
    var encoder = G722Encoder(sampleRateHz: 16_000)
    func octets(_ encoder: inout G722Encoder, room: Int) -> [UInt8] {
      var octets = [UInt8](repeating: 0, count: room)
      var span = octets.mutableSpan
      let samples = Array(signal().samples[6_000..<6_321])
      let count = encoder.encode(samples.span, into: &span)
      return Array(octets[..<count])
    }
    let first = octets(&encoder, room: 400)
    #expect(first.count == 160)
    encoder.reset()
    #expect(octets(&encoder, room: 7) == Array(first[..<7]))
  }
}
