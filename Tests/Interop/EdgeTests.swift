import Foundation
import Testing
import TrunklineBytes

extension Interop {
  /// Carrier → Debian's Kamailio with Deploy/kamailio → gateway → app.
  @Suite(
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Surroundings.kamailio != nil),
      "no kamailio: run Scripts/install test"),
    .serialized)
  struct EdgeTests {
    private func node(
      _ edge: UInt16, over transport: String = "udp", carrier: UInt16? = nil,
      ports: (sip: UInt16, app: UInt16, admin: UInt16)? = nil
    ) async throws -> GatewayUnderTest {
      let carrier = try carrier ?? FreePorts.both()
      return try await GatewayUnderTest(
        [
          EdgeUnderTest.cluster(edge, over: transport),
          "trunks: [ { name: carrier, uri: \"sip:\(EdgeUnderTest.carrier):\(carrier)\", transfers: true }, { name: other, peers: [ 127.0.0.7 ] } ]",
        ], ports: ports, carrier: carrier)
    }

    private func row(_ gateway: GatewayUnderTest, over transport: String = "udp") -> String {
      "sip:127.0.0.1:\(gateway.sip)" + (transport == "tcp" ? ";transport=tcp" : "")
    }

    /// sipp as the carrier that calls through the edge.
    private func call(
      _ gateway: GatewayUnderTest, _ edge: UInt16, _ scenario: String = "call", to number: String = "+15551230001",
      _ more: [String] = ["-d", "500"]
    ) throws -> Spawned {
      try Peers.sipp(
        gateway, scenario, host: EdgeUnderTest.carrier,
        ["\(EdgeUnderTest.host):\(edge)", "-s", number, "-p", "\(try FreePorts.udp())", "-key", "audio_port", "9"] + more)
    }

    @Test(arguments: ["udp", "tcp"]) func `calls each way, ended by either side`(transport: String) async throws {
      let port = try FreePorts.both()
      let gateway = try await node(port, over: transport)
      let edge = try await EdgeUnderTest(in: gateway.folder, port: port, nodes: [row(gateway, over: transport)])
      // the carrier hangs up, then the app does
      for (scenario, more) in [("call", []), ("call_until_bye", ["--talk", "1"])] {
        let phone = try await Peers.ownPhone(
          gateway, device: scenario, ["--answer", "--answer-after", "0.1", "--calls", "1"] + more)
        let carrier = try call(
          gateway, port, scenario, transport == "tcp" && scenario == "call" ? ["-t", "t1", "-d", "500"] : ["-d", "500"])
        #expect(try await carrier.finish(within: 20) == 0, "\(carrier.text.suffix(6_000))\n\(edge.process.text.suffix(6_000))")
        #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      }
      for isHungUpByCarrier in [true, false] {
        var script = SippScript.callee(containing: ["Record-Route: <sip:\(EdgeUnderTest.host):\(port)", "Max-Forwards: 69"])
        script.answers(180, proxied: true)
        script.answers(200, sdp: SippScript.sdp(), proxied: true)
        script.awaits("ACK")
        if isHungUpByCarrier {
          // An app is connected once it has media: a BYE in the millisecond of the ACK may precede it. sipp cannot wait for a
          // phone, but waits longer on a slow machine.
          script.pauses(Int(500 * Canary.factor))
          script.asks("BYE")
          script.response()
        } else {
          script.awaits("BYE")
          script.replies()
        }
        let carrier = try await Peers.callee(
          gateway, try script.file(gateway, "callee-\(isHungUpByCarrier)"), host: EdgeUnderTest.carrier)
        let phone = try await Peers.ownPhone(
          gateway, device: "out\(isHungUpByCarrier)",
          ["--call", "+15557654321", "--calls", "1"] + (isHungUpByCarrier ? [] : ["--talk", "1"]))
        #expect(try await carrier.finish(within: 20) == 0, "\(carrier.text.suffix(6_000))\n\(edge.process.text.suffix(6_000))")
        #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      }
      _ = try await gateway.records(4)
      #expect(gateway.endReasons == ["remoteHangup", "localEnd", "remoteHangup", "localEnd"])
      #expect(Set(gateway.records.compactMap { $0["trunk"] as? String }) == ["carrier"])
      await edge.stop()
      try await gateway.finish()
    }

    @Test func `a trunk's name is believed from the edge alone, and an INVITE of the edge without one is refused`() async throws {
      let port = try FreePorts.both()
      let gateway = try await node(port)
      let edge = try await EdgeUnderTest(in: gateway.folder, port: port, nodes: [row(gateway)])
      let (carrier, other) = (try #require(IPAddress(EdgeUnderTest.carrier)), try #require(IPAddress("127.0.0.7")))
      func invite(_ raw: RawTrunk, _ names: [String]) -> RawTrunk.Request {
        var request = raw.request("INVITE", to: "+15559999999", sdp: "v=0\r\n")
        request.lines += names.map { "X-Trunkline-Trunk: \($0)" }
        return request
      }
      // A carrier that writes the header itself: the edge replaces it. No user has the number: the record is one of trunk
      // `carrier`.
      let forging = try RawTrunk(toward: port, from: carrier)
      var forged = forging.request("INVITE", to: "+15559999999", sdp: nil)
      forged.lines.append("X-Trunkline-Trunk: other")
      forging.send(Array(forged.text.utf8), to: SocketAddress(try #require(IPAddress(EdgeUnderTest.host)), port))
      let records = try await gateway.records(1)
      #expect(records.first?["trunk"] as? String == "carrier")
      // A carrier in no list gets no answer of the edge.
      let stranger = try RawTrunk(toward: port, from: try #require(IPAddress(EdgeUnderTest.stranger)))
      stranger.send(
        Array(invite(stranger, ["carrier"]).text.utf8), to: SocketAddress(try #require(IPAddress(EdgeUnderTest.host)), port))
      #expect(await eventually(within: 10) { edge.process.text.contains("dropped: INVITE from \(EdgeUnderTest.stranger)") })
      #expect(stranger.receive(within: 1) == nil)
      // Past the edge: the header of a listed peer is ignored and counted, a stranger's message is dropped.
      let listed = try RawTrunk(gateway, from: other)
      #expect(listed.ask(invite(listed, ["carrier"]).with("Content-Type", nil)) != nil)
      #expect(await eventually(within: 3) { try gateway.metric("trunkline_sip_foreign_trunk_names_total") == 1 })
      _ = try await gateway.records(2)
      #expect(gateway.records.last?["trunk"] as? String == "other", "of the trunk whose peer it is")
      // From the edge itself: without a name, with an unknown one, with two.
      let raw = try RawTrunk(gateway, from: try #require(IPAddress(EdgeUnderTest.host)))
      for (names, why) in [([], "trunkMissing"), (["nobody"], "trunkUnknown"), (["carrier", "carrier"], "trunkTwice")] {
        #expect(raw.ask(invite(raw, names))?.code == 403)
        #expect(await eventually(within: 3) { try gateway.metric("trunkline_sip_refused_total{reason=\"\(why)\"}") == 1 })
      }
      #expect(gateway.process.text.contains("let the edge set X-Trunkline-Trunk once"))
      await edge.stop()
    }

    @Test func `a node that drains gets no new call, and the carrier gets no refusal`() async throws {
      let port = try FreePorts.both()
      let (first, second) = (try await node(port), try await node(port))
      let edge = try await EdgeUnderTest(in: first.folder, port: port, nodes: [row(first), row(second)])
      // Both nodes have alice's phone, and the first one a call of hers, so that draining lasts. The later calls are bob's.
      var phones = [
        try await Peers.ownPhone(second, user: "bob", device: "bob", ["--answer", "--answer-after", "0.1", "--calls", "20"])
      ]
      for node in [first, second] {
        phones.append(try await Peers.ownPhone(node, device: "phone", ["--answer", "--answer-after", "0.1", "--calls", "20"]))
      }
      var long: [Spawned] = []
      while try first.metric(#"trunkline_calls{state="connected"}"#) != 1, long.count < 4 {
        long.append(try call(first, port, "call", ["-d", "60000"]))
        let count = long.count
        #expect(
          await eventually(within: 10) {
            try [first, second].map { try $0.metric(#"trunkline_calls{state="connected"}"#) ?? 0 }.reduce(0, +) == Double(count)
          })
      }
      #expect(try first.metric(#"trunkline_calls{state="connected"}"#) == 1)
      #expect(try HTTP.request("GET", "/v1/ready", port: first.app).status == 200)
      first.process.signal(SIGTERM)
      // at once: the edge does not know it yet, the first node answers 503 and the second one handles the call
      for _ in 0..<2 {
        let carrier = try call(second, port, to: "+15551230002")
        #expect(try await carrier.finish(within: 20) == 0, "\(carrier.text.suffix(6_000))\n\(edge.process.text.suffix(6_000))")
      }
      let answer = try HTTP.request("GET", "/v1/ready", port: first.app)
      #expect(answer.status == 503 && answer.body.contains(#""ready":false"#))
      // the edge learnt it by OPTIONS: from now on no INVITE comes here
      let told = #"trunkline_sip_responses_total{direction="out",method="OPTIONS",code="503",trunk="(edge)"}"#
      #expect(await eventually(within: 5) { try first.metric(told) ?? 0 > 0 })
      let invites = #"trunkline_sip_messages_total{direction="in",transport="udp",kind="INVITE"}"#
      let before = try first.metric(invites)
      for _ in 0..<3 {
        let carrier = try call(second, port, to: "+15551230002")
        #expect(try await carrier.finish(within: 20) == 0, "\(carrier.text.suffix(6_000))")
      }
      #expect(try first.metric(invites) == before)
      #expect(try first.metric(#"trunkline_calls{state="connected"}"#) == 1, "the call that was there goes on")
      for peer in long + phones { peer.signal(SIGKILL) }
      first.process.signal(SIGKILL)
      await edge.stop()
    }

    /// The behaviour that reaping relies on: docs/design/cluster-failures.md.
    @Test(arguments: ["udp", "tcp"])
    func `a ringing INVITE of a dead node is tried at the next one once any node sends 503 for it, from whatever address`(
      transport: String
    ) async throws {
      let port = try FreePorts.both()
      let gateway = try await node(port, over: transport)
      let dead = try FreePorts.both()
      let fake = try await dying(gateway, port, dead, transport, then: "refuse")
      let edge = try await EdgeUnderTest(
        in: gateway.folder, port: port,
        nodes: [row(gateway, over: transport), "sip:127.0.0.4:\(dead)" + (transport == "tcp" ? ";transport=tcp" : "")])
      let phone = try await Peers.ownPhone(gateway, ["--answer", "--answer-after", "0.1", "--calls", "2"])
      // alternately: one of two calls reaches the node that dies
      for _ in 0..<2 {
        let carrier = try call(gateway, port)
        #expect(try await carrier.finish(within: 20) == 0, "\(carrier.text.suffix(6_000))\n\(edge.process.text.suffix(6_000))")
      }
      #expect(fake.text.contains(#""event": "refused""#) && fake.text.contains(#"["carrier"]"#), "\(fake.text)")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      _ = try await gateway.records(2)
      #expect(gateway.endReasons == ["remoteHangup", "remoteHangup"])
      await edge.stop()
      try await gateway.finish()
    }

    @Test(arguments: ["udp", "tcp"], [false, true])
    func
      `a BYE for a dead node comes through the edge from another node's address; a 503 for its INVITE that comes after the 200 does nothing`(
        transport: String, isLate: Bool
      ) async throws
    {
      let port = try FreePorts.both()
      let gateway = try await node(port, over: transport)
      let dead = try FreePorts.both()
      let fake = try await dying(gateway, port, dead, transport, then: isLate ? "late" : "bye")
      let parameter = transport == "tcp" ? ";transport=tcp" : ""
      // flags 4: known, but never probed or called
      let edge = try await EdgeUnderTest(
        in: gateway.folder, port: port, nodes: ["sip:127.0.0.4:\(dead)\(parameter)", "sip:127.0.0.5:\(dead)\(parameter) 4"])
      let carrier = try call(gateway, port, "call_until_bye")
      #expect(try await carrier.finish(within: 20) == 0, "\(carrier.text.suffix(6_000))\n\(edge.process.text.suffix(6_000))")
      #expect(try await fake.event("bye answered")["code"] as? Int == 200)
      #expect(fake.text.contains(#""event": "refused""#) == isLate)
      await edge.stop()
      try await gateway.finish()
    }

    @Test(arguments: ["node", "port", "address"])
    func `a redirect of a node is followed to another node, and not to another program at a node's address, nor elsewhere`(
      target: String
    ) async throws {
      let port = try FreePorts.both()
      let gateway = try await node(port)
      let redirecting = try FreePorts.both()
      let foreign = try RawTrunk(
        toward: port, from: try #require(IPAddress(target == "address" ? EdgeUnderTest.stranger : "127.0.0.1")))
      let to = target == "node" ? "127.0.0.1:\(gateway.sip)" : "\(foreign.address)"
      let fake = try await dying(gateway, port, redirecting, "udp", then: "redirect", ["--to", to])
      let edge = try await EdgeUnderTest(
        in: gateway.folder, port: port, nodes: [row(gateway), "sip:127.0.0.4:\(redirecting)"])
      let phone = try await Peers.ownPhone(gateway, ["--answer", "--answer-after", "0.1", "--calls", "2"])
      // alternately: one of two calls reaches the redirecting node, and either way the gateway gets both in the end
      for _ in 0..<2 {
        let carrier = try call(gateway, port)
        #expect(try await carrier.finish(within: 20) == 0, "\(carrier.text.suffix(6_000))\n\(edge.process.text.suffix(6_000))")
      }
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      #expect(fake.text.contains(#""event": "redirected""#))
      #expect(foreign.receive(within: 1) == nil)
      #expect(edge.process.text.contains("not followed") == (target != "node"))
      fake.signal(SIGTERM)
      await edge.stop()
      try await gateway.finish()
    }

    @Test func `an INVITE with Replaces comes to the node that has the call, against the rotation`() async throws {
      let port = try FreePorts.both()
      let nodes = [try await node(port), try await node(port)]
      let edge = try await EdgeUnderTest(in: nodes[0].folder, port: port, nodes: nodes.map { row($0) })
      var phones: [Spawned] = []
      for node in nodes { phones.append(try await Peers.phone(node, ["--answer-after", "0.1"])) }
      let (host, carrier) = (try #require(IPAddress(EdgeUnderTest.host)), try #require(IPAddress(EdgeUnderTest.carrier)))
      // alternately: the first call reaches one of them, the second would reach the other
      for _ in 0..<2 {
        let (one, two) = (
          try RawTrunk(toward: port, at: host, from: carrier), try RawTrunk(toward: port, at: host, from: carrier)
        )
        let first = one.request("INVITE", sdp: RawTrunk.offer())
        let answer = try #require(one.ask(first))
        #expect(answer.code == 200, "\(answer.text)")
        func tag(_ line: String?) -> String { line?.components(separatedBy: "tag=").last ?? "" }
        let own = tag(first.lines.first { $0.hasPrefix("From:") })
        var second = two.request("INVITE", sdp: RawTrunk.offer())
          .with("Replaces", "\(first.callID);to-tag=\(tag(answer.header("To")));from-tag=\(own)")
        second.lines[0] = "INVITE \(try #require(answer.target)) SIP/2.0"
        let taken = try #require(two.ask(second))
        #expect(taken.code == 200, "\(taken.text)\n\(edge.process.text.suffix(1_000))")
        let bye = try #require(one.awaited("BYE"))
        one.reply(to: bye, "200 OK")
        #expect(two.ask(two.request("BYE", sequence: 2, in: second, taken))?.code == 200)
      }
      #expect(await eventually(within: 5) { nodes.flatMap(\.records).count == 2 })
      for phone in phones {
        phone.type("quit")
        _ = try await phone.finish(within: 10)
      }
      await edge.stop()
      for node in nodes { try await node.finish() }
    }

    @Test(arguments: [false, true])
    func `a node that redirects to itself, and two that redirect to each other: the call reaches a third one`(
      areTwo: Bool
    ) async throws {
      let port = try FreePorts.both()
      let gateway = try await node(port)
      let (one, other) = (try FreePorts.both(), try FreePorts.both())
      var fakes = [
        try await dying(gateway, port, one, "udp", then: "redirect", ["--to", "127.0.0.4:\(areTwo ? other : one)"])
      ]
      if areTwo { fakes.append(try await dying(gateway, port, other, "udp", then: "redirect", ["--to", "127.0.0.4:\(one)"])) }
      let edge = try await EdgeUnderTest(
        in: gateway.folder, port: port,
        nodes: [row(gateway), "sip:127.0.0.4:\(one)"] + (areTwo ? ["sip:127.0.0.4:\(other)"] : []))
      let phone = try await Peers.ownPhone(gateway, ["--answer", "--answer-after", "0.1", "--calls", "\(fakes.count + 1)"])
      // alternately: all but one reach a redirecting node
      for _ in 0...fakes.count {
        let carrier = try call(gateway, port)
        #expect(try await carrier.finish(within: 20) == 0, "\(carrier.text.suffix(6_000))\n\(edge.process.text.suffix(6_000))")
      }
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      // each is called in rotation, as the target of a redirect, and again after a redirect
      let asked = fakes.map { fake in fake.events.count { $0["event"] as? String == "redirected" } }
      #expect(asked.allSatisfy { $0 >= 2 } && asked.reduce(0, +) <= (areTwo ? 8 : 3), "\(asked)")
      for fake in fakes { fake.signal(SIGTERM) }
      await edge.stop()
      try await gateway.finish()
    }

    @Test(arguments: ["udp", "tcp"]) func `a redirect to a node that has just died: the call comes to the next one`(
      transport: String
    )
      async throws
    {
      let port = try FreePorts.both()
      let gateway = try await node(port, over: transport)
      let (redirecting, dead) = (try FreePorts.both(), try FreePorts.both())
      let fake = try await dying(gateway, port, redirecting, transport, then: "redirect", ["--to", "127.0.0.5:\(dead)"])
      let parameter = transport == "tcp" ? ";transport=tcp" : ""
      let edge = try await EdgeUnderTest(
        in: gateway.folder, port: port,
        nodes: [row(gateway, over: transport), "sip:127.0.0.4:\(redirecting)\(parameter)", "sip:127.0.0.5:\(dead)\(parameter) 4"])
      let phone = try await Peers.ownPhone(gateway, ["--answer", "--answer-after", "0.1", "--calls", "2"])
      for _ in 0..<2 {
        let carrier = try call(gateway, port)
        #expect(try await carrier.finish(within: 20) == 0, "\(carrier.text.suffix(6_000))\n\(edge.process.text.suffix(6_000))")
      }
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      #expect(fake.text.contains(#""event": "redirected""#))
      fake.signal(SIGTERM)
      await edge.stop()
      try await gateway.finish()
    }

    private func dying(
      _ gateway: GatewayUnderTest, _ edge: UInt16, _ port: UInt16, _ transport: String, then: String, _ more: [String] = []
    ) async throws -> Spawned {
      let fake = try Peers.python(
        "dying-node", "edge_node.py",
        [
          "--listen", "127.0.0.4:\(port)", "--edge", "\(EdgeUnderTest.host):\(edge)", "--transport", transport,
          "--from", "127.0.0.5:\(port)", "--then", then,
        ] + more, gateway)
      _ = try await fake.event("listening")
      return fake
    }
  }
}
