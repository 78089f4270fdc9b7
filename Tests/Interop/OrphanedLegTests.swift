import Foundation
import Testing

extension Interop {
  /// `kill -9` with ringing and running calls, and a restart: sipp, a foreign program, is notified of the end of each leg.
  @Suite(.enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct OrphanedLegTests {
    /// Kills and restarts the gateway; each peer's script expects the end of its leg. (sipp as a caller does not listen on TCP:
    /// that way is tested in SIPDialogs.)
    private func killAndRestart(_ gateway: GatewayUnderTest, _ peers: [Spawned]) async throws {
      gateway.process.signal(SIGKILL)
      try await gateway.process.finish(within: 5)
      #expect(peers.allSatisfy { $0.isRunning }, "a peer knew before anybody told it")
      try await gateway.restart()
      for peer in peers {
        let status = try await peer.finish(within: 5)
        #expect(status == 0, "\(peer.name): \(peer.text.suffix(6_000))")
      }
    }

    @Test func `the carrier's calls: one that rings gets 503, one that runs gets BYE`() async throws {
      let gateway = try await GatewayUnderTest()
      let alice = try await Peers.phone(gateway, ["--answer-after", "0.1"])
      let bob = try await Peers.phone(gateway, user: "bob", device: "d2")
      let connected = try Peers.caller(gateway, "call_until_bye")
      let ringing = try Peers.caller(gateway, "refused_503", to: "+15551230002")
      _ = try await alice.event("call.connected")
      _ = try await bob.event("prepared")
      #expect(await eventually(within: 5) { try gateway.metric("trunkline_invite_to_ringing_seconds_count") == 2 })
      for phone in [alice, bob] {
        phone.signal(SIGKILL)
        try await phone.finish(within: 5)
      }
      try await killAndRestart(gateway, [connected, ringing])
      #expect(await eventually(within: 3) { try gateway.sum("trunkline_sip_orphaned_legs_total") == 2 })
      let records = try await gateway.records(2)
      #expect(gateway.endReasons == ["gatewayRestart", "gatewayRestart"])
      let statuses = records.compactMap { ($0["end"] as? [String: Any])?["sip"] as? Int }
      #expect(statuses.sorted() == [200, 503], "the record says what the carrier heard")
      #expect(await eventually(within: 5) { try gateway.metric("trunkline_sip_legs") == 0 })
      gateway.process.signal(SIGTERM)
      #expect(try await gateway.process.finish(within: 10) == 0)
    }

    @Test(arguments: [("answer", "call.connected"), ("ring_until_cancel", "call.progress")])
    func `our calls: one that rings is cancelled, one that runs gets BYE`(scenario: String, event: String) async throws {
      let gateway = try await GatewayUnderTest()
      let carrier = try await Peers.callee(gateway, scenario)
      let phone = try await Peers.phone(gateway, ["--call", "+15557654321"])
      _ = try await phone.event(event)
      #expect(
        await eventually(within: 5) { try gateway.sum("trunkline_calls", scenario == "answer" ? "connected" : "progress") == 1 })
      phone.signal(SIGKILL)
      try await phone.finish(within: 5)
      try await killAndRestart(gateway, [carrier])
      _ = try await gateway.records(1)
      #expect(gateway.endReasons == ["gatewayRestart"])
      #expect(await eventually(within: 5) { try gateway.metric("trunkline_sip_legs") == 0 })
      gateway.process.signal(SIGTERM)
      #expect(try await gateway.process.finish(within: 10) == 0)
    }
  }
}
