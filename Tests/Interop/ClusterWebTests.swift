import Foundation
import Testing

extension Interop {
  /// Foreign clients as devices of a cluster: trunkline.js in Chromium, and a client on aiortc.
  @Suite(
    .tags(.audio),
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Surroundings.hasCluster && Surroundings.chromium != nil),
      "no chromium, kamailio, haproxy or redis: run Scripts/install test"),
    .serialized)
  struct ClusterWebTests {
    @Test
    func
      `a page at n1 is woken through its socket for a call at n2, another origin, and both hear each other; who knows one node hears of that one's calls only; the edge steers to the page; a page declines`()
      async throws
    {
      try await expectGoodAudio {
        let cluster = try await ClusterUnderTest(media: "[ auto ]")
        let (n1, n2, n3) = (cluster.nodes[0], cluster.nodes[1], cluster.nodes[2])
        let page = try await BarePage(n1)
        try await page.open(n1, token: try await n1.token("alice", "web"))
        let simple = try await Peers.phone(n2, ["--trace"])

        let talker = try cluster.talker(
          to: n2, ["--talk", "\(Double(Speech.telephone.count) / 8_000 + 1)", "--record", "caller.wav"])
        try await page.wait("window.call?.state === 'ringing'")
        _ = try await simple.event("call.offer")
        try await page.evaluate("call.answer()")
        try await page.wait("states.includes('connected') && call.isPlaying && call.isCapturing")
        #expect(await eventually(within: 5) { simple.wire.contains("< call.cancel answeredElsewhere") }, "\(simple.wire)")
        #expect(try await talker.finish(within: 30) == 0, "\(talker.text)\n\(cluster.told)")
        try await page.wait("call.endReason === 'remoteHangup' && phone.state === 'online'")
        var faults = try Speech.faults("telephone → page", said: Speech.telephone, heardIn: try await page.heard(n1))
        let level = Speech.level(try Speech.read(n1.folder + "/caller.wav"), from: 1, to: 3)
        if level < 100 { faults.append("page → telephone: a level of \(level)") }
        #expect(try n2.sum("trunkline_cluster_wakes_total", "\"come\"") == 1, "\(cluster.told)")
        #expect(
          await eventually(within: 5) { try n2.sum("trunkline_app_websockets") == 1 },
          "a further socket is closed when no call of its node is left")
        #expect(try n1.sum("trunkline_app_websockets") == 1, "the first stays")

        // a client that knows one node gets no message about a call at another
        let offers = simple.wire.count { $0 == "< call.offer" }
        let declined = try cluster.talker(to: n3)
        try await page.wait("call.state === 'ringing'")
        try await page.evaluate("call.decline()")
        try await cluster.expect(486, of: declined)
        simple.type("quit")
        _ = try await simple.finish(within: 10)
        #expect(simple.wire.count { $0 == "< call.offer" } == offers && !simple.wire.contains { $0.hasPrefix("< call.wake") })

        // through the edge: whichever node gets it, it rings at n1, and no further socket is opened
        for _ in 0..<2 {
          let steered = try cluster.talker()
          try await page.wait("call.state === 'ringing'")
          try await page.evaluate("call.answer()")
          #expect(try await steered.finish(within: 20) == 0, "\(steered.text)\n\(cluster.told)")
          try await page.wait("call.endReason === 'remoteHangup'")
        }
        #expect(n1.records.count == 2, "\(cluster.told)")
        try await cluster.account(calls: 4)
        #expect(try cluster.sum("trunkline_cluster_locates_total", "steered") >= 1, "\(cluster.told)")
        try await page.close()
        try await cluster.finish()
        return faults
      }
    }

    @Test
    func
      `a decline goes from page and service worker to another node by HTTP, across origins; sent to the wrong node it still counts`()
      async throws
    {
      let cluster = try await ClusterUnderTest(hasEdge: false, media: "[ auto ]")
      let (n1, n2, n3) = (cluster.nodes[0], cluster.nodes[1], cluster.nodes[2])
      let page = try await BarePage(n1)
      try await page.open(n1, token: nil)
      try await page.registerWorker()
      let device = try await Peers.phone(n1, ["--nodes", "--keep-wakes"])
      var wakes = 0
      /// The contents of the next call's `call.wake`, as a push would carry them.
      func push() async throws -> [String: Any] {
        wakes += 1
        let wanted = wakes
        #expect(await eventually(within: 5) { device.events.count { $0["event"] as? String == "call.wake" } >= wanted })
        let said = device.events.filter { $0["event"] as? String == "call.wake" }
        var push = try #require(said.last)
        (push["t"], push["event"], push["at"]) = ("call", nil, nil)
        #expect(push["gw"] as? String == cluster.url(of: n2), "the node's own address")
        return push
      }
      func posts(_ node: GatewayUnderTest, _ status: Int) throws -> Double {
        try node.sum("trunkline_app_http_responses_total", "\"\(status)\"")
      }

      // by an open page
      let first = try cluster.talker(to: n2)
      var wake = try await push()
      let call = try #require(wake["call"] as? String)
      let script = """
        fetch("http://127.0.0.1:\(n2.app)/v1/calls/\(call)/reject", { method: "POST", body: '{"scope":"all","reason":"declined"}',
          headers: { authorization: "Bearer \(wake["wake"] ?? "")", "content-type": "application/json" } })
          .then((answer) => answer.status, (error) => error.message)
        """
      #expect(try await page.evaluate(script) as? Int == 200)
      try await cluster.expect(486, of: first)
      // by the worker of a closed page: a preflight, and the POST; then to n3, which answers 307
      try await page.closePage()
      for isRight in [true, false] {
        let (before, wrong) = (try posts(n2, 200), try posts(n3, 307))
        let talker = try cluster.talker(to: n2)
        wake = try await push()
        if !isRight { wake["gw"] = cluster.url(of: n3) }
        try await page.deliver(wake, n1, until: ["+15557770001 is calling"])
        _ = try await talker.event("progress") { ($0["fields"] as? [String: String])?["code"] == "180" }
        try await page.click("decline")
        try await cluster.expect(486, of: talker)
        try await page.waitForNotifications([])
        if isRight {
          #expect(try posts(n2, 200) > before, "by HTTP")
        } else {
          #expect(try posts(n3, 307) == wrong + 1, "sent on")
        }
      }
      // a page of a foreign origin is refused, by socket and by HTTP
      let stranger = try HTTP.request(
        "OPTIONS", "/v1/calls/\(call)/reject", port: n2.app, headers: ["Origin: https://evil.example"])
      #expect(stranger.status == 405)
      device.type("quit")
      _ = try await device.finish(within: 10)
      try await cluster.account(calls: 3)
      try await page.close()
      try await cluster.finish()
    }
  }
}
