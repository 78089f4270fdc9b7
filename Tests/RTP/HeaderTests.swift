import Testing
import TrunklineBytes
import TrunklineRTP

@Suite struct HeaderTests {
  /// P, X and two CSRCs: 12 + 8 + 4 + 4 header octets, 3 of payload, 2 of padding.
  static let full: [UInt8] = [
    0xb2, 0xe0, 0xff, 0xfe, 0x01, 0x02, 0x03, 0x04, 0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 1, 0, 0, 0, 2,
    0xbe, 0xde, 0x00, 0x01, 0x10, 0x55, 0, 0, 7, 8, 9, 0, 2,
  ]

  @Test func `every field of a packet with sources, extension and padding is read`() throws {
    let packet = Self.full
    let header = try RTPHeader(parsing: packet.span)
    #expect(header.marker)
    #expect(header.payloadType == 96)
    #expect(header.sequence.raw == 65_534)
    #expect(header.timestamp.raw == 0x0102_0304)
    #expect(header.ssrc.raw == 0xdead_beef)
    #expect(header.csrcCount == 2)
    #expect(header.contributingSource(1, of: packet.span)?.raw == 2)
    #expect(header.contributingSource(2, of: packet.span) == nil)
    #expect(header.extensionProfile == 0xbede && header.extensionOffset == 24 && header.extensionLength == 4)
    #expect(header.length == 28 && header.payloadLength == 3 && header.paddingLength == 2)
    let payload = header.payload(of: packet.span)
    #expect(payload.count == 3 && payload[0] == 7 && payload[2] == 9)
  }

  @Test func `a packet cut anywhere in its header is truncated`() {
    for count in 0..<28 {
      let cut = Array(Self.full[..<count])
      #expect(throws: RTPParseError.truncated) { try RTPHeader(parsing: cut.span) }
    }
  }

  @Test(arguments: [0, 6, 255] as [UInt8])
  func `a lying padding count is refused`(_ count: UInt8) {
    var packet = Self.full
    packet[packet.count - 1] = count
    #expect(throws: RTPParseError.badPadding) { try RTPHeader(parsing: packet.span) }
    #expect(throws: Never.self) { try RTPHeader(parsingProtected: packet.span) }
  }

  @Test func `a lying extension length is truncated`() {
    var packet = Self.full
    packet[22] = 0xff
    packet[23] = 0xff
    #expect(throws: RTPParseError.truncated) { try RTPHeader(parsing: packet.span) }
  }

  @Test(arguments: [0x00, 0x40, 0xc0] as [UInt8])
  func `another version is refused`(_ first: UInt8) {
    var packet = Self.full
    packet[0] = first | packet[0] & 0x3f
    #expect(throws: RTPParseError.badVersion) { try RTPHeader(parsing: packet.span) }
  }

  @Test func `a packet beyond the datagram limit is refused`() {
    let packet = [0x80] + [UInt8](repeating: 0, count: TrunklineRTP.Limits.datagramLength)
    #expect(throws: RTPParseError.tooLong) { try RTPHeader(parsing: packet.span) }
  }

  @Test func `a written header reads back`() throws {
    var random = SplitMix64(seed: 1)
    for _ in 0..<500 {
      let header = RTPHeader(
        payloadType: UInt8(random.next() & 0x7f), marker: random.next() & 1 == 1,
        sequence: SequenceNumber(raw: UInt16(truncatingIfNeeded: random.next())),
        timestamp: RTPTimestamp(raw: UInt32(truncatingIfNeeded: random.next())),
        ssrc: SSRC(raw: UInt32(truncatingIfNeeded: random.next())))
      var packet = [UInt8](repeating: 0xaa, count: 12)
      var span = packet.mutableSpan
      #expect(header.write(into: &span) == 12)
      #expect(try RTPHeader(parsing: packet.span) == header)
    }
    var short = [UInt8](repeating: 0, count: 11)
    var span = short.mutableSpan
    let header = RTPHeader(payloadType: 0, marker: false, sequence: .init(raw: 0), timestamp: .init(raw: 0), ssrc: .init(raw: 0))
    #expect(header.write(into: &span) == nil)
  }

  @Test func `no bytes make a parser trap, and what it returns lies inside the datagram`() {
    var random = SplitMix64(seed: 2)
    for _ in 0..<20_000 {
      let count = Int(random.next() % 80)
      var packet = (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      if count > 0, random.next() % 4 > 0 { packet[0] = 0x80 | packet[0] & 0x3f }
      guard let header = try? RTPHeader(parsing: packet.span) else { continue }
      #expect(header.length + header.payloadLength + header.paddingLength == count)
      #expect(header.payload(of: packet.span).count == header.payloadLength)
      #expect(header.extensionOffset + header.extensionLength <= header.length)
    }
  }

  @Test(
    arguments: [
      ([0x00, 0x01], PacketKind.stun), ([0x03], .stun), ([0x10], .zrtp), ([0x16, 0xfe], .dtls), ([0x3f], .dtls),
      ([0x40], .turnChannel),
      ([0x80, 0x60], .rtp), ([0xbf, 0xe0], .rtp), ([0x80, 200], .rtcp), ([0x81, 223], .rtcp), ([0x80, 191], .rtp),
      ([0x80, 224], .rtp),
      ([0x80], .rtp), ([], .unknown), ([0x04], .unknown), ([0xc0], .unknown), ([0x50], .unknown),
    ] as [([UInt8], PacketKind)])
  func `the first bytes tell the protocol`(_ bytes: [UInt8], _ kind: PacketKind) {
    #expect(PacketKind(bytes.span) == kind)
  }

  @Test func `every pair of first octets is the kind that RFC 7983 §7 and RFC 5761 §4 say`() {
    for first in UInt8.min...UInt8.max {
      for second in UInt8.min...UInt8.max {
        let expected: PacketKind =
          switch first {
          case 0...3: .stun
          case 16...19: .zrtp
          case 20...63: .dtls
          case 64...79: .turnChannel
          case 128...191: (192...223).contains(second) ? .rtcp : .rtp
          default: .unknown
          }
        if PacketKind([first, second].span) != expected { Issue.record("\(first) \(second)") }
      }
      #expect(PacketKind([first].span) != .rtcp, "an octet alone is no RTCP")
    }
    #expect(PacketKind([UInt8]().span) == .unknown)
  }
}
