import Testing
import TrunklineBytes

@Suite struct AddressTests {
  @Test(arguments: ["192.0.2.1:5060", "[2001:db8::1]:5060", "[::]:1", "[::ffff:c000:201]:9"])
  func `a socket address prints as it was parsed`(_ text: String) {
    #expect(SocketAddress(text)?.description == text)
  }

  @Test(arguments: [
    "", ":", "1.2.3:5", "1.2.3.4", "1.2.3.4:70000", "[1.2.3.4]:5", "::1:5", "[::1:5", "[1::2::3]:5", "1.2.3.256:1", "+1.2.3.4:1",
  ])
  func `what is not an address and a port is refused`(_ text: String) {
    #expect(SocketAddress(text) == nil)
  }

  @Test func `a network contains its addresses and no other`() throws {
    let loopback = try #require(IPNetwork("127.0.0.0/8"))
    #expect(loopback.contains(IPAddress(127, 255, 0, 1)))
    #expect(!loopback.contains(IPAddress(128, 0, 0, 1)))
    let all = try #require(IPNetwork("0.0.0.0/0"))
    #expect(all.contains(IPAddress(8, 8, 8, 8)))
    let six = try #require(IPNetwork("2001:db8::/65"))
    #expect(six.contains(try #require(IPAddress("2001:db8::7fff:0:0:1"))))
    #expect(!six.contains(try #require(IPAddress("2001:db8::8000:0:0:1"))))
    #expect(loopback.contains(try #require(IPAddress("::ffff:127.0.0.1"))))
  }

  @Test(arguments: [
    "8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2a00:1450::1", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1",
  ])
  func `an address of the internet is public`(text: String) throws { #expect(try #require(IPAddress(text)).isPublic) }

  @Test(arguments: [
    "0.0.0.0", "10.0.0.1", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.2.1",
    "192.168.1.1",
    "198.18.0.1", "224.0.0.1", "255.255.255.255", "100.100.100.200", "168.63.129.16", "::", "::1", "fe80::1", "fc00::1",
    "fd00:ec2::254", "ff02::1", "::ffff:10.0.0.1", "::10.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::1", "2002:a00:1::1",
    "2001:db8::1", "fec0::1", "2001::1", "100::1",
  ]) func `an address inside, in whatever spelling, is not public`(text: String) throws {
    #expect(try !#require(IPAddress(text)).isPublic)
  }

  @Test func `bytes and text of an address agree`() throws {
    for text in ["10.1.2.3", "2001:db8::1:0:0:1", "::1", "fe80::1"] {
      let address = try #require(IPAddress(text))
      #expect(IPAddress(bytes: address.bytes) == address)
      #expect(address.description == text)
    }
  }

  @Test func `an identifier is a version 4 UUID in lower case, read in either case`() throws {
    let id = Identifier(random: .seeded(1))
    #expect(Identifier(id.description.uppercased()) == id)
    #expect(Array(id.description)[14] == "4")
    #expect(["8", "9", "a", "b"].contains(Array(id.description)[19]))
    #expect(Identifier("not-a-uuid") == nil)
  }
}
