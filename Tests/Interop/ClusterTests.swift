import Foundation
import Testing

extension Interop {
  /// Any node handles a call, and any node may die: three gateways over Redis, behind Kamailio, with sipp as the carrier.
  @Suite(
    .enabled(
      if: Surroundings.isRequired
        || (Surroundings.missing == nil && Surroundings.kamailio != nil
          && FileManager.default.isExecutableFile(atPath: "/usr/bin/redis-server")),
      "no kamailio or redis: run Scripts/install test"),
    .serialized)
  struct ClusterTests {
    private func phone(_ node: GatewayUnderTest, _ device: String, _ more: [String] = ["--answer", "--answer-after", "0.2"])
      async throws -> Spawned
    {
      try await Peers.ownPhone(node, device: device, more)
    }

    @Test func `a call is steered to the node of the device, woken through its socket, or rings where it is`() async throws {
      let cluster = try await ClusterUnderTest()
      let desk = try await phone(cluster.nodes[1], "desk", ["--answer", "--answer-after", "0.2", "--calls", "4"])
      // through the edge: whichever node gets it, it rings at n2
      for _ in 0..<3 {
        let caller = try cluster.call()
        #expect(
          try await caller.finish(within: 20) == 0,
          "\(caller.text.suffix(6_000))\n\(cluster.edge?.process.text.suffix(6_000) ?? "")")
      }
      _ = try await cluster.records(3)
      #expect(cluster.nodes[1].records.count == 3, "a call lives where its user is")
      // straight to another node, without an edge that follows a redirect: the device connects there
      let caller = try cluster.call(to: cluster.nodes[0])
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      #expect(try await desk.finish(within: 10) == 0, "\(desk.text)")
      #expect(cluster.nodes[0].records.count == 1)
      #expect(
        await eventually(within: 3) { try cluster.nodes[0].sum("trunkline_cluster_wakes_total", "\"come\"") == 1 },
        "\(cluster.told)")
      let steered = try cluster.nodes.map { try $0.sum("trunkline_cluster_locates_total", "steered") }.reduce(0, +)
      let refused = try cluster.nodes.map { try $0.sum("trunkline_calls_refused_total", "steered") }.reduce(0, +)
      #expect(steered == refused, "every redirect is counted")
      try await cluster.finish()
    }

    @Test func `kill -9 of a node: connected calls get BYE, ringing ones ring again, one record each`() async throws {
      let cluster = try await ClusterUnderTest()
      let (first, second) = (cluster.nodes[0], cluster.nodes[1])
      let desk = try await phone(first, "desk", ["--answer", "--answer-after", "0.1", "--calls", "1"])
      let connected = try cluster.call("call_until_bye")
      _ = try await desk.event("connected")
      #expect(await eventually(within: 5) { try first.sum("trunkline_calls", "connected") == 1 })
      // bob is at two nodes: the call rings at the first until that node dies
      let cell = try await Peers.ownPhone(first, user: "bob", device: "cell", ["--answer", "--answer-after", "60"])
      let ringing = try cluster.call(number: "+15551230002")
      _ = try await cell.event("ringing")
      let tab = try await Peers.ownPhone(second, user: "bob", device: "tab", ["--answer", "--answer-after", "0.1"])
      first.process.signal(SIGKILL)
      try await first.process.finish(within: 5)
      #expect(try await connected.finish(within: 15) == 0, "the carrier heard no BYE: \(connected.text.suffix(6_000))")
      #expect(
        try await ringing.finish(within: 20) == 0,
        "it did not ring again: \(ringing.text.split(separator: "\n").filter { $0.contains("SIP/2.0") || $0.contains("unexpected") })\n\(cluster.told)"
      )
      for phone in [desk, cell, tab] {
        phone.signal(SIGTERM)
        try await phone.finish(within: 10)
      }
      let records = try await cluster.records(3)
      let lost = records.filter { ($0["end"] as? [String: Any])?["detail"] as? String == "node lost" }
      #expect(lost.count == 2, "\(records)")
      #expect(
        await eventually(within: 3) {
          try cluster.nodes.dropFirst().map { try $0.sum("trunkline_cluster_calls_reaped_total") }.reduce(0, +) == 2
        })
      try await cluster.finish()
    }

    @Test
    func `a guest that one node has challenged answers at another, straight and through the edge, which alternates`()
      async throws
    {
      let cluster = try await ClusterUnderTest(
        3, trunk: "peer_auth: { username: u, password_file: password }", peers: "any")
      func guest(_ source: String, _ targets: [String]) async throws -> [[Int]] {
        let guest = try Peers.python(
          "guest", "digest_guest.py",
          ["--source", source, "--password", "s3cret", "--number", "+15559999999", "--calls", "3"] + targets, cluster.nodes[0])
        #expect(try await guest.finish(within: 20) == 0, "\(guest.text)\n\(cluster.told)")
        return guest.events.filter { $0["event"] as? String == "call" }.compactMap { $0["codes"] as? [Int] }
      }
      // no user has the number
      let edge = "\(EdgeUnderTest.host):\(cluster.edgePort)"
      let straight = try await guest("127.0.0.66", cluster.nodes.map { "127.0.0.1:\($0.sip)" })
      #expect(straight == [[401, 404], [401, 404], [401, 404]])
      let byEdge = try await guest(EdgeUnderTest.carrier, [edge])
      #expect(byEdge == [[401, 404], [401, 404], [401, 404]])
      _ = try await cluster.records(6)
      // alternately: each node challenged two calls and accepted two answers to another node's challenge
      #expect(cluster.nodes.map(\.records.count) == [2, 2, 2])
      for node in cluster.nodes {
        #expect(await eventually(within: 3) { try node.sum("trunkline_sip_refused_total", "unauthorized") == 2 })
      }
      try await cluster.finish()
    }

    @Test func `Redis dies and comes back empty: no call ends, users here ring, and it heals`() async throws {
      let cluster = try await ClusterUnderTest()
      let desk = try await phone(cluster.nodes[0], "desk", ["--answer", "--answer-after", "0.1", "--calls", "1"])
      let cell = try await Peers.ownPhone(
        cluster.nodes[0], user: "bob", device: "cell", ["--answer", "--answer-after", "0.1", "--calls", "1"])
      let running = try cluster.call("call", ["-d", "6000"])
      _ = try await desk.event("connected")
      try await cluster.killRedis()
      #expect(await eventually(within: 5) { try cluster.nodes[0].sum("trunkline_cluster_state", "up") == 0 })
      #expect(try cluster.nodes[0].get("/readyz").status == 200, "a node without shared store takes calls")
      let local = try cluster.call(to: cluster.nodes[0], number: "+15551230002")
      #expect(try await local.finish(within: 20) == 0, "\(local.text.suffix(6_000))")
      try cluster.startRedis()
      #expect(try await running.finish(within: 20) == 0, "\(running.text.suffix(6_000))")
      for phone in [desk, cell] { #expect(try await phone.finish(within: 10) == 0) }
      for node in cluster.nodes {
        #expect(await eventually(within: 20) { try node.sum("trunkline_cluster_nodes", "living") == 3 })
      }
      _ = try await cluster.records(2)
      #expect(try cluster.nodes.map { try $0.sum("trunkline_cluster_calls_reaped_total") }.reduce(0, +) == 0)
      try await cluster.finish()
    }

    @Test
    func
      `a second process of one name says where the first is and exits 2, one with another's url is named; nodes are listed, drained and forgotten`()
      async throws
    {
      let cluster = try await ClusterUnderTest(2, hasEdge: false)
      var said = ""
      do {
        let twin = try await cluster.node(1, hasEdge: false)
        #expect(try await twin.process.finish(within: 15) == 2, "\(twin.process.text.suffix(6_000))")
        said = twin.process.text
      } catch let failure as Spawned.Failure {
        // it ended before it was ready
        said = failure.description
      }
      #expect(
        said.contains("another process has this node's name") && said.contains("sip:127.0.0.1:\(cluster.nodes[0].sip)"),
        "\(said.suffix(4_000))")
      #expect(cluster.nodes[0].process.isRunning)
      func trunkline(_ arguments: String...) async throws -> (Int32, String) {
        let command = try Spawned("command", Surroundings.trunkline, arguments, in: cluster.nodes[0].folder)
        return (try await command.finish(within: 10), command.text)
      }
      let admin = "127.0.0.1:\(cluster.nodes[0].admin)"
      let (listed, text) = try await trunkline("nodes", "list", "--admin", admin)
      #expect(listed == 0 && text.contains("n1 (this)") && text.contains("n2") && text.contains("shared store: up"), "\(text)")
      let (refused, why) = try await trunkline("nodes", "forget", "n2", "--admin", admin)
      #expect(refused != 0 && why.contains("has a valid lease"), "\(why)")
      let (first, third) = (cluster.nodes[0], try await cluster.node(3, url: cluster.url(of: cluster.nodes[0]), hasEdge: false))
      for (node, other) in [(first, "n3"), (third, "n1")] {
        #expect(
          await eventually(within: 10) {
            node.process.text.split(separator: "\n").contains {
              $0.contains("another node has the same url") && $0.contains("node=\(other)")
            }
          }, "\(node.process.text.suffix(6_000))")
      }
      #expect(try await trunkline("nodes", "list", "--admin", admin).1.components(separatedBy: "(of two nodes)").count == 3)
      third.process.signal(SIGTERM)
      #expect(try await third.process.finish(within: 15) == 0)
      let (drained, _) = try await trunkline("nodes", "drain", "n1", "--admin", admin)
      #expect(drained == 0)
      #expect(try await cluster.nodes[0].process.finish(within: 15) == 0)
      try await cluster.finish()
    }
  }
}
