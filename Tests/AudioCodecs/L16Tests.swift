import Testing
import TrunklineAudioCodecs
import TrunklineRTP

@Suite struct L16Tests {
  private func encode(_ samples: [Int16], room: Int? = nil) -> [UInt8] {
    var octets = [UInt8](repeating: 0xee, count: room ?? samples.count * 2)
    var span = octets.mutableSpan
    let count = L16.encode(samples.span, into: &span)
    return Array(octets[..<count])
  }
  private func decode(_ octets: [UInt8], room: Int = 960) -> [Int16] {
    var samples = [Int16](repeating: 7, count: room)
    var span = samples.mutableSpan
    let count = L16.decode(octets.span, into: &span)
    return Array(samples[..<count])
  }

  @Test func `samples are in network byte order`() {
    #expect(encode([0, 1, -1, 258, .max, .min]) == [0, 0, 0, 1, 0xff, 0xff, 1, 2, 0x7f, 0xff, 0x80, 0])
    #expect(decode([0, 0, 0, 1, 0xff, 0xff, 1, 2, 0x7f, 0xff, 0x80, 0]) == [0, 1, -1, 258, .max, .min])
  }

  @Test func `every sample comes back as it was`() {
    for start in stride(from: Int(Int16.min), through: Int(Int16.max), by: 512) {
      let samples = (start..<start + 512).map { Int16($0) }
      #expect(decode(encode(samples)) == samples)
    }
  }

  @Test func `a smaller output takes whole samples that fit, and half a sample is none`() {
    #expect(encode([1, 2, 3], room: 5) == [0, 1, 0, 2])
    #expect(decode([0, 1, 0, 2, 0, 3], room: 2) == [1, 2])
    #expect(decode([0, 1, 0]) == [1] && decode([9]).isEmpty)
  }

  @Test func `a payload that ends in half a sample, or is longer than 120 ms, has no duration`() throws {
    let decoder = try AudioDecoder(encoding: .l16)
    func duration(_ count: Int) -> Int? { decoder.duration([UInt8](repeating: 0, count: count).span) }
    #expect(duration(320) == 160 && duration(2) == 1 && duration(1_920) == 960)
    #expect(duration(0) == nil && duration(1) == nil && duration(321) == nil && duration(1_922) == nil)
  }

  @Test(arguments: AudioEncoding.allCases.filter { $0.row.isStateless })
  func `silence is made of the row's octet and is not audible, talk is`(_ encoding: AudioEncoding) throws {
    let octets = [UInt8](repeating: try #require(encoding.row.silence), count: encoding.row.octets(ofMilliseconds: 20))
    var samples = [Int16](repeating: 99, count: 160)
    var span = samples.mutableSpan
    #expect(encoding.decodeSamples(octets.span, into: &span) == 160)
    #expect(samples.allSatisfy { abs($0) <= 8 })
    #expect(octets.withUnsafeBytes { !encoding.isAudible($0) })
    var coded = octets
    var room = coded.mutableSpan
    #expect(encoding.encodeSamples(voice(160).span, into: &room) == octets.count)
    #expect(coded.withUnsafeBytes { encoding.isAudible($0) })
  }
}
