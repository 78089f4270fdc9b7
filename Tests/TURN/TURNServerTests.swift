import Testing
import TrunklineBytes

@testable import TrunklineTURN

/// URIs of RFC 7065.
@Suite struct TURNServerTests {
  @Test(arguments: [
    ("turn:turn.example.com", "turn.example.com", 3_478, TURNServer.Transport.udp),
    ("turn:turn.example.com:3479?transport=udp", "turn.example.com", 3_479, .udp),
    ("turn:192.0.2.1?transport=tcp", "192.0.2.1", 3_478, .tcp),
    ("TURNS:turn.example.com", "turn.example.com", 5_349, .tls),
    ("turns:turn.example.com:443?transport=tcp", "turn.example.com", 443, .tls),
    ("turn:[2001:db8::1]:80?transport=TCP", "2001:db8::1", 80, .tcp), ("turns:[2001:db8::1]", "2001:db8::1", 5_349, .tls),
  ])
  func `a URI says host, port and transport`(url: String, host: String, port: Int, transport: TURNServer.Transport) throws {
    let server = try #require(TURNServer(url: url, username: "u", password: "p"))
    #expect(server.host == host && server.port == port && server.transport == transport)
    #expect(!"\(server)".contains("\"p\""))
  }

  @Test(arguments: [
    "", "turn", "turn:", "stun:turn.example.com", "turn:host:0", "turn:host:65536", "turn:host:x", "turn:host:",
    "turn:[2001:db8::1",
    "turn:[192.0.2.1]", "turn:[]", "turns:host?transport=udp", "turn:host?transport=sctp", "turn:host?x", "turn:a b", "turn:a/b",
    "turn:2001:db8::1",
    "turn:\u{e4}.example", "turn:" + String(repeating: "a", count: 254),
  ])
  func `what is none, or what we have no transport for, is nil`(url: String) {
    #expect(TURNServer(url: url, username: "u", password: "p") == nil)
  }

  @Test func `credentials that fit no message are none`() {
    #expect(TURNServer(url: "turn:h", username: String(repeating: "u", count: 509), password: "p") == nil)
    #expect(TURNServer(url: "turn:h", username: "", password: "p") == nil)
  }
}
