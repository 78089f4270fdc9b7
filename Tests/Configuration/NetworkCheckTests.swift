import Configuration
import Testing

/// Addresses at which no peer can reach the gateway.
@Suite struct NetworkCheckTests {
  private let folder: TemporaryFolder
  init() throws { folder = try TemporaryFolder() }

  private func warnings(
    udp: String = "10.0.0.5:5060", media: String = "10.0.0.5", trunk: String = "peers: [ 203.0.113.0/24 ]", more: String = ""
  ) throws -> [String] {
    let text = """
      listen: { sip: { udp: \(udp) } }
      media: { addresses: [ \(media) ] }
      auth: { jwt: { key_file: jwt.key } }
      trunks: [ { name: t, \(trunk) } ]
      \(more)
      """
    return try folder.parse(text).warnings.map(\.message)
  }

  @Test func `an outside carrier that would get a private address causes a warning, for SIP and for media`() throws {
    let found = try warnings()
    #expect(found.count == 2 && found[0].contains("203.0.113.0 is outside local_networks and would get 10.0.0.5 for SIP"))
    #expect(found[1].contains("would get 10.0.0.5 for media"))
    #expect(try warnings(trunk: "uri: \"sip:203.0.113.9\"").count == 2)
    #expect(try warnings(udp: "{ address: 10.0.0.5:5060, advertise: 192.168.0.1 }").count == 2)
    #expect(try warnings(udp: "\"[fd00::5]:5060\"", media: "\"fd00::5\"", trunk: "peers: [ \"2001:db8::/32\" ]").count == 2)
  }

  @Test(arguments: [
    (
      udp: "{ address: 10.0.0.5:5060, advertise: 198.51.100.7 }", media: "{ bind: 10.0.0.5, advertise: 198.51.100.7 }",
      trunk: "peers: [ 203.0.113.0/24 ]"
    ),
    (
      "{ address: 10.0.0.5:5060, advertise: sip.example.com }", "{ bind: 10.0.0.5, advertise: sip.example.com }",
      "peers: [ 203.0.113.0/24 ]"
    ),
    ("10.0.0.5:5060", "10.0.0.5", "peers: [ 203.0.113.0/24 ], advertise: 198.51.100.7"),
    ("10.0.0.5:5060", "10.0.0.5", "peers: [ 10.9.0.0/16 ]"),
    ("198.51.100.7:5060", "198.51.100.7", "peers: [ 203.0.113.0/24 ]"),
    ("198.51.100.7:5060", "[ 10.0.0.5, 198.51.100.7 ]", "peers: [ 203.0.113.0/24 ]"),
  ]) func `a peer that gets a reachable address causes no warning`(udp: String, media: String, trunk: String) throws {
    let list = media.hasPrefix("[") ? String(media.dropFirst().dropLast()) : media
    #expect(try warnings(udp: udp, media: list, trunk: trunk) == [])
  }

  @Test func `a peer in local_networks knows the private address`() throws {
    #expect(try warnings(more: "local_networks: [ 203.0.113.0/24 ]") == [])
  }

  @Test func `an address that the machine does not have is warned of by --check alone`() throws {
    let text = """
      listen: { sip: { udp: 192.0.2.77:5060 } }
      media: { addresses: [ 127.0.0.1, 192.0.2.78 ] }
      auth: { jwt: { key_file: jwt.key } }
      """
    #expect(folder.problems(text) == [])
    let found = folder.checked(text)
    #expect(
      found.count == 2 && found[0].contains("warning: listen.sip.udp: 192.0.2.77 is not an address of this machine, which has"))
    #expect(found[1].contains("warning: media.addresses[1]: 192.0.2.78 is not an address"))
  }

  @Test(arguments: [
    ("udp: 127.0.0.1:5060", "uri: \"sip:[2001:db8::1]\"", "no IPv6 listener of listen.sip reaches 2001:db8::1"),
    ("udp: \"[::1]:5060\"", "uri: \"sip:127.0.0.1\"", "no IPv4 listener of listen.sip reaches 127.0.0.1"),
    ("tcp: 127.0.0.1:5060", "uri: \"sip:127.0.0.1\"", "no UDP listener of listen.sip reaches 127.0.0.1: add one"),
    (
      "udp: \"[::1]:5060\", tcp: 127.0.0.1:5060", "uri: \"sip:127.0.0.1;transport=udp\"",
      "no IPv4 listener of listen.sip.udp reaches 127.0.0.1"
    ),
    ("udp: 127.0.0.1:5060", "peers: [ \"2001:db8::/32\" ]", "none of its peers reaches a listener"),
  ])
  func `a trunk that no listener reaches is refused by --check alone`(listener: String, trunk: String, message: String) throws {
    let text = """
      listen: { sip: { \(listener) } }
      auth: { jwt: { key_file: jwt.key } }
      trunks: [ { name: t, \(trunk) } ]
      """
    #expect(folder.problems(text) == [])
    let found = folder.checked(text).filter { !$0.contains(": warning: ") }
    #expect(found.count == 1 && found[0].contains("gateway.yaml:3:") && found[0].contains(message), "\(found)")
  }

  @Test(arguments: [
    ("udp: 127.0.0.1:5060, tcp: \"[::1]:5060\"", "uri: \"sip:127.0.0.1\""),
    ("udp: 127.0.0.1:5060", "peers: [ \"fd00::/8\", 127.0.0.1 ]"),
    ("udp: 127.0.0.1:5060", "uri: \"sip:carrier.example\""),
    ("udp: \"[::]:5060\"", "uri: \"sip:[::1]:5070\", peers: [ 192.0.2.0/24 ]"),
  ])
  func `a trunk that one listener reaches is accepted`(listener: String, trunk: String) {
    let text = """
      listen: { sip: { \(listener) } }
      auth: { jwt: { key_file: jwt.key } }
      trunks: [ { name: t, \(trunk) } ]
      """
    #expect(folder.checked(text) == [])
  }
}
