import Bytes
import Testing

@testable import AudioCodecs

/// Beginnings of packets of libopus, 24 kbit/s of CELT: noise that gets louder by 57 dB, and 40 ms later.
@Suite struct CELTHeaderTests {
  static let onset: [UInt8] = [
    0xf8, 0x7d, 0xae, 0x6e, 0x30, 0x75, 0xe9, 0xcb, 0xac, 0xb3, 0x07, 0x1a, 0xdb, 0xf7, 0x33, 0x49, 0x91, 0xb3, 0x4a, 0x88, 0x52,
    0xd4, 0xf4, 0xab,
  ]
  static let after: [UInt8] = [
    0xf8, 0x08, 0xa6, 0xab, 0x2c, 0xa5, 0x55, 0xac, 0x7c, 0x63, 0x83, 0x8a, 0x44, 0x0e, 0xf0, 0xb6, 0xd2, 0x48, 0x60, 0x33, 0x7f,
    0xa2, 0xe8, 0x85,
  ]

  static func header(_ packet: [UInt8]) -> CELTHeader? { CELTHeader(packet.span) }
  static func levels(_ header: CELTHeader) -> [Int] { (0..<header.bands).map { Int(header.levels[$0]) } }

  @Test func `a sound that begins is said to begin, in the first band, from which the others follow`() throws {
    let header = try #require(Self.header(Self.onset))
    #expect(header.isTransient && !header.hasPitch && !header.isSilent && header.bands == 21)
    #expect(Self.levels(header) == [5, 1, 2, 0, 0, 0, 0, 0, 1, -1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0])
  }

  @Test func `a sound that goes on has nothing to say`() throws {
    let header = try #require(Self.header(Self.after))
    #expect(!header.isTransient && !header.hasPitch && !header.standsAlone)
    #expect(Self.levels(header).allSatisfy { abs($0) <= 1 }, "\(Self.levels(header))")
  }

  @Test func `other packets than one frame of 20 ms in one channel are not looked at`() {
    for first in [0x00, 0x48, 0x78, 0xf0, 0xf9, 0xfa, 0xfb, 0xfc] as [UInt8] {
      #expect(Self.header([first] + Self.onset.dropFirst()) == nil)
    }
    #expect(Self.header([0xf8]) == nil)
    #expect(Self.header([]) == nil)
  }

  @Test func `any octets have a header`() throws {
    var random = SplitMix64(seed: 3)
    var alone = 0
    for round in 0..<20_000 {
      let count = 2 + Int(random.next() % 60)
      var packet: [UInt8] = [[0x98, 0xb8, 0xd8, 0xf8][round % 4]]
      for _ in 0..<count { packet.append(round % 7 == 0 ? 0xff : round % 11 == 0 ? 0 : UInt8(truncatingIfNeeded: random.next())) }
      if try #require(Self.header(packet)).standsAlone { alone += 1 }
    }
    // One of eight, where no frame is too short for it.
    #expect(alone > 1_000 && alone < 5_000)
  }
}
