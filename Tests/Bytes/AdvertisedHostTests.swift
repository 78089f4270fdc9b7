import Testing
import TrunklineBytes

@Suite struct AdvertisedHostTests {
  @Test(
    arguments: [
      ("203.0.113.5", "203.0.113.5", nil), ("203.0.113.5:5070", "203.0.113.5", 5070), ("2001:db8::5", "[2001:db8::5]", nil),
      ("[2001:db8::5]", "[2001:db8::5]", nil), ("[2001:db8::5]:5070", "[2001:db8::5]", 5070),
      ("sip.example.com", "sip.example.com", nil),
      ("sip.example.com:5070", "sip.example.com", 5070),
    ] as [(String, String, UInt16?)])
  func `an address or a name, with a port or without`(text: String, host: String, port: UInt16?) throws {
    let found = try #require(AdvertisedHost(text))
    #expect(found.host == host && found.port == port)
    #expect((found.address == nil) == text.hasPrefix("sip"))
  }

  @Test(arguments: ["", ":5060", "a b", "sip.example.com:0", "sip.example.com:x", "a:b:c", "sip:host", "-x", "host:70000"])
  func `everything else is refused`(text: String) { #expect(AdvertisedHost(text) == nil) }

  @Test func `local networks hold their hosts and this machine`() throws {
    let networks = LocalNetworks([try #require(IPNetwork("10.9.0.0/16"))])
    #expect(
      networks.contains(IPAddress(10, 9, 3, 4)) && networks.contains(.loopback) && !networks.contains(IPAddress(10, 8, 0, 1)))
    #expect(try networks.contains(#require(IPAddress("::ffff:10.9.0.1"))))
    #expect(IPNetwork(IPAddress(10, 9, 3, 4), prefixLength: 16).description == "10.9.0.0/16")
  }
}
