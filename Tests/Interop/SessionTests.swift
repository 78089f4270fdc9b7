import Foundation
import Testing

extension Interop {
  /// sipp as a carrier that does more than call and hang up.
  @Suite(.enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct SessionTests {
    @Test
    func `100rel, session refresh, INFO, hold in every spelling, re-INVITE without SDP and media moved by UPDATE, in one call`()
      async throws
    {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.2", "--calls", "1"])
      let caller = try Peers.caller(gateway, "session")
      #expect(try await caller.finish(within: 25) == 0, "\(caller.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0)
      let record = try #require(try await gateway.records(1).first)
      let times = record["times"] as? [String: Any]
      #expect(times?["heldByTrunk"] != nil && times?["resumedByTrunk"] != nil)
      #expect((record["end"] as? [String: Any])?["reason"] as? String == "remoteHangup")
      try await gateway.finish()
    }

    @Test func `an app's hold is a re-INVITE, and a glare is waited out`() async throws {
      let gateway = try await GatewayUnderTest(trunk: "hold: signal")
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1"])
      let caller = try Peers.caller(gateway, "held")
      _ = try await phone.event("call.connected")
      phone.type("hold")
      _ = await eventually(within: 6) {
        try gateway.sum("trunkline_sip_responses_total", "direction=\"in\",method=\"INVITE\",code=\"200\"") >= 1
      }
      phone.type("resume")
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      phone.type("quit")
      try await phone.finish(within: 10)
      try await gateway.finish()
    }

    @Test func `a carrier that forks: each 183 has its PRACK, the winner's media counts, the late 200 is ended`() async throws {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway)
      let callee = try await Peers.callee(gateway, "forks")
      phone.type("call +15557654321")
      _ = try await phone.event("call.connected")
      phone.type("end")
      #expect(try await callee.finish(within: 20) == 0, "\(callee.text.suffix(6_000))")
      phone.type("quit")
      try await phone.finish(within: 10)
      try await gateway.finish()
    }

    @Test func `a trunk that transfers: the call goes on with the new number, the old leg hears how it went`() async throws {
      let gateway = try await GatewayUnderTest(trunk: "transfers: true")
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1"])
      let target = try await Peers.callee(gateway, "answer")
      let caller = try Peers.caller(gateway, "refer")
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      phone.type("end")
      #expect(try await target.finish(within: 10) == 0, "\(target.text.suffix(6_000))")
      let record = try #require(try await gateway.records(1).first)
      #expect((record["times"] as? [String: Any])?["transferred"] != nil)
      phone.type("quit")
      try await phone.finish(within: 10)
      try await gateway.finish()
    }

    @Test func `a redirect within the trunk's own hosts is followed`() async throws {
      let gateway = try await GatewayUnderTest(trunk: "redirects: follow")
      let phone = try await Peers.phone(gateway)
      let port = try FreePorts.udp()
      let first = try await Peers.callee(gateway, "moved", ["-key", "moved_port", "\(port)"])
      let second = try await Peers.callee(gateway, "answer", port: port)
      phone.type("call +15557654321")
      _ = try await phone.event("call.connected")
      phone.type("end")
      for peer in [first, second] { #expect(try await peer.finish(within: 15) == 0, "\(peer.text.suffix(6_000))") }
      phone.type("quit")
      try await phone.finish(within: 10)
      try await gateway.finish()
    }
  }
}
