import Configuration
import Testing
import TrunklineBytes
import TrunklineSIPDialogs

/// Our addresses for peers, and the addresses of carriers.
@Suite struct AdvertisingTests {
  private let key = "\nauth: { jwt: { key_file: jwt.key } }"

  @Test func `listeners, media and trunks say what they advertise, also from the environment`() throws {
    let settings = try TemporaryFolder().parse(
      """
      listen:
        sip:
          udp: { address: 10.9.0.5:5060, advertise: env:PUBLIC_IP }
          tcp: [ 10.9.0.5:5060, { address: "10.9.0.6:5060", advertise: "sip.example.com:5070" } ]
      local_networks: [ auto, 10.9.0.0/16 ]
      media: { addresses: [ { bind: auto, advertise: env:PUBLIC_IP } ] }
      trunks:
        - { name: vpn, uri: "sip:10.8.0.1", advertise: 10.8.0.5, called: to, from: { user: acct, domain: voip.example }, contact_user: gw }
      """ + key, environment: ["PUBLIC_IP": "203.0.113.5"])
    let address = try #require(SocketAddress("10.9.0.5:5060"))
    let publicAddress = try #require(AdvertisedHost("203.0.113.5"))
    #expect(settings.listen.sipUDP == [address] && settings.listen.sipTCP.count == 2)
    #expect(settings.listen.advertised.first == .init(.udp, address, as: publicAddress))
    #expect(settings.listen.advertised.last?.host == AdvertisedHost("sip.example.com:5070"))
    #expect(settings.media.addresses == [.automatic(advertise: publicAddress)])
    #expect(settings.localNetworks == [.interfaces, .network(try #require(IPNetwork("10.9.0.0/16")))])
    let rules = try #require(settings.trunks.first).routing.rules
    #expect(rules.advertised == AdvertisedHost("10.8.0.5") && rules.called == [.to] && rules.contactUser == "gw")
    #expect(rules.fromUser == "acct" && rules.fromDomain == "voip.example")
  }

  @Test func `several accounts at one carrier may share its addresses, and trunks that take any peer`() throws {
    let folder = try TemporaryFolder(["jwt.key": "0123456789abcdef0123456789abcdef\n", "password": "secret\n"])
    func account(_ user: String) -> String { "auth: { username: \(user), password_file: password }" }
    let settings = try folder.parse(
      """
      trunks:
        - { name: one, uri: "sip:carrier.example", \(account("u1")), register: true }
        - { name: two, uri: "sip:carrier.example", \(account("u2")), register: true }
        - { name: any-1, peers: any, peer_\(account("a")) }
        - { name: any-2, peers: any, peer_\(account("b")), realm: other }
      """ + key)
    #expect(settings.trunks.map(\.routing.rules.peersKnownAs) == [nil, "one", nil, "any-1"])
    #expect(settings.trunks.map(\.routing.rules.contactUser) == ["u1", "u2", "trunkline", "trunkline"])
    let problems = folder.problems(
      """
      trunks:
        - { name: one, uri: "sip:carrier.example", \(account("u1")), register: true }
        - { name: two, uri: "sip:carrier.example", \(account("u1")), register: true }
        - { name: any-1, peers: any, peer_\(account("a")) }
        - { name: any-2, peers: any, peer_\(account("a")) }
      """ + key)
    #expect(problems.count == 2 && problems[0].contains("contact_user") && problems[1].contains("another username"))
  }

  @Test func `an outbound proxy is where requests go, the uri what they are addressed to`() throws {
    let settings = try TemporaryFolder().parse(
      """
      trunks: [ { name: a, uri: "sip:voip.example", outbound_proxy: "sip:proxy.example:5070;transport=tcp", peers: [ edge.example ] } ]
      """ + key)
    let trunk = try #require(settings.trunks.first?.routing)
    #expect(trunk.settings?.domain == "voip.example" && trunk.settings?.server.host == "proxy.example")
    #expect(trunk.settings?.outboundProxy == "sip:proxy.example:5070;transport=tcp" && trunk.peerNames == ["edge.example"])
  }

  @Test(arguments: [
    ("listen: { sip: { udp: { advertise: 192.0.2.1 } } }", "listen.sip.udp[0]: address is missing"),
    (
      "listen: { sip: { udp: { address: 127.0.0.1:5060, advertise: \"2001:db8::1\" } } }",
      "listen.sip.udp[0].advertise: [2001:db8::1] is not of the address family that address has"
    ),
    (
      "listen: { sip: { udp: { address: 127.0.0.1:5060, advertise: env:NOT_THERE } } }",
      "listen.sip.udp[0].advertise: the environment has no NOT_THERE, or it is empty"
    ),
    (
      "media: { addresses: { bind: 10.0.0.1, advertise: \"192.0.2.1:4000\" } }",
      "media.addresses[0].advertise: expected an address or a host name (or env:NAME), got \"192.0.2.1:4000\""
    ),
    ("trunks: [ { name: a } ]", "trunks[0]: needs peers (for calls from the trunk) or uri (for calls to it)"),
    (
      "trunks: [ { name: a, peers: 10.0.0.1, called: from } ]",
      "trunks[0].called[0]: expected request_uri, to or p_called_party_id, got \"from\""
    ),
  ]) func `a mistake says what is expected`(text: String, message: String) throws {
    let problems = try TemporaryFolder().problems(text + key)
    #expect(problems.count == 1 && problems.first?.hasSuffix(message) == true, "\(problems)")
  }
}
