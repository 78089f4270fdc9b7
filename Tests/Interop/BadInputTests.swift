import Foundation
import Testing
import TrunklineBytes

extension Interop {
  /// What strangers, broken peers and attackers send: a clear answer or silence, and nothing else disturbed.
  @Suite(.enabled(if: Surroundings.missing == nil, "\(Surroundings.missing ?? "")"), .serialized) struct BadInputTests {
    private static let narrow = [
      "trunks: [ { name: carrier, peers: [127.0.0.1/32] } ]", "routes: { inbound: [ { trunk: carrier, to: users } ] }",
    ]

    @Test func `an address that is no trunk's hears nothing, and the trunk beside it is served`() async throws {
      let gateway = try await GatewayUnderTest(Self.narrow)
      let stranger = try RawTrunk(gateway, from: IPAddress(127, 0, 0, 9))
      let trunk = try RawTrunk(gateway)
      stranger.send(stranger.request("INVITE", sdp: RawTrunk.offer()).text)
      stranger.send(stranger.request("OPTIONS").text)
      #expect(await eventually(within: 5) { try gateway.sum("trunkline_sip_dropped_total", #"reason="stranger""#) >= 2 })
      let known = trunk.request("INVITE", to: "+19990000000", sdp: RawTrunk.offer())
      #expect(trunk.ask(known)?.code == 404)
      #expect(trunk.ask(trunk.request("OPTIONS"))?.code == 200)
      #expect(stranger.receive(within: 1) == nil)
      _ = try await gateway.records(1)
      #expect(gateway.endReasons == ["notFound"])
      try await gateway.finish(calls: [known.callID])
    }

    @Test func `offers that cannot be answered become records, one each`() async throws {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway)
      let trunk = try RawTrunk(gateway)
      let offers: [(String, Int)] = [
        (RawTrunk.offer("18", more: ["a=rtpmap:18 G729/8000"]), 488),
        (RawTrunk.offer("101", more: ["a=rtpmap:101 telephone-event/8000"]), 488),
        (RawTrunk.offer("96", more: ["a=rtpmap:96 VP8/90000"]).replacing("m=audio", with: "m=video"), 488),
        ("this is no description", 400), ("v=0\r\n", 400),
        (RawTrunk.offer().replacing("IP4 127.0.0.1", with: "IP4 nowhere"), 400),
      ]
      var calls: [String] = []
      for (sdp, code) in offers {
        let request = trunk.request("INVITE", sdp: sdp)
        let answer = trunk.ask(request)
        #expect(answer?.code == code || (code == 400 && answer?.code == 488), "\(sdp)\n\(answer?.text ?? "silence")")
        calls.append(request.callID)
      }
      _ = try await gateway.records(calls.count)
      #expect(Set(gateway.endReasons) == ["codec"], "\(gateway.endReasons)")
      #expect(!phone.events.contains { $0["event"] as? String == "call.offer" }, "the app was rung for a call that could not be")
      phone.type("quit")
      try await phone.finish(within: 10)
      try await gateway.finish(calls: calls)
    }

    @Test func `malformed requests get the code of RFC 3261 and are counted refusals`() async throws {
      let gateway = try await GatewayUnderTest()
      let trunk = try RawTrunk(gateway)
      let sdp = RawTrunk.offer()
      func invite() -> RawTrunk.Request { trunk.request("INVITE", sdp: sdp) }
      var version = invite()
      version.lines[0] = version.lines[0].replacing("SIP/2.0", with: "SIP/3.0")
      var scheme = invite()
      scheme.lines[0] = "INVITE mailto:nobody SIP/2.0"
      let wrong: [(RawTrunk.Request, Int)] = [
        (invite().with("From", nil), 400), (invite().with("CSeq", "one INVITE"), 400), (invite().with("CSeq", "1 BYE"), 400),
        (invite().with("To", "<<<>"), 400), (version, 505), (scheme, 416), (invite().with("Require", "100rel, teleport"), 420),
        (invite().with("Max-Forwards", "0"), 483), (invite().with("Content-Type", "text/plain"), 415),
        (invite().with("Content-Encoding", "gzip"), 415), (invite().with("Accept", "text/plain"), 406),
      ]
      for (request, code) in wrong {
        let answer = trunk.ask(request, within: 3)
        #expect(answer?.code == code, "\(request.text)\n\(answer?.text ?? "silence")")
      }
      #expect(trunk.ask(trunk.request("TELEPORT"))?.code == 501)
      #expect(trunk.ask(trunk.request("BYE"))?.code == 481)
      #expect(gateway.records.isEmpty)
      try await gateway.finish(calls: [], refused: wrong.map(\.0.callID))
    }

    @Test func `junk on every port: the running call loses not a packet and the next one works`() async throws {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.2", "--calls", "2"])
      let audio = try await Peers.trunkAudio(gateway)
      let caller = try Peers.caller(gateway, "call", audio: audio.port, ["-d", "6500"])
      _ = try await phone.event("call.connected")
      let ports = gateway.trunkPorts
      let junk = try Peers.python(
        "junk", "junk.py",
        [
          "--sip", "\(gateway.sip)", "--app", "\(ports + 58)", "\(ports + 59)", "--trunk", "\(ports)-\(ports + 9)",
          "--seconds", "3", "--http", "\(gateway.app)", "\(gateway.admin)",
        ], gateway)
      let frames = try badApp(gateway, "frames")
      #expect(try await junk.finish(within: 20) == 0, "\(junk.text)")
      #expect(try #require(junk.events.last?["sent"] as? Int) > 500)
      #expect(try await frames.finish(within: 60) == 0, "\(frames.text)")
      expectClosedFrames(frames)
      #expect(try await caller.finish(within: 25) == 0, "\(caller.text.suffix(6_000))")
      let next = try Peers.caller(gateway, "call", ["-d", "500"])
      #expect(try await next.finish(within: 20) == 0, "\(next.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0)
      #expect(try await audio.peer.finish(within: 10) == 0)
      // Not a packet of the call was lost for it; how it sounds beside junk is measured in FaultTests.
      let record = try #require(try await gateway.records(2).first)
      for side in ["fromTrunk", "fromApp"] {
        let stream = try #require(record[side] as? [String: Any])
        #expect(stream["lost"] as? Int == 0, "\(side): \(stream)")
        #expect(try #require(stream["packets"] as? Int) > 250, "\(side): \(stream)")
      }
      #expect(audio.peer.events.contains { $0["event"] as? String == "done" && ($0["received"] as? Int ?? 0) > 250 })
      #expect(try gateway.sum("trunkline_media_drops_total") > 0)
      #expect(try gateway.sum("trunkline_sip_unanswered_total") > 0)
      try await gateway.finish(calls: [caller.callID, next.callID])
    }

    private func expectClosedFrames(_ frames: Spawned) {
      let codes = ["huge": 1009, "binary": 1003, "other first": 4001]
      let answers = frames.events.filter { $0["event"] as? String == "frame" }
      #expect(answers.count == 12)
      for answer in answers {
        guard let name = answer["name"] as? String else { continue }
        let close = answer["close"] as? Int
        let allowed = codes[name].map { [$0] } ?? [1007, 4001]
        #expect(close.map(allowed.contains) == true, "\(answer)")
        #expect(answer["got"] as? String != "welcome")
      }
      let after = frames.events.filter { $0["event"] as? String == "after" }
      #expect(after.count == 8)
      // Closed for a gap in the numbers, or still there: never a socket that is cut.
      for answer in after { #expect(answer["close"] is NSNull || [4002, 1007].contains(answer["close"] as? Int), "\(answer)") }
    }

    @Test func `no token but a good one gets in`() async throws {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      let logins = try badApp(gateway, "logins")
      #expect(try await logins.finish(within: 60) == 0, "\(logins.text)")
      let answers = logins.events.filter { $0["event"] as? String == "login" }
      #expect(answers.count == 17)
      for answer in answers {
        if answer["name"] as? String == "good" {
          #expect(answer["got"] as? String == "welcome", "\(answer)")
        } else {
          #expect(answer["close"] as? Int == 4001, "\(answer)")
          #expect(answer["got"] as? String != "welcome", "\(answer)")
          if let got = answer["got"] as? String {
            #expect(got == "err" && answer["code"] as? String == "auth" && answer["fatal"] as? Bool == true, "\(answer)")
          }
        }
      }
      #expect(try gateway.sum("trunkline_app_hello_refused_total") >= 15)
      let text = gateway.process.text
      #expect(!text.contains("eyJ"), "a token in the log")
      let caller = try Peers.caller(gateway, "call", ["-d", "300"])
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0)
      try await gateway.finish(calls: [caller.callID])
    }

    private func badApp(_ gateway: GatewayUnderTest, _ what: String) throws -> Spawned {
      try Peers.python(
        "bad-\(what)", "bad_app.py",
        [what, "--url", "ws://127.0.0.1:\(gateway.app)/v1/connect", "--key", gateway.folder + "/jwt.key"], gateway)
    }

    @Test func `an advertised name that leads nowhere is named by --check, and by serve, which waits for it`() async throws {
      let folder = try NameServer.folder()
      defer { try? FileManager.default.removeItem(atPath: folder) }
      try "0123456789abcdef0123456789abcdef\n".write(toFile: folder + "/jwt.key", atomically: true, encoding: .utf8)
      try """
      listen: { sip: { udp: 127.0.0.1:\(try FreePorts.both()) }, app: 127.0.0.1:\(try FreePorts.tcp()), admin: 127.0.0.1:\(try FreePorts.tcp()) }
      media: { addresses: [ { bind: 127.0.0.1, advertise: gw.invalid } ] }
      auth: { jwt: { key_file: jwt.key } }
      """.write(toFile: folder + "/gateway.yaml", atomically: true, encoding: .utf8)
      func serve(_ more: [String]) throws -> Spawned {
        try Spawned(
          "serve", Surroundings.trunkline, ["serve", "--config", "gateway.yaml"] + more, in: folder,
          environment: ["RES_OPTIONS": "timeout:1 attempts:1"])
      }
      let why = "gw.invalid has no IPv4 address in DNS"
      let check = try serve(["--check"])
      #expect(try await check.finish(within: 20) == 0, "\(check.text)")
      #expect(check.text.contains(why), "\(check.text)")
      let waiting = try serve([])
      let isTold = await eventually(within: 20) { waiting.text.contains("no usable address") && waiting.text.contains(why) }
      #expect(isTold, "\(waiting.text)")
      waiting.signal(SIGTERM)
      #expect(try await waiting.finish(within: 20) == 0, "\(waiting.text)")
    }

    /// Another configuration with one port of the first, and all else its own.
    @Test(arguments: ["udp", "app", "admin", "store"])
    func `a second serve on a taken address names it and ends with 1`(shared: String) async throws {
      let gateway = try await GatewayUnderTest()
      var text = try String(contentsOfFile: gateway.folder + "/gateway.yaml", encoding: .utf8)
      let ports = [("udp", gateway.sip), ("app", gateway.app), ("admin", gateway.admin), ("media", gateway.trunkPorts)]
      for (name, port) in ports where name != shared {
        let free = name == "media" ? try FreePorts.row(60) : try FreePorts.tcp()
        text = text.replacing("\(port)", with: "\(free)")
        if name == "media" {
          text = text.replacing("app_port: \(port + 58)", with: "app_port: \(free + 58)")
          text = text.replacing("\(free)-\(port + 57)", with: "\(free)-\(free + 57)")
        }
      }
      if shared != "store" { text += "store: { sqlite: second.db }\nrecords: { file: second.jsonl }\n" }
      try text.write(toFile: gateway.folder + "/second.yaml", atomically: true, encoding: .utf8)
      let second = try Spawned("second", Surroundings.trunkline, ["serve", "--config", "second.yaml"], in: gateway.folder)
      #expect(try await second.finish(within: 10) == 1, "\(second.text)")
      let taken = ["udp": gateway.sip, "app": gateway.app, "admin": gateway.admin][shared].map { "127.0.0.1:\($0)" }
      #expect(second.text.contains(taken ?? "trunkline.db"), "\(second.text)")
      #expect(try gateway.get("/readyz").status == 200)
      let trunk = try RawTrunk(gateway)
      let request = trunk.request("INVITE", to: "+19990000000", sdp: RawTrunk.offer())
      #expect(trunk.ask(request)?.code == 404, "the first is disturbed")
      try await gateway.finish(calls: [request.callID])
    }
  }
}
