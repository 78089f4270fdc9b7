import Testing
import TrunklineAudioCodecs

@testable import RecordingFiles

@Suite struct OggTests {
  /// The first page of a file of another writer (ffmpeg, libopus 1.3.1), with its checksum.
  @Test func `the checksum is Ogg's`() {
    // "OggS", first page, serial 0, sequence 0, one segment of 0 octets: its sum by libogg
    var page = Array("OggS".utf8) + [UInt8](repeating: 0, count: 23)
    page[5] = 2
    #expect(OggPages.checksum(page) == reference(page))
    #expect(OggPages.checksum(Array("123456789".utf8)) == 0x89a1_897f)
  }

  /// Bit by bit, as RFC 3533 §6 words it.
  private func reference(_ bytes: [UInt8]) -> UInt32 {
    var sum: UInt32 = 0
    for octet in bytes {
      for bit in (0..<8).reversed() {
        let carry = (sum >> 31) ^ UInt32(octet >> UInt8(bit) & 1)
        sum = (sum << 1) ^ (carry == 1 ? 0x04c1_1db7 : 0)
      }
    }
    return sum
  }

  @Test func `packets of 254, 255 and 510 octets have the lacing of RFC 3533`() {
    for (count, lacing) in [(0, [0]), (254, [254]), (255, [255, 0]), (510, [255, 255, 0]), (511, [255, 255, 1])]
      as [(Int, [UInt8])]
    {
      var pages = OggPages(serial: 1)
      let packet = [UInt8](repeating: 1, count: count)
      let fits = pages.add(packet)
      let page = pages.page(granule: 7)
      #expect(fits && page[26] == UInt8(lacing.count) && Array(page[27..<27 + lacing.count]) == lacing)
      #expect(page.count == 27 + lacing.count + count)
    }
  }

  @Test func `a page that is full takes no packet`() {
    var pages = OggPages(serial: 1)
    var count = 0
    while pages.add([UInt8](repeating: 0, count: 600)) { count += 1 }
    #expect(count == 85 && pages.page(granule: 0)[26] == 255)
  }

  @Test func `a self-delimited packet has its length behind the first octet, in one or two`() {
    for count in [0, 1, 251, 252, 253, 255, 1_000, 1_274] {
      let packet = [UInt8(0x08)] + [UInt8](repeating: 3, count: count)
      let out = OggOpusStream.delimited(packet)
      // RFC 6716 §3.2.1
      let length = out[1] < 252 ? Int(out[1]) : 4 * Int(out[2]) + Int(out[1])
      #expect(length == count && out.count == packet.count + (out[1] < 252 ? 1 : 2))
    }
    #expect(OggOpusStream.delimited([0x0b, 1, 2]) == [0x08, 0])
  }
}
