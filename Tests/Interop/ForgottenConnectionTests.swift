import Foundation
import Testing

extension Interop {
  /// A firewall forgets a connection that stands, and drops its packets without a word: what the gateway asks of others goes over a new one, in
  /// time, and the log says why. In the suite's own network, by nftables. SIP: `GroundTests`.
  @Suite(
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && TranslatedNetwork.missing == nil), "no root or no nft"),
    .serialized)
  struct ForgottenConnectionTests {
    private static let words = "a connection stalled: its requests"

    /// The gateway's ports of the connections that stand to `port`.
    private func ports(to port: UInt16, in folder: String) async throws -> [String] {
      let connections = try Spawned("ss", "/usr/bin/ss", ["-Htn", "state", "established", "dport", "= :\(port)"], in: folder)
      #expect(try await connections.finish(within: 5) == 0)
      // Recv-Q, Send-Q, local address:port, peer
      return connections.text.split(separator: "\n").compactMap {
        $0.split(separator: " ").dropFirst(2).first?.split(separator: ":").last.map(String.init)
      }
    }

    @Test func `a webhook's connection: the next call is routed by the webhook all the same`() async throws {
      let port = try FreePorts.tcp()
      let gateway = try await GatewayUnderTest([
        "users: [ { id: alice, numbers: [\"+15551230001\"], diversions: { unreached: { code: 410 } } }, "
          + "{ id: bob, numbers: [\"+15551230002\"], diversions: { unreached: { code: 404 } } } ]",
        "routes: { inbound: [ { trunk: carrier, route: { webhook: \"http://127.0.0.1:\(port)/route\", key_file: password } } ] }",
      ])
      let hook = try Peers.python(
        "webhook", "webhook_server.py", ["--port", "\(port)", "--mode", "right", "--key", "s3cret", "--keep"], gateway)
      _ = try await hook.event("listening")
      func call(_ number: Int) async throws {
        let caller = try Spawned(
          "caller", Surroundings.lab,
          [
            "trunk", "--gateway", "127.0.0.1:\(gateway.sip)", "--listen", "127.0.0.1:\(try FreePorts.both())", "--events",
            "--call",
            "+15551230001",
          ], in: gateway.folder)
        #expect(try await caller.finish(within: 15) != 0, "\(caller.text)")
        let record = try #require(try await gateway.records(number).last)
        gateway.note(invites: [record["sipCallId"] as? String ?? ""])
        #expect(record["user"] as? String == "bob", "call \(number): \(gateway.process.text.suffix(3_000))")
      }
      try await call(1)
      let stale = try await ports(to: port, in: gateway.folder)
      #expect(stale.count == 1)
      let firewall = try await GroundTests.Firewall(
        dropping: "tcp sport { \(stale.joined(separator: ", ")) }", in: gateway.folder)
      try await call(2)
      #expect(await gateway.logs(Self.words), "\(gateway.process.text.suffix(3_000))")
      try await firewall.remove()
      hook.signal(SIGKILL)
      _ = try await hook.finish(within: 5)
      try await gateway.finish()
    }

    @Test func `the connection to a push service: the next push goes over a new one, and the service is not given up`()
      async throws
    {
      let service = try await PushServiceUnderTest(.h2)
      let gateway = try await service.gateway()
      let app = try await service.killedApp(gateway, [])
      func push() async throws {
        let test = try Spawned(
          "push", Surroundings.trunkline, ["push", "test", "--user", "alice", "--config", gateway.folder + "/gateway.yaml"],
          in: gateway.folder)
        #expect(try await test.finish(within: 30) == 0, "\(test.text)\n\(gateway.process.text.suffix(6_000))")
        #expect(test.text.contains("accepted"), "\(test.text)")
      }
      try await push()
      let stale = try await ports(to: service.port, in: gateway.folder)
      #expect(stale.count == 1)
      let firewall = try await GroundTests.Firewall(
        dropping: "tcp sport { \(stale.joined(separator: ", ")) }", in: gateway.folder)
      try await push()
      #expect(await gateway.logs(Self.words), "\(gateway.process.text.suffix(3_000))")
      #expect(Set(service.keysAndConnections.map(\.connection)) == [1, 2])
      #expect(try gateway.sum("trunkline_push_circuit_open") == 0)
      try await firewall.remove()
      app.signal(SIGTERM)
      _ = try? await app.finish(within: 10)
      try await gateway.finish()
      try await service.stop()
    }

    @Test func `a connection to the shared store, either of the two: a new one within seconds, though nobody asks anything`()
      async throws
    {
      let cluster = try await ClusterUnderTest(1, hasEdge: false)
      let node = cluster.nodes[0]
      for round in 1...2 {
        let stale = try await ports(to: cluster.redisPort, in: node.folder)
        #expect(stale.count == 2)
        guard stale.count == 2 else { break }
        let firewall = try await GroundTests.Firewall(dropping: "tcp sport \(stale[round - 1])", in: node.folder)
        let isBack = await eventually(within: 20) { node.process.text.split(separator: "connected to Redis").count > round + 1 }
        #expect(isBack, "\(node.process.text.suffix(3_000))")
        try await firewall.remove()
      }
      let text = node.process.text
      #expect(text.contains("is unavailable: devices") && text.contains("the subscription does not answer"), "\(text)")
      #expect(text.contains("the connection stalled: commands are unanswered") || text.contains("commands in a row"), "\(text)")
      try await cluster.finish()
    }
  }
}
