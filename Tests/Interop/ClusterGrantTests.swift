import Foundation
import Testing

extension Interop {
  /// Two gateways and no list of users: what a token grants at one rings at both. Debian's Redis, Kamailio and sipp, and a Python client's devices.
  @Suite(.withRedis, .serialized)
  struct ClusterGrantTests {
    private static let number = "+15557000001"
    private static let users = "users: [ { id: any, max_calls: 2, claims: { numbers: [\"+1555\"], max_numbers: 2 } } ]"

    private func phone(_ node: GatewayUnderTest, _ user: String, iat: Int, _ grant: String, _ more: [String] = []) async throws
      -> Spawned
    {
      let claims = "{\"sub\":\"\(user)\",\"dev\":\"d-\(user)\",\"iat\":\(iat),\"trunkline\":\(grant)}"
      let token = try await Peers.signed(node, claims)
      return try await Peers.phone(node, user: user, device: "d-\(user)", token: token, ["--answer-after", "0.1"] + more)
    }
    /// Calls through the edge, all to this user: two, as it gives them to the nodes in turn, and some more should it not keep to that.
    private func ring(_ user: String, _ cluster: ClusterUnderTest) async throws {
      let before = cluster.nodes.flatMap(\.records).count
      func steered() throws -> Double {
        try cluster.nodes.reduce(0) { $0 + (try $1.sum("trunkline_cluster_locates_total", "steered")) }
      }
      let steeredBefore = try steered()
      var calls = 0
      while try calls < 2 || calls < 8 && steered() == steeredBefore {
        calls += 1
        let call = try cluster.call(number: Self.number)
        #expect(try await call.finish(within: 20) == 0, "\(call.text.suffix(6_000))")
      }
      let users = try await cluster.records(before + calls).compactMap { $0["user"] as? String }
      #expect(users.count { $0 == user } == calls && users.count == before + calls, "\(users)")
      #expect(try steered() > steeredBefore, "no call came to the other node first")
    }
    private func leave(_ phones: Spawned...) async {
      for phone in phones {
        phone.type("quit")
        _ = await eventually(within: 5) { !phone.isRunning }
      }
    }

    @Test
    func
      `a number that a token grants at one node is that user's at the other, moves there, outlives the shared store's loss, and goes with an erased user`()
      async throws
    {
      let cluster = try await ClusterUnderTest(2, [Self.users])
      let (first, second) = (cluster.nodes[0], cluster.nodes[1])
      let grant = "{\"numbers\":[\"\(Self.number)\"]}"
      let carol = try await phone(first, "carol", iat: 1_700_000_000, grant)
      #expect(await eventually(within: 5) { try second.sum("trunkline_cluster_grants_accepted_total") > 0 })
      // the edge gives calls to both nodes in turn: the one where she is not knows where she is
      try await ring("carol", cluster)

      // a later token at the other node takes the number
      var dora = try await phone(second, "dora", iat: 1_700_000_100, grant)
      #expect(await eventually(within: 5) { try first.sum("trunkline_cluster_grants_accepted_total") > 1 })
      try await ring("dora", cluster)

      // the shared store comes back empty: the node that she is at has its copy, and her next login writes her row
      try await cluster.killRedis()
      try cluster.startRedis()
      await leave(dora)
      dora = try await phone(second, "dora", iat: 1_700_000_100, grant)
      var row = ""
      for _ in 0..<100 where row.isEmpty {
        row = try await cluster.redis("HGET", "tl:{grants}:rows", "dora")
        try await Task.sleep(for: .milliseconds(200))
      }
      #expect(row.hasPrefix("\(Self.number.dropFirst())\n"), "\(row)")
      func stale() throws -> Double { try second.sum("trunkline_cluster_grants_stale") }
      #expect(await eventually(within: 30) { try stale() <= 1 })

      // a new process that knows nothing but what the shared store has
      second.process.signal(SIGKILL)
      try await second.process.finish(within: 5)
      try FileManager.default.removeItem(atPath: second.folder + "/trunkline.db")
      for suffix in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: second.folder + "/trunkline.db\(suffix)") }
      try await second.restart()
      #expect(await eventually(within: 20) { try second.sum("trunkline_cluster_grants_accepted_total") > 1 })
      // her device was there: none is now, which is not "no such number"
      let known = try Peers.sipp(
        first, "refused_480",
        ["127.0.0.1:\(second.sip)", "-s", Self.number, "-p", "\(try FreePorts.udp())", "-key", "audio_port", "9"])
      #expect(try await known.finish(within: 40) == 0, "\(known.text.suffix(6_000))")

      // erased at one node: the number has no user at either
      let erased = try HTTP.request("DELETE", "/v1/users/dora/data", port: first.admin)
      #expect(erased.status == 200 && erased.body.contains("\"grants\":1"), "\(erased)")
      for node in [first, second] {
        // the other node receives the change a moment later
        var (isUnassigned, said) = (false, "")
        for _ in 0..<20 where !isUnassigned {
          let caller = try Peers.sipp(
            first, "refused_404",
            ["127.0.0.1:\(node.sip)", "-s", Self.number, "-p", "\(try FreePorts.udp())", "-key", "audio_port", "9"])
          isUnassigned = try await caller.finish(within: 20) == 0
          said = "\(caller.text.suffix(6_000))"
        }
        #expect(isUnassigned, "\(said)")
      }
      await leave(carol)
      dora.signal(SIGTERM)
      _ = await eventually(within: 5) { !dora.isRunning }
      try await cluster.finish()
    }

    @Test func `a token without iat is refused, and says why`() async throws {
      let cluster = try await ClusterUnderTest(2, hasEdge: false, [Self.users])
      let node = cluster.nodes[0]
      let token = try await Peers.signed(
        node, "{\"sub\":\"carol\",\"dev\":\"d-carol\",\"trunkline\":{\"numbers\":[\"\(Self.number)\"]}}")
      let peer = try Peers.python(
        "stranger", "directory_stranger.py",
        ["--url", "ws://127.0.0.1:\(node.app)/v1/connect", "--token", token, "--device", "d-carol"], node)
      _ = await eventually(within: 10) { peer.text.contains("iat") || !peer.isRunning }
      #expect(peer.text.contains("the token needs iat"), "\(peer.text)")
      peer.signal(SIGTERM)
      _ = await eventually(within: 5) { !peer.isRunning }
      try await cluster.finish()
    }
  }
}
