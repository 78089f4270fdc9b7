import Foundation
import Testing

extension Interop {
  /// Apps behind HAProxy: their node dies, drains, or is the wrong one.
  @Suite(
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Surroundings.hasCluster && Surroundings.chromium != nil),
      "no chromium, kamailio, haproxy or redis: run Scripts/install test"),
    .serialized)
  struct ClusterBalancerTests {
    /// The node of this device's session (user alice).
    private func node(of device: String, in cluster: ClusterUnderTest) async throws -> GatewayUnderTest {
      var found: GatewayUnderTest?
      _ = await eventually(within: 5) {
        found = try cluster.nodes.filter(\.process.isRunning).first { node in
          let rows = try JSONSerialization.jsonObject(with: Data(try node.get("/v1/devices").body.utf8))
          let devices = (rows as? [[String: Any]]) ?? (rows as? [String: Any])?["devices"] as? [[String: Any]] ?? []
          return devices.contains { $0["device"] as? String == device && $0["connected"] as? Bool == true }
        }
        return found != nil
      }
      return try #require(found, "no node has \(device)")
    }

    @Test
    func
      `a node dies: its sessions go on at another in one round trip; a node drains: it gets no new ones, and those it has go where it says; a decline at the wrong node is sent on with its token`()
      async throws
    {
      let cluster = try await ClusterUnderTest(hasEdge: false, hasBalancer: true, media: "[ auto ]")
      let port = try #require(cluster.balancerPort)
      let general = "ws://127.0.0.1:\(port)/v1/connect"
      let token = try await cluster.nodes[0].token("alice", "hand")
      let words = try await SocketWords(cluster.nodes[0])
      let page = try await BarePage(cluster.nodes[0])
      try await page.open(port, token: try await cluster.nodes[0].token("alice", "web"))
      try await page.registerWorker()
      let phone = try await Peers.phone(
        cluster.nodes[0], device: "cell", through: port, ["--nodes", "--keep-wakes", "--trace", "--resume-after", "0.1"])

      // a decline that reaches another node: 307 within one origin, so that the browser keeps the token
      let here = try await node(of: "cell", in: cluster)
      let others = cluster.nodes.filter { $0 !== here }
      let talker = try cluster.talker(to: others[0])
      var push = try await phone.event("call.wake")
      (push["t"], push["event"], push["at"], push["gw"]) = ("call", nil, nil, cluster.url(of: others[1]))
      let before = try others[0].sum("trunkline_app_http_responses_total", "\"200\"")
      let script = """
        fetch("\(cluster.url(of: others[1]).replacing("ws:", with: "http:").replacing("connect", with: "calls/\(push["call"] ?? "")/reject"))",
          { method: "POST", body: '{"scope":"all","reason":"declined"}',
            headers: { authorization: "Bearer \(push["wake"] ?? "")", "content-type": "application/json" } })
          .then((answer) => [answer.status, answer.redirected], (error) => error.message)
        """
      let answer = try await page.evaluate(script) as? [Any]
      #expect(answer?.first as? Int == 200 && answer?.last as? Bool == true, "\(answer ?? [])")
      #expect(try others[0].sum("trunkline_app_http_responses_total", "\"200\"") > before)
      try await cluster.expect(486, of: talker)

      // killed: the general address continues the session, at a node that HAProxy chooses
      let welcome = try await phone.event("welcome")
      here.process.signal(SIGKILL)
      try await here.process.finish(within: 5)
      #expect(await eventually(within: 5) { phone.events.count { $0["event"] as? String == "welcome" } == 2 }, "\(phone.text)")
      let again = try #require(phone.events.last { $0["event"] as? String == "welcome" })
      #expect(again["resumed"] as? Bool == false && again["node"] as? String != welcome["node"] as? String, "\(again)")
      #expect(
        !phone.text.contains("4001") && phone.wire.count { $0.hasPrefix("> hello") } == 2, "in one round trip: \(phone.wire)")
      try await page.wait("phone.state === 'online'")

      // drained, while a call keeps the node running
      let draining = try await node(of: "web", in: cluster)
      let left = try #require(cluster.nodes.first { $0 !== here && $0 !== draining })
      let desk = try await Peers.ownPhone(draining, user: "bob", device: "desk", ["--answer", "--calls", "1"])
      let long = try cluster.talker(to: draining, number: "+15551230002", ["--talk", "300"])
      _ = try await desk.event("connected")
      let resume = try await words.say(["auth": token], device: "hand", at: [cluster.url(of: draining)], until: "welcome")[0]
      let session = try #require(resume.first("welcome"))
      draining.process.signal(SIGTERM)
      #expect(await eventually(within: 3) { try HTTP.request("GET", "/v1/ready", port: draining.app).status == 503 })
      // existing sessions and new ones get another node's address, and the page is online there
      try await page.wait("phone.state === 'online'")
      #expect(try await node(of: "web", in: cluster) === left)
      // the killed node is named until its lease expires
      #expect(await eventually(within: 10) { try draining.sum("trunkline_cluster_nodes", "living") == 1 })
      var row = try await words.say(["auth": token], device: "hand", at: [cluster.url(of: draining)])[0]
      for _ in 0..<5 where row.first("err")?["url"] as? String == cluster.url(of: here) {
        row = try await words.say(["auth": token], device: "hand", at: [cluster.url(of: draining)])[0]
      }
      let error = row.first("err")
      #expect(
        error?["code"] as? String == "overload" && error?["url"] as? String == cluster.url(of: left) && row.code == 1_012,
        "\(row)")
      // a resume at another node than the session's
      let proof: [String: Any] = ["resume": ["sid": session["sid"], "token": session["resumeToken"], "lastSeq": 0]]
      let resumed = try await words.say(proof, device: "hand", at: [cluster.url(of: left)], until: "welcome")[0]
      #expect(resumed.first("welcome")?["resumed"] as? Bool == false && resumed.code == nil, "\(resumed)")
      // HAProxy's check marks the node down: no client is sent there any longer
      #expect(
        await eventually(within: 6) {
          cluster.balancer?.process.text.contains("Server nodes/\(name(draining, cluster)) is DOWN") == true
        })
      let refused = try draining.sum("trunkline_app_hello_refused_total")
      for _ in 0..<6 {
        let row = try await words.say(["auth": token], device: "hand", at: [general], until: "welcome")[0]
        #expect(row.first("welcome")?["node"] as? String == name(left, cluster), "\(row)")
      }
      #expect(try draining.sum("trunkline_app_hello_refused_total") == refused)
      #expect(try draining.sum("trunkline_calls", "connected") == 1, "the call that was there goes on: \(long.text)")
      long.signal(SIGINT)
      _ = try await long.finish(within: 20)
      #expect(try await draining.process.finish(within: 15) == 0)
      phone.type("quit")
      _ = try await phone.finish(within: 10)
      try await words.close()
      try await page.close()
      try await cluster.finish()
    }

    private func name(_ node: GatewayUnderTest, _ cluster: ClusterUnderTest) -> String {
      "n\((cluster.nodes.firstIndex { $0 === node } ?? -1) + 1)"
    }
  }
}
