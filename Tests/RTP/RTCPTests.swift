import Testing
import TrunklineBytes
import TrunklineRTP

@Suite struct RTCPTests {
  static let block = ReportBlock(
    source: SSRC(raw: 7), fractionLost: 12, cumulativeLost: -3, highestSequence: 70_000, jitter: 33,
    lastSenderReport: 0x1234_5678,
    delaySinceLastSenderReport: 65_536)
  static let sender = SenderInfo(
    ntp: NTPTimestamp(raw: 0x0102_0304_0506_0708), timestamp: RTPTimestamp(raw: 9), packets: 10, octets: 11)

  static func compound(cname: String = "a@b") -> [UInt8] {
    var buffer = [UInt8](repeating: 0xee, count: 200)
    var span = buffer.mutableSpan
    var writer = RTCPWriter()
    let name = Array(cname.utf8)
    #expect(writer.report(from: SSRC(raw: 1), sender: sender, block: block, into: &span))
    #expect(writer.description(of: SSRC(raw: 1), cname: name.span, into: &span))
    #expect(writer.goodbye(from: SSRC(raw: 1), into: &span))
    return Array(buffer[..<writer.count])
  }

  @Test(arguments: ["a", "ab", "abc", "abcd", "abcde"])
  func `a compound of report, description and goodbye reads back`(_ cname: String) throws {
    let datagram = Self.compound(cname: cname)
    #expect(datagram.count % 4 == 0)
    var reader = RTCPReader()
    guard case .senderReport(let source, let info, let blocks) = try reader.next(in: datagram.span) else {
      Issue.record("not a sender report")
      return
    }
    #expect(source.raw == 1 && info == Self.sender && blocks.count == 1)
    #expect(blocks.block(0, in: datagram.span) == Self.block)
    #expect(blocks.block(1, in: datagram.span) == nil)
    guard case .sourceDescription(let described, let range?) = try reader.next(in: datagram.span) else {
      Issue.record("not a description")
      return
    }
    #expect(described?.raw == 1)
    #expect(String(decoding: datagram[range], as: UTF8.self) == cname)
    #expect(try reader.next(in: datagram.span) == .goodbye(SSRC(raw: 1), count: 1, reason: nil))
    #expect(try reader.next(in: datagram.span) == nil)
  }

  @Test func `a receiver report without a block is eight octets`() throws {
    var buffer = [UInt8](repeating: 0, count: 8)
    var span = buffer.mutableSpan
    var writer = RTCPWriter()
    #expect(writer.report(from: SSRC(raw: 5), sender: nil, block: nil, into: &span))
    #expect(!writer.goodbye(from: SSRC(raw: 5), into: &span))
    #expect(buffer == [0x80, 201, 0, 1, 0, 0, 0, 5])
  }

  @Test func `padding of the last packet is taken off`() throws {
    let datagram: [UInt8] = [0xa0, 201, 0, 2, 0, 0, 0, 5, 0, 0, 0, 4]
    var reader = RTCPReader()
    guard case .receiverReport(let source, let blocks) = try reader.next(in: datagram.span) else {
      Issue.record("not a receiver report")
      return
    }
    #expect(source.raw == 5 && blocks.count == 0)
  }

  @Test(
    arguments: [
      ([0x80, 201, 0, 2, 0, 0, 0, 5], RTCPParseError.truncated), ([0x81, 201, 0, 1, 0, 0, 0, 5], .badLength),
      ([0x80, 200, 0, 1, 0, 0, 0, 5], .badLength), ([0x40, 201, 0, 1, 0, 0, 0, 5], .badVersion),
      ([0x80, 210, 0, 0], .badFirstPacket),
      ([0xa0, 201, 0, 1, 0, 0, 0, 0], .badPadding), ([0xa0, 201, 0, 1, 0, 0, 0, 12], .badPadding), ([0x80, 201, 0], .truncated),
      ([], .truncated),
      ([0x81, 202, 0, 2, 0, 0, 0, 1, 1, 9, 65, 66], .badLength), ([0x82, 203, 0, 1, 0, 0, 0, 1], .badLength),
      ([0x81, 203, 0, 2, 0, 0, 0, 1, 4, 65, 66, 67], .badLength),
    ] as [([UInt8], RTCPParseError)])
  func `a lying length or count is refused`(_ bytes: [UInt8], _ error: RTCPParseError) {
    var reader = RTCPReader()
    #expect(throws: error) { try reader.next(in: bytes.span) }
  }

  @Test func `no bytes make the reader trap or loop`() {
    var random = SplitMix64(seed: 4)
    for _ in 0..<20_000 {
      var bytes = Self.compound()
      for _ in 0..<Int(random.next() % 6) {
        bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
      }
      bytes.removeLast(Int(random.next() % 8))
      var reader = RTCPReader()
      var packets = 0
      while let packet = try? reader.next(in: bytes.span) {
        packets += 1
        if case .senderReport(_, _, let blocks) = packet {
          for index in 0..<blocks.count { #expect(blocks.block(index, in: bytes.span) != nil) }
        }
        if case .goodbye(_, _, let reason?) = packet { #expect(reason.upperBound <= bytes.count) }
        if case .sourceDescription(_, let name?) = packet { #expect(name.upperBound <= bytes.count) }
      }
      #expect(packets <= TrunklineRTP.Limits.packetsInCompound)
    }
  }

  @Test func `a compound of too many packets is cut off`() throws {
    let datagram = (0..<40).flatMap { _ in [0x80, 201, 0, 1, 0, 0, 0, 5] as [UInt8] }
    var reader = RTCPReader()
    for _ in 0..<TrunklineRTP.Limits.packetsInCompound { #expect(try reader.next(in: datagram.span) != nil) }
    #expect(throws: RTCPParseError.tooManyPackets) { try reader.next(in: datagram.span) }
  }

  @Test func `the round trip of RFC 3550's example comes out`() {
    // RFC 3550 §6.4.1 figure 2: A = 0xb710:8000, DLSR = 0x0005:4000, LSR = 0xb705:2000 → 0x0006:2000 = 6.125 s.
    let block = ReportBlock(
      source: SSRC(raw: 1), fractionLost: 0, cumulativeLost: 0, highestSequence: 0, jitter: 0, lastSenderReport: 0xb705_2000,
      delaySinceLastSenderReport: 0x0005_4000)
    #expect(block.roundTrip(receivedAt: NTPTimestamp(raw: 0xb710_8000 << 16)) == 0x0006_2000)
    #expect(block.roundTrip(receivedAt: NTPTimestamp(raw: 0xb700_8000 << 16)) == nil)
  }
}
