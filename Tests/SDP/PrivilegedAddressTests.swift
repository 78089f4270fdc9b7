import Testing
import TrunklineBytes

@testable import TrunklineSDP

@Suite struct PrivilegedAddressTests {
  private func media(_ address: String, local: String = "198.51.100.9:4000", refuses: Bool = true) -> Bool {
    var negotiation = TrunkNegotiation(local: SocketAddress(local)!, sessionID: 1)
    negotiation.refusesLocal = refuses
    let family = address.contains(":") ? "IP6" : "IP4"
    let sdp = "v=0\r\no=- 1 1 IN \(family) \(address)\r\ns=-\r\nc=IN \(family) \(address)\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n"
    return (try? negotiation.answer(to: sdp)) != nil
  }

  @Test(arguments: [
    "127.0.0.1", "127.8.9.1", "169.254.169.254", "169.254.0.1", "224.0.0.1", "239.1.2.3", "255.255.255.255", "0.1.2.3",
    "100.100.100.200",
    "192.0.0.192", "168.63.129.16", "198.51.100.9",
  ])
  func `a description makes us send nothing to this machine, its link or a metadata service`(address: String) {
    #expect(!media(address))
  }

  @Test(arguments: [
    "::1", "fe80::1", "ff02::1", "fd00:ec2::254", "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::127.0.0.1", "2001:db8::9",
  ])
  func `nor in IPv6, in whatever disguise`(address: String) {
    #expect(!media(address, local: "[2001:db8::9]:4000"))
  }

  @Test func `other machines are fine, and 0.0.0.0 is hold; on loopback everything is local`() {
    #expect(media("203.0.113.7") && media("10.0.0.7") && media("192.168.1.7") && media("0.0.0.0"))
    #expect(media("2001:db8::7", local: "[2001:db8::9]:4000"))
    #expect(media("127.0.0.1", local: "127.0.0.1:4000", refuses: false))
  }

  @Test(arguments: ["127.0.0.1", "169.254.169.254", "224.0.0.1", "198.51.100.9", "198.51.100.10"])
  func `nor does a=rtcp, nor another address of ours`(address: String) throws {
    var negotiation = TrunkNegotiation(local: SocketAddress("198.51.100.9:4000")!, sessionID: 1)
    (negotiation.refusesLocal, negotiation.ownAddresses) = (true, [IPAddress("198.51.100.10")!])
    let (head, audio) = ("v=0\r\no=- 1 1 IN IP4 203.0.113.7\r\ns=-\r\n", "t=0 0\r\nm=audio 4000 RTP/AVP 0\r\n")
    let rtcp = head + "c=IN IP4 203.0.113.7\r\n" + audio + "a=rtcp:5060 IN IP4 \(address)\r\n"
    let media = try negotiation.answer(to: rtcp).media
    #expect(media.control == nil, "RTCP goes to the port beside RTP instead")
    #expect(throws: NegotiationError.self) { try negotiation.answer(to: head + "c=IN IP4 \(address)\r\n" + audio) }
  }

  /// Where a description contains an address.
  enum Position: CaseIterable, Sendable { case session, media, both, secondSection, attribute }
  /// How a description arrives.
  enum Way: CaseIterable, Sendable { case offer, reoffer, answer, reanswer }
  static let hosts = [
    "127.0.0.1", "127.255.255.254", "0.1.2.3", "169.254.169.254", "224.0.0.251", "239.255.255.250", "255.255.255.255",
    "100.100.100.200", "192.0.0.192", "168.63.129.16", "198.51.100.9", "198.51.100.10",
  ]
  static let hosts6 = [
    "::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "fe80::1",
    "ff02::1",
    "fd00:ec2::254", "::ffff:198.51.100.9",
  ]

  @Test(arguments: Position.allCases, Way.allCases)
  func `no line of a description, first or later, makes us send to an address of ours`(
    position: Position, way: Way
  ) throws {
    for host in Self.hosts + Self.hosts6 {
      var negotiation = TrunkNegotiation(local: SocketAddress("198.51.100.9:4000")!, sessionID: 1)
      (negotiation.refusesLocal, negotiation.ownAddresses) = (true, [IPAddress("198.51.100.10")!])
      let good = Self.description("203.0.113.7", .session)
      let bad = Self.description(host, position)
      var agreed: TrunkMedia?
      switch way {
      case .offer: agreed = try? negotiation.answer(to: bad).media
      case .reoffer:
        _ = try negotiation.answer(to: good)
        agreed = try? negotiation.answer(to: bad).media
      case .answer:
        _ = negotiation.makeOffer()
        agreed = try? negotiation.apply(answer: bad)
      case .reanswer:
        _ = try negotiation.answer(to: good)
        _ = negotiation.makeOffer(direction: .sendOnly)
        agreed = try? negotiation.apply(answer: bad)
      }
      for media in [agreed, negotiation.agreed].compactMap(\.self) {
        #expect(media.remote.ip == IPAddress("203.0.113.7")!, "\(host) \(position) \(way)")
        #expect(media.control.map { $0.ip == media.remote.ip } ?? true, "\(host) \(position) \(way)")
      }
      // a refused description leaves the leg as it was
      if way == .reoffer, agreed == nil { #expect(negotiation.agreed?.remote.ip == IPAddress("203.0.113.7")!) }
    }
  }

  private static func description(_ host: String, _ position: Position) -> String {
    let (bad, good) = ("IN \(host.contains(":") ? "IP6" : "IP4") \(host)", "IN IP4 203.0.113.7")
    var lines = ["v=0", "o=- 1 1 \(good)", "s=-"]
    lines.append("c=\(position == .session || position == .both ? bad : good)")
    lines += ["t=0 0"]
    if position == .secondSection { lines += ["m=audio 4002 RTP/AVP 0", "c=\(bad)"] }
    lines.append("m=audio 4000 RTP/AVP 0")
    if position == .media || position == .both { lines.append("c=\(bad)") }
    if position == .attribute { lines += ["a=rtcp:5060 \(bad)", "a=candidate:1 1 UDP 2130706431 \(host) 5060 typ host"] }
    return lines.map { $0 + "\r\n" }.joined()
  }

  @Test(arguments: [
    "localhost", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.1.nip.io", "127.0.0.1/127", "[::1]", "::1%lo", "",
    "metadata.google.internal",
  ])
  func `what is no address is none: nobody looks it up, and nothing is sent`(host: String) {
    #expect(!media(host))
  }
}
