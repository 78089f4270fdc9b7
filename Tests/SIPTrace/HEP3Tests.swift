import Testing
import TrunklineBytes
import TrunklineSIPDialogs

@testable import TrunklineSIPTrace

@Suite struct HEP3Tests {
  private let bytes = Array("OPTIONS sip:a SIP/2.0\r\nCall-ID: c1\r\n\r\n".utf8)

  private func message(_ local: String, _ remote: String, _ transport: TransportProtocol = .udp, isOurs: Bool = true) throws
    -> TracedMessage
  {
    TracedMessage(
      bytes: bytes,
      flow: Flow(transport: transport, local: try #require(SocketAddress(local)), remote: try #require(SocketAddress(remote))),
      isOurs: isOurs, trunk: "carrier", at: 1_790_000_000_123_456)
  }

  /// Type and value of each chunk.
  private func chunks(_ packet: [UInt8]) -> [UInt16: [UInt8]] {
    var out: [UInt16: [UInt8]] = [:]
    var at = 6
    while at + 6 <= packet.count {
      let length = Int(packet[at + 4]) << 8 | Int(packet[at + 5])
      out[UInt16(packet[at + 2]) << 8 | UInt16(packet[at + 3])] = Array(packet[(at + 6)..<(at + length)])
      at += length
    }
    return out
  }

  @Test func `a message of ours over UDP: who, when, which agent, and what`() throws {
    let packet = try #require(
      HEP3.packet(message("192.0.2.1:5060", "198.51.100.7:5070"), payload: bytes, captureID: 2_001, key: Array("k3y".utf8)))
    #expect(Array(packet.prefix(4)) == Array("HEP3".utf8) && Int(packet[4]) << 8 | Int(packet[5]) == packet.count)
    let found = chunks(packet)
    #expect(found[1] == [2] && found[2] == [17] && found[3] == [192, 0, 2, 1] && found[4] == [198, 51, 100, 7])
    #expect(found[7] == [0x13, 0xc4] && found[8] == [0x13, 0xce])
    #expect(found[9] == [0x6a, 0xb1, 0x3b, 0x80] && found[10] == [0, 1, 0xe2, 0x40])
    #expect(found[11] == [1] && found[12] == [0, 0, 0x07, 0xd1] && found[14] == Array("k3y".utf8))
    #expect(found[15] == bytes && found[17] == Array("c1".utf8))
  }

  @Test func `one that came by TLS over IPv6 turns source and destination round`() throws {
    let packet = try #require(
      HEP3.packet(
        message("[2001:db8::1]:5061", "[2001:db8::2]:40000", .tls, isOurs: false), payload: bytes, captureID: 1, key: []))
    let found = chunks(packet)
    #expect(found[1] == [10] && found[2] == [6] && found[5]?.last == 2 && found[6]?.last == 1)
    #expect(found[7] == [0x9c, 0x40] && found[8] == [0x13, 0xc5] && found[14] == nil && found[3] == nil)
  }

  @Test func `what no datagram holds is not sent`() throws {
    let long = [UInt8](repeating: 65, count: 70_000)
    #expect(HEP3.packet(try message("192.0.2.1:5060", "192.0.2.2:5060"), payload: long, captureID: 1, key: []) == nil)
  }
}
