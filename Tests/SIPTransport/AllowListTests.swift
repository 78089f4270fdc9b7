import Testing
import TrunklineBytes
import TrunklineSIPDialogs
import TrunklineSIPTransport

@Suite struct AllowListTests {
  @Test func `a server's exact address says most, then the longest listed network, then a server's host`() throws {
    let list = AllowList(
      [("wide", [try #require(IPNetwork("192.0.2.0/24"))]), ("narrow", [try #require(IPNetwork("192.0.2.7"))])],
      servers: [
        ("a", [try #require(SocketAddress("192.0.2.7:5060"))]),
        ("b", [try #require(SocketAddress("192.0.2.7:5062")), try #require(SocketAddress("198.51.100.1:5060"))]),
      ])
    func trunk(_ text: String) -> String? { SocketAddress(text).flatMap { list.trunk(of: $0) } }
    #expect(trunk("192.0.2.7:5060") == "a" && trunk("192.0.2.7:5062") == "b")
    #expect(trunk("192.0.2.7:40000") == "narrow" && trunk("192.0.2.8:5060") == "wide")
    #expect(trunk("198.51.100.1:33000") == "b" && trunk("203.0.113.1:5060") == nil)
    #expect(trunk("[::ffff:192.0.2.7]:5060") == "a")
  }

  @Test func `networks of any length and family are told apart, and equal ones belong to the first`() throws {
    let list = AllowList([
      ("all", [try #require(IPNetwork("0.0.0.0/0"))]), ("a", [try #require(IPNetwork("192.0.2.77/24"))]),
      ("b", [try #require(IPNetwork("192.0.2.0/24")), try #require(IPNetwork("2001:db8:0:1::/65"))]),
    ])
    func trunk(_ text: String) -> String? { IPAddress(text).flatMap { list.trunk(of: $0) } }
    #expect(trunk("192.0.2.1") == "a" && trunk("8.8.8.8") == "all" && trunk("255.255.255.255") == "all")
    #expect(trunk("2001:db8:0:1:7fff::1") == "b" && trunk("2001:db8:0:1:8000::1") == nil && trunk("::1") == nil)
  }

  @Test func `an edge is an edge, whoever else has its address, and listed`() throws {
    let edge = try #require(SocketAddress("192.0.2.9:5060"))
    var list = AllowList([("wide", [try #require(IPNetwork("192.0.2.0/24"))])], servers: [("a", [edge])])
    #expect(list.trunk(of: edge) == "a")
    list.edges = [try #require(IPNetwork("192.0.2.9/32"))]
    #expect(list.trunk(of: edge) == Edge.peer && list.trunk(of: edge.ip) == Edge.peer && list.isListed(edge))
    #expect(list.trunk(of: try #require(SocketAddress("[::ffff:192.0.2.9]:7"))) == Edge.peer)
    #expect(list.trunk(of: try #require(IPAddress("192.0.2.10"))) == "wide")
  }
}
