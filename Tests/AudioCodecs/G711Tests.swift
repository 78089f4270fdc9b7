import Testing
import TrunklineAudioCodecs

/// ITU-T G.191's `ulaw_compress`, `ulaw_expand`, `alaw_compress` and `alaw_expand`, transcribed with their loops: the reference
/// our branch-free forms and tables are compared with, over all values.
enum G191 {
  static func muCompress(_ sample: Int16) -> UInt8 {
    let linear = Int(sample)
    var magnitude = linear < 0 ? ((~linear) >> 2) + 33 : (linear >> 2) + 33
    if magnitude > 0x1fff { magnitude = 0x1fff }
    var i = magnitude >> 6
    var segment = 1
    while i != 0 {
      segment += 1
      i >>= 1
    }
    let high = 8 - segment
    let low = 15 - ((magnitude >> segment) & 15)
    var code = high << 4 | low
    if linear >= 0 { code |= 0x80 }
    return UInt8(code)
  }

  static func muExpand(_ code: UInt8) -> Int16 {
    let sign = code < 0x80 ? -1 : 1
    let mantissa = ~Int(code)
    let exponent = (mantissa >> 4) & 7
    let step = 4 << (exponent + 1)
    return Int16(sign * ((0x80 << exponent) + step * (mantissa & 15) + step / 2 - 4 * 33))
  }

  static func aCompress(_ sample: Int16) -> UInt8 {
    let linear = Int(sample)
    var code = linear < 0 ? (~linear) >> 4 : linear >> 4
    if code > 15 {
      var exponent = 1
      while code > 16 + 15 {
        code >>= 1
        exponent += 1
      }
      code -= 16
      code += exponent << 4
    }
    if linear >= 0 { code |= 0x80 }
    return UInt8(code ^ 0x55)
  }

  static func aExpand(_ code: UInt8) -> Int16 {
    let value = Int(code ^ 0x55) & 0x7f
    let exponent = value >> 4
    var mantissa = value & 15
    if exponent > 0 { mantissa += 16 }
    mantissa = (mantissa << 4) + 8
    if exponent > 1 { mantissa <<= exponent - 1 }
    return Int16(code > 127 ? mantissa : -mantissa)
  }
}

@Suite struct G711Tests {
  static let allSamples = (Int(Int16.min)...Int(Int16.max)).map { Int16($0) }
  static let allOctets = (0...255).map { UInt8($0) }

  func encode(_ samples: [Int16], _ law: G711.Law) -> [UInt8] {
    var octets = [UInt8](repeating: 0, count: samples.count)
    var span = octets.mutableSpan
    #expect(G711.encode(samples.span, law: law, into: &span) == samples.count)
    return octets
  }
  func decode(_ octets: [UInt8], _ law: G711.Law) -> [Int16] {
    var samples = [Int16](repeating: 0, count: octets.count)
    var span = samples.mutableSpan
    #expect(G711.decode(octets.span, law: law, into: &span) == octets.count)
    return samples
  }

  @Test func `every sample encodes as the ITU's reference does`() {
    #expect(encode(Self.allSamples, .mu) == Self.allSamples.map { G191.muCompress($0) })
    #expect(encode(Self.allSamples, .a) == Self.allSamples.map { G191.aCompress($0) })
  }

  @Test func `every octet decodes as the ITU's reference does`() {
    #expect(decode(Self.allOctets, .mu) == Self.allOctets.map { G191.muExpand($0) })
    #expect(decode(Self.allOctets, .a) == Self.allOctets.map { G191.aExpand($0) })
  }

  @Test func `decoding and encoding again gives the same octet`() {
    #expect(encode(decode(Self.allOctets, .a), .a) == Self.allOctets)
    // µ-law has two zeros; the negative one (0x7f) encodes as the positive.
    #expect(encode(decode(Self.allOctets, .mu), .mu) == Self.allOctets.map { $0 == 0x7f ? 0xff : $0 })
  }

  @Test func `known values: full scale and silence`() {
    #expect(decode([0x80, 0x00, 0xff], .mu) == [32124, -32124, 0])
    #expect(decode([0xaa, 0x2a, 0xd5], .a) == [32256, -32256, 8])
    #expect(encode([0], .mu) == [0xff])
    #expect(encode([0], .a) == [0xd5])
  }

  @Test func `a smaller output takes what fits`() {
    var samples = [Int16](repeating: 7, count: 2)
    var span = samples.mutableSpan
    let octets: [UInt8] = [0xff, 0xff, 0xff]
    #expect(G711.decode(octets.span, law: .mu, into: &span) == 2)
    #expect(samples == [0, 0])
  }
}
