import Foundation
import Testing

extension Interop {
  /// Each way in which a call finds its devices over three nodes, with clients on aiortc and our own.
  @Suite(
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Surroundings.hasCluster),
      "no kamailio, haproxy or redis: run Scripts/install test"),
    .serialized)
  struct ClusterCallTests {
    private let nodes = ["--nodes", "--trace"]

    @Test
    func
      `two devices at two nodes answer at once: one has the call; one that comes to another node while it rings answers there`()
      async throws
    {
      let cluster = try await ClusterUnderTest(hasEdge: false)
      let (n1, n2, n3) = (cluster.nodes[0], cluster.nodes[1], cluster.nodes[2])
      let phones = [
        try await Peers.phone(n1, device: "desk", nodes), try await Peers.phone(n2, device: "cell", nodes),
      ]
      for number in 1...3 {
        let talker = try cluster.talker(to: n1)
        for phone in phones {
          #expect(await eventually(within: 10) { phone.events.count { $0["event"] as? String == "prepared" } == number })
        }
        for phone in phones { phone.type("answer") }
        #expect(try await talker.finish(within: 20) == 0, "\(talker.text)\n\(cluster.told)")
        for phone in phones {
          #expect(
            await eventually(within: 5) { phone.events.count { $0["event"] as? String == "ended" } == number }, "\(phone.text)")
        }
        let won = phones.map { phone in phone.events.count { $0["event"] as? String == "answered" && $0["won"] as? Bool == true }
        }
        #expect(won.reduce(0, +) == number, "\(won)")
        let lost = phones.flatMap(\.events).filter {
          $0["event"] as? String == "ended" && $0["reason"] as? String == "answeredElsewhere"
        }
        #expect(lost.count == number, "\(phones.map(\.wire))")
      }
      phones[0].type("quit")
      _ = try await phones[0].finish(within: 10)

      // The device rings at n2, where its process ends; it is back at n3 while the call, at n1, still rings.
      let talker = try cluster.talker(to: n1)
      #expect(await eventually(within: 5) { phones[1].events.count { $0["event"] as? String == "prepared" } == 4 })
      phones[1].type("vanish")
      _ = try await phones[1].finish(within: 5)
      let back = try await Peers.phone(n3, device: "cell", nodes + ["--answer-after", "0.1"])
      #expect(try await talker.finish(within: 20) == 0, "\(talker.text)\n\(back.wire)\n\(cluster.told)")
      #expect(
        back.wire.contains { $0.hasPrefix("< call.wake") } && back.wire.contains { $0.hasPrefix("> hello wake") }, "\(back.wire)")
      back.type("quit")
      _ = try await back.finish(within: 10)
      try await cluster.account(calls: 4)
      try await cluster.finish()
    }

    @Test func `a webhook's three users at three nodes all ring, and one of them answers`() async throws {
      let port = try FreePorts.tcp()
      let cluster = try await ClusterUnderTest(
        hasEdge: true,
        [
          "users: [ { id: alice, numbers: [\"+15551230001\"] }, { id: bob, numbers: [\"+15551230002\"] }, { id: carol, numbers: [\"+15551230003\"] } ]",
          "routes: { inbound: [ { trunk: carrier, route: { webhook: \"http://127.0.0.1:\(port)/route\", key_file: password } } ] }",
        ])
      let hook = try Peers.python(
        "webhook", "webhook_server.py", ["--port", "\(port)", "--mode", "everybody", "--key", "s3cret"], cluster.nodes[0])
      _ = try await hook.event("listening")
      var phones: [Spawned] = []
      for (node, user) in zip(cluster.nodes, ["alice", "bob", "carol"]) {
        phones.append(try await Peers.phone(node, user: user, device: user, nodes))
      }
      let talker = try cluster.talker()
      for phone in phones { _ = try await phone.event("prepared") }
      phones[2].type("answer")
      #expect(try await talker.finish(within: 20) == 0, "\(talker.text)\n\(cluster.told)")
      for phone in phones { #expect(await eventually(within: 5) { phone.events.contains { $0["event"] as? String == "ended" } }) }
      for phone in phones.prefix(2) { #expect(phone.wire.contains("< call.cancel answeredElsewhere"), "\(phone.wire)") }
      #expect(try cluster.sum("trunkline_cluster_wakes_total", "\"come\"") == 2, "\(cluster.told)")
      for phone in phones {
        phone.type("quit")
        _ = try await phone.finish(within: 10)
      }
      hook.signal(SIGKILL)
      _ = try await hook.finish(within: 5)
      try await cluster.account(calls: 1)
      try await cluster.finish()
    }

    @Test func `a killed app is pushed to with the address of the node that has its call, and answers there`() async throws {
      let service = try await PushServiceUnderTest(.h2)
      let cluster = try await ClusterUnderTest(3, [try await service.section(.apns)])
      let (n1, n2) = (cluster.nodes[0], cluster.nodes[1])
      // registered at n1; every node knows it
      let app = try await service.killedPhone(n1, ["--answer-after", "0.1"])
      let talker = try cluster.talker(to: n2)
      let push = try await service.nextPush()
      #expect(push["gw"] as? String == cluster.url(of: n2), "\(push)")
      // the app connects to the push's address
      app.signal(SIGKILL)
      _ = try await app.finish(within: 5)
      let words = try await SocketWords(n1)
      let wake = try #require(push["wake"] as? String)
      // at all nodes at once: one has the call, the others return its address
      let rows = try await words.say(["wake": wake], device: "", at: cluster.nodes.map(cluster.url), until: "welcome")
      for (node, row) in zip(cluster.nodes, rows) {
        if node === n2 {
          let calls = row.first("welcome")?["calls"] as? [[String: Any]]
          #expect(calls?.count == 1 && row.code == nil, "\(row)")
        } else {
          let error = row.first("err")
          #expect(
            error?["code"] as? String == "overload" && error?["url"] as? String == cluster.url(of: n2)
              && error?["retryMs"] as? Int == 0 && row.code == 1_012, "\(row)")
        }
      }
      talker.signal(SIGINT)
      _ = try await talker.finish(within: 10)
      _ = try await cluster.records(1)
      // with the token of a call that is over
      let late = try await words.say(["wake": wake], device: "", at: [cluster.url(of: n2)], until: "call.gone")
      #expect(late[0].first("call.gone")?["reason"] as? String == "callerCancelled", "\(late)")
      try await words.close()
      try await cluster.account(calls: 1)
      try await cluster.finish()
      try await service.stop()
    }

    @Test func `a call.start that is repeated at another node gets its call's node, and there is one INVITE`() async throws {
      let cluster = try await ClusterUnderTest()
      let (n1, n2) = (cluster.nodes[0], cluster.nodes[1])
      var script = SippScript.callee()
      script.answers(200, sdp: SippScript.sdp(), proxied: true)
      script.awaits("ACK")
      script.pauses(4_000)
      script.asks("BYE")
      script.response()
      let carrier = try await Peers.callee(
        n1, try script.file(n1, "one-call"), host: EdgeUnderTest.carrier, port: cluster.carrier)
      let call = ["--call", "+15557654321", "--call-id", UUID().uuidString.lowercased()]
      let caller = try await Peers.phone(n1, device: "cell", nodes + call)
      _ = try await caller.event("call.connected")
      // the device is at another node, and does not know yet that its call was made
      let again = try await Peers.phone(n2, device: "cell", nodes + call)
      let refused = try await again.event("err")
      #expect(refused["code"] as? String == "overload" && refused["url"] as? String == cluster.url(of: n1), "\(refused)")
      #expect(await eventually(within: 5) { caller.events.contains { $0["code"] as? Int == 4_009 } }, "\(caller.text)")
      // its call is at the first node, which wakes it
      _ = try await again.event("call.wake") { $0["gw"] as? String == cluster.url(of: n1) }
      #expect(try await carrier.finish(within: 20) == 0, "\(carrier.text.suffix(6_000))\n\(cluster.told)")
      again.type("quit")
      _ = try await again.finish(within: 10)
      try await cluster.account(calls: 0, outgoing: 1)
      #expect(try cluster.sum("trunkline_cluster_claims_total", "elsewhere") == 1)
      try await cluster.finish()
    }

    @Test func `a call steered to a node that died a moment ago is handled by another, which the carrier does not notice`()
      async throws
    {
      let cluster = try await ClusterUnderTest()
      let dead = cluster.nodes[1]
      let desk = try await Peers.phone(dead, device: "desk")
      #expect(
        await eventually(within: 5) { try dead.sum("trunkline_app_sessions", "connected") == 1 }, "\(cluster.told)")
      dead.process.signal(SIGKILL)
      try await dead.process.finish(within: 5)
      _ = try await desk.finish(within: 10)
      // the lease lasts 2 s: both other nodes redirect to the dead one, and then have no device to ring
      let talkers = try (0..<2).map { _ in try cluster.talker() }
      for talker in talkers { try await cluster.expect(480, of: talker) }
      let records = try await cluster.records(2)
      #expect(records.count == 2, "each is a call of a node that lives")
      #expect(try cluster.sum("trunkline_calls_refused_total", "steered") >= 1, "\(cluster.told)")
      try await cluster.finish()
    }

    @Test func `a user's second call comes to the node of the first, so that the user can connect both with each other`()
      async throws
    {
      let cluster = try await ClusterUnderTest(
        trunk: "transfers: true")
      let (n1, n2) = (cluster.nodes[0], cluster.nodes[1])
      let desk = try await Peers.phone(n2, device: "desk", nodes + ["--answer-after", "0.1"])
      var script = SippScript.caller()
      script.isAnswered()
      script.awaits("REFER", containing: ["Replaces="])
      script.replies(202)
      script.asks(
        "NOTIFY", ["Event: refer", "Subscription-State: terminated;reason=noresource"], sdp: "SIP/2.0 200 OK\n",
        type: "message/sipfrag;version=2.0")
      script.response()
      script.awaits("BYE")
      script.replies()
      let first = try cluster.call(try script.file(n1, "attended"))
      _ = try await desk.event("call.connected")
      // the user is connected at n1, too: the node of the live call is chosen
      let tab = try await Peers.phone(n1, device: "tab", ["--trace"])
      for number in 2...3 {
        let second = try cluster.call("call_until_bye")
        #expect(
          await eventually(within: 10) { desk.events.count { $0["event"] as? String == "call.connected" } == number },
          "\(desk.wire)\n\(cluster.told)")
        if number == 3 { desk.type("join") } else { desk.type("end") }
        if number == 3 {
          _ = try await desk.event("call.transferred") { $0["status"] as? String == "done" }
          #expect(try await first.finish(within: 10) == 0, "\(first.text.suffix(6_000))\n\(desk.wire)")
          desk.type("end")
        }
        #expect(try await second.finish(within: 10) == 0, "\(second.text.suffix(6_000))\n\(desk.wire)\n\(cluster.told)")
      }
      #expect(n2.records.count == 3, "all at the node of the first")
      for phone in [desk, tab] {
        phone.type("quit")
        _ = try await phone.finish(within: 10)
      }
      try await cluster.account(calls: 3)
      try await cluster.finish()
    }
  }
}
