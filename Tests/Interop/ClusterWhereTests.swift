import Foundation
import Testing

extension Interop {
  /// `trunkline where`, `calls list --cluster` and the admin API behind them, at nodes that live, die and lose their shared
  /// store.
  @Suite(.withRedis, .serialized)
  struct ClusterWhereTests {
    private func trunkline(_ node: GatewayUnderTest, _ arguments: String...) async throws -> (status: Int32, text: String) {
      let command = try Spawned(
        "command", Surroundings.trunkline, arguments + ["--admin", "127.0.0.1:\(node.admin)"], in: node.folder)
      return (try await command.finish(within: 20), command.text)
    }

    @Test func `any node says where a user's devices and a call are, how it ended, and what it knows without the shared store`()
      async throws
    {
      let cluster = try await ClusterUnderTest(2, hasEdge: false, ["records: { file: calls.jsonl, stream: true }"])
      let (first, second) = (cluster.nodes[0], cluster.nodes[1])
      let desk = try await Peers.ownPhone(
        second, device: "desk", ["--answer", "--answer-after", "0.1", "--calls", "2"])
      let ended = try cluster.call(to: second)
      #expect(try await ended.finish(within: 20) == 0, "\(ended.text.suffix(6_000))")
      let over = try #require(try await second.records(1).first?["call"] as? String)
      let running = try cluster.call("call_until_bye", to: second)
      #expect(await eventually(within: 10) { try second.sum("trunkline_calls", "connected") == 1 })
      #expect(await eventually(within: 10) { try second.sum("trunkline_records_streamed_total") == 1 })

      let listed = try await trunkline(first, "calls", "list", "--cluster", "--json")
      let rows = try #require(
        (JSONSerialization.jsonObject(with: Data(listed.text.utf8)) as? [String: Any])?["calls"] as? [[String: Any]], "\(listed)")
      let call = try #require(rows.first?["call"] as? String)
      #expect(
        rows.count == 1 && rows[0]["node"] as? String == "n2" && rows[0]["state"] as? String == "connected", "\(listed.text)")
      let table = try await trunkline(first, "calls", "list", "--cluster")
      #expect(table.status == 0 && table.text.contains(call) && table.text.contains("connected"), "\(table)")

      let user = try await trunkline(first, "where", "--user", "alice")
      #expect(user.status == 0 && user.text.contains("desk    n2") && user.text.contains(call), "\(user)")
      let live = try await trunkline(first, "where", "--call", call)
      #expect(live.status == 0 && live.text.contains("confirmed, carrier, udp 127.0.0.1:"), "\(live)")
      #expect(live.text.contains("n2") && live.text.contains("+15551230001") && !live.text.contains("tag="), "\(live)")
      #expect(try await trunkline(second, "where", "--call", call).text == live.text, "its own node says the same")
      let gone = try await trunkline(first, "where", "--call", over)
      #expect(gone.status == 0 && gone.text.contains("ended") && gone.text.contains("record"), "\(gone)")
      let unknown = try await trunkline(first, "where", "--call", "00000000-0000-4000-8000-000000000000")
      #expect(unknown.status == 1 && unknown.text.contains("404") && unknown.text.contains("no node has this call"), "\(unknown)")
      #expect(try await trunkline(first, "where").status == 64, "neither user nor call")

      let document = Surroundings.package + "/docs/reference/admin-api.yaml"
      try await cluster.killRedis()
      #expect(await eventually(within: 5) { try first.sum("trunkline_cluster_state", "away") == 1 })
      #expect(await eventually(within: 5) { try second.sum("trunkline_cluster_state", "away") == 1 })
      let ready = try second.get("/readyz")
      #expect(ready.status == 200 && ready.body.contains("is unavailable: "), "its state is named, and it is ready: \(ready)")
      #expect(try HTTP.request("GET", "/v1/ready", port: second.app).status == 200, "apps may come, too")
      let alone = try await trunkline(second, "where", "--user", "alice")
      #expect(alone.status == 0 && alone.text.contains("this is the data of n2 alone") && alone.text.contains("desk"), "\(alone)")
      let own = try await trunkline(second, "calls", "list", "--cluster")
      #expect(own.status == 0 && own.text.contains("this is the data of n2 alone") && own.text.contains(call), "\(own)")
      let unanswered = try await trunkline(first, "where", "--call", call)
      #expect(unanswered.status == 1 && unanswered.text.contains("the shared store does not answer"), "\(unanswered)")
      let memory = try await trunkline(second, "where", "--call", over)
      #expect(memory.status == 0 && memory.text.contains("ended"), "a node remembers its calls for two minutes: \(memory)")

      try cluster.startRedis()
      for node in cluster.nodes {
        #expect(await eventually(within: 20) { try node.sum("trunkline_cluster_nodes", "living") == 2 })
        #expect(await eventually(within: 20) { try node.sum("trunkline_cluster_unwritten") == 0 })
      }
      #expect(await eventually(within: 20) { try first.get("/v1/where?call=\(call)").status == 200 }, "its entry is put back")
      // the shared store came back empty: its stream has only later records
      let cell = try await Peers.ownPhone(
        first, user: "bob", device: "cell", ["--answer", "--answer-after", "0.1", "--calls", "1"])
      let caller = try cluster.call(to: first, number: "+15551230002")
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      #expect(try await cell.finish(within: 10) == 0, "\(cell.text)")
      let last = try #require(try await first.records(1).first?["call"] as? String)
      #expect(await eventually(within: 10) { try first.sum("trunkline_records_streamed_total") == 1 })
      let checked = try Peers.python(
        "admin_api", "admin_api_cluster.py",
        ["http://127.0.0.1:\(first.admin)", document, "n1", "n2", "alice", call, last], first)
      #expect(try await checked.finish(within: 60) == 0, "\(checked.text)")
      #expect(try await first.process.finish(within: 15) == 0, "drained")

      let ending = try await trunkline(second, "calls", "hangup", call)
      #expect(ending.status == 0, "\(ending)")
      #expect(try await running.finish(within: 20) == 0, "\(running.text.suffix(6_000))")
      #expect(try await desk.finish(within: 10) == 0, "\(desk.text)")
      _ = try await second.records(2)
      try await cluster.finish()
    }

    @Test func `a node that died is named so, and forgotten its calls are closed`() async throws {
      let cluster = try await ClusterUnderTest(2, hasEdge: false)
      let (first, second) = (cluster.nodes[0], cluster.nodes[1])
      let desk = try await Peers.ownPhone(second, device: "desk", ["--answer", "--answer-after", "60"])
      let ringing = try cluster.call(to: second)
      _ = try await desk.event("ringing")
      second.process.signal(SIGKILL)
      try await second.process.finish(within: 5)
      #expect(
        await eventually(within: 10) { try first.get("/v1/where?user=alice").body.contains("\"liveness\":\"dead\"") },
        "\(cluster.told)")
      let user = try await trunkline(first, "where", "--user", "alice")
      #expect(user.status == 0 && user.text.contains("n2 (dead)"), "\(user)")
      let list = try await trunkline(first, "calls", "list", "--cluster")
      #expect(list.status == 0 && list.text == "no calls\n", "\(list)")
      let forgotten = try await trunkline(first, "nodes", "forget", "n2")
      #expect(forgotten.status == 0, "\(forgotten)")
      ringing.signal(SIGTERM)
      desk.signal(SIGTERM)
      try await ringing.finish(within: 10)
      try await desk.finish(within: 10)
      try await cluster.finish()
    }
  }
}
