import Foundation
import Testing

extension Interop {
  /// Who is no trunk's peer, and what can be had from us without a password.
  @Suite(.enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct StrangerTests {
    @Test func `a stranger that wants every connection of a trunk for anybody gets four, and nobody else is kept out`()
      async throws
    {
      let gateway = try await GatewayUnderTest([
        "trunks: [ { name: carrier, peers: [127.0.0.1] }, { name: pbx, peers: any, peer_auth: { username: u, password_file: password } } ]",
        "routes: { inbound: [ { trunk: carrier, to: users } ] }",
      ])
      let strangers = try Peers.python(
        "strangers", "guest_flood.py", ["--port", "\(gateway.sip)", "--password", "s3cret"], gateway)
      let flood = try await strangers.event("flood", within: 30)
      #expect(flood["held"] as? Int ?? 64 <= 4 && flood["closed"] as? Int ?? 0 >= 60, "\(flood)")
      #expect(try await strangers.event("guest")["codes"] as? [Int] == [401, 200])
      #expect(try await strangers.event("listed")["code"] as? Int == 200)
      #expect(try await strangers.event("hello")["closed"] as? Bool == true)
      #expect(try gateway.sum("trunkline_sip_guest_connections") <= 4, "who has authenticated is no guest")
      #expect(
        try gateway.sum("trunkline_sip_dropped_total", "guest_limit")
          + gateway.sum("trunkline_sip_dropped_total", "connection_rate") >= 60)
      #expect(try gateway.sum("trunkline_sip_dropped_total", "tls_on_plain") == 1)
      strangers.signal(SIGTERM)
      _ = try? await strangers.finish(within: 5)
      try await gateway.finish()
    }
  }
}
