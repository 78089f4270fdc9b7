import Foundation
import Testing

extension Interop {
  /// Webhooks that name the users of a call, and the parts of the configuration that SIGHUP applies.
  @Suite(.enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct RouteHookTests {
    private func route(_ url: String, _ more: String = "") -> String {
      "routes: { inbound: [ { trunk: carrier, route: { webhook: \"\(url)\", key_file: password } } ]\(more) }"
    }
    /// No device is registered: the final response shows the user of the call.
    private let users =
      "users: [ { id: alice, numbers: [\"+15551230001\"], diversions: { unreached: { code: 410 } } }, "
      + "{ id: bob, numbers: [\"+15551230002\"], diversions: { unreached: { code: 404 } } } ]"

    private func hook(_ gateway: GatewayUnderTest, _ modes: String, port: UInt16, _ more: [String] = []) async throws -> Spawned {
      let hook = try Peers.python(
        "webhook", "webhook_server.py", ["--port", "\(port)", "--mode", modes, "--key", "s3cret"] + more, gateway)
      _ = try await hook.event("listening")
      return hook
    }

    /// Makes one call; returns its user.
    private func calledUser(_ gateway: GatewayUnderTest) async throws -> String? {
      let count = gateway.records.count
      let caller = try Spawned(
        "caller", Surroundings.lab,
        [
          "trunk", "--gateway", "127.0.0.1:\(gateway.sip)", "--listen", "127.0.0.1:\(try FreePorts.both())", "--events", "--call",
          "+15551230001",
        ], in: gateway.folder)
      #expect(try await caller.finish(within: 15) != 0, "\(caller.text)")
      let record = try #require(try await gateway.records(count + 1).last)
      let sip = (record["end"] as? [String: Any])?["sip"] as? Int
      #expect(sip == (record["user"] as? String == "bob" ? 404 : 410), "\(record)")
      gateway.note(invites: [record["sipCallId"] as? String ?? ""])
      return record["user"] as? String
    }

    @Test
    func
      `a webhook answers rightly, nonsense, elsewhere, with an error, too much, slowly, never: the fallback rule, and why in the log`()
      async throws
    {
      let port = try FreePorts.tcp()
      let gateway = try await GatewayUnderTest([users, route("http://127.0.0.1:\(port)/route")])
      let rows = [
        ("right", "bob", ""), ("nonsense", "alice", "no answer such as"),
        ("redirect", "alice", "status 302: redirects are not followed"),
        ("404", "alice", "status 404"), ("large", "alice", "longer than 8192 bytes"), ("500", "alice", "status 500"),
        ("slow", "alice", ""), ("never", "alice", ""),
      ]
      let hook = try await hook(gateway, rows.map(\.0).joined(separator: ","), port: port)
      for (mode, user, why) in rows {
        #expect(try await calledUser(gateway) == user, "\(mode)")
        if !why.isEmpty { #expect(await gateway.logs(why), "\(mode): \(gateway.process.text.suffix(6_000))") }
      }
      let asked = hook.events.filter { $0["event"] as? String == "asked" }
      #expect(
        asked.count == rows.count && asked.allSatisfy { $0["path"] as? String == "/route" }, "a redirect was followed: \(asked)")
      for question in asked {
        #expect(
          question["signed"] as? Bool == true && question["from"] as? String == "+15557770001"
            && question["to"] as? String == "+15551230001")
      }
      for (outcome, count) in [("answered", 1.0), ("nonsense", 2), ("refused", 3)] {
        #expect(try gateway.sum("trunkline_webhooks_total", "outcome=\"\(outcome)\"") == count, "\(outcome)")
      }
      hook.signal(SIGKILL)
      _ = try await hook.finish(within: 5)
      try await gateway.finish()
    }

    @Test func `a webhook's late answer rings no device: the fallback's device rings once, the other not at all`() async throws {
      let port = try FreePorts.tcp()
      let gateway = try await GatewayUnderTest([route("http://127.0.0.1:\(port)/route")])
      let hook = try await hook(gateway, "slow,right", port: port)
      let alice = try await Peers.phone(gateway, ["--trace"])
      let bob = try await Peers.phone(gateway, user: "bob", device: "b1", ["--trace"])
      for (number, ringing, quiet) in [(1, alice, bob), (2, bob, alice)] {
        let caller = try Peers.caller(gateway, "cancel", ["-d", number == 1 ? "2000" : "200"])
        #expect(try await caller.finish(within: 15) == 0, "\(caller.text.suffix(6_000))")
        #expect(ringing.wire.count { $0 == "< call.offer" } == 1, "\(ringing.wire)")
        #expect(quiet.wire.count { $0 == "< call.offer" } == number - 1, "\(quiet.wire)")
      }
      #expect(alice.wire.contains("< call.update"), "the name is of use all the same: \(alice.wire)")
      #expect(gateway.endReasons == ["callerCancelled", "callerCancelled"])
      hook.signal(SIGKILL)
      _ = try await hook.finish(within: 5)
      for phone in [alice, bob] {
        phone.type("quit")
        try await phone.finish(within: 10)
      }
      try await gateway.finish()
    }

    @Test func `SIGHUP applies push.gateway and webhook_ca, and names what waits for a restart`() async throws {
      let service = try await PushServiceUnderTest(.h2)
      let port = try FreePorts.tcp()
      let url = "https://127.0.0.1:\(port)/route"
      let gateway = try await service.gateway([users, route(url)])
      let hook = try await hook(
        gateway, "right", port: port, ["--tls", service.folder + "/cert.pem," + service.folder + "/key.pem"])
      #expect(try await calledUser(gateway) == "alice", "a certificate that nobody vouches for")
      try await gateway.use(route(url, ", webhook_ca: \"\(service.folder)/cert.pem\""))
      #expect(try await calledUser(gateway) == "bob")

      let app = try await service.killedApp(gateway, [])
      #expect(try gateway.testPush().first?["accepted"] as? Bool == true)
      #expect(try await service.nextPush()["gw"] as? String == "ws://127.0.0.1:\(gateway.app)/v1/connect")
      try await gateway.use(
        try await service.section(.apns).replacing("ws://127.0.0.1:\(gateway.app)", with: "wss://new.example"))
      #expect(try gateway.testPush().first?["accepted"] as? Bool == true)
      #expect(try await service.nextPush()["gw"] as? String == "wss://new.example/v1/connect")
      #expect(!gateway.process.text.contains("waits for a restart"))
      try await gateway.use("limits: { calls: 7 }")
      #expect(await eventually(within: 5) { gateway.process.text.contains("waits for a restart") })

      try await gateway.use("users: [ { id: bob, numbers: [\"+15551230002\"] } ]")
      let list = try HTTP.request("GET", "/v1/devices", port: gateway.admin).body
      #expect(list.contains("\"isUserUnknown\":true"), "kept and marked: \(list)")
      app.signal(SIGTERM)
      _ = try? await app.finish(within: 10)
      hook.signal(SIGKILL)
      _ = try await hook.finish(within: 5)
      try await gateway.finish()
      try await service.stop()
    }
  }
}
