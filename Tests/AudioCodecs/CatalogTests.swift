import Testing
import TrunklineAudioCodecs
import TrunklineRTP

/// The contract every row of the catalog keeps.
@Suite struct CatalogTests {
  final class Codec {
    var encoder: AudioEncoder
    var decoder: AudioDecoder
    init(_ encoding: AudioEncoding) throws {
      encoder = try AudioEncoder(encoding: encoding)
      decoder = try AudioDecoder(encoding: encoding)
    }
    func encode(_ samples: [Int16]) throws -> [UInt8] {
      var payload = [UInt8](repeating: 0, count: 1275)
      var span = payload.mutableSpan
      let length = try encoder.encode(samples.span, into: &span)
      return Array(payload[..<length])
    }
    func duration(_ payload: [UInt8]) -> Int? { decoder.duration(payload.span) }
    func output(_ body: (inout MutableSpan<Int16>) -> Int) -> [Int16] {
      var samples = [Int16](repeating: 0, count: 960)
      var span = samples.mutableSpan
      let count = body(&span)
      return Array(samples[..<count])
    }
  }

  @Test func `there is a row for every encoding, in their order`() {
    #expect(CodecTable.rows.map(\.encoding) == AudioEncoding.allCases)
    for encoding in AudioEncoding.allCases { #expect(encoding.row.encoding == encoding) }
  }

  @Test(arguments: AudioEncoding.allCases)
  func `a tick goes through, with a duration in clock units and the same level`(_ encoding: AudioEncoding) throws {
    let codec = try Codec(encoding)
    var heard: [Int16] = []
    for frame in 0..<50 {
      let payload = try codec.encode(voice(160, from: frame * 160))
      #expect(codec.duration(payload) == codec.encoder.units(ofSamples: 160))
      heard += codec.output { codec.decoder.decode(payload.span, into: &$0) }
    }
    #expect(heard.count == 8000)
    #expect(abs(level(Array(heard[800...])) - level(voice(7200, from: 800))) < 2)
  }

  @Test(arguments: AudioEncoding.allCases)
  func `a loss is filled with about the same level and the voice comes back`(_ encoding: AudioEncoding) throws {
    let codec = try Codec(encoding)
    for frame in 0..<30 {
      let payload = try codec.encode(voice(160, from: frame * 160))
      if frame == 20 {  // in the middle of a syllable
        let made = codec.output { codec.decoder.conceal(160, into: &$0) }
        #expect(made.count == 160 && abs(level(made) - level(voice(160, from: 3200))) < 8)
      } else {
        let samples = codec.output { codec.decoder.decode(payload.span, into: &$0) }
        if (22..<25).contains(frame) { #expect(abs(level(samples) - level(voice(160, from: frame * 160))) < 3) }
      }
    }
  }

  @Test(arguments: AudioEncoding.allCases)
  func `an empty payload has no duration and decodes to nothing`(_ encoding: AudioEncoding) throws {
    let codec = try Codec(encoding)
    let empty: [UInt8] = []
    #expect(codec.duration(empty) == nil)
    #expect(codec.output { codec.decoder.decode(empty.span, into: &$0) }.isEmpty)
  }
}
