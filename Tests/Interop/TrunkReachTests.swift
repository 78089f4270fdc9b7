import Foundation
import Testing
import TrunklineBytes

extension Interop {
  /// Trunks by name: a name server on loopback, servers on 127.0.0.x that sipp and raw sockets play.
  @Suite(.enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct TrunkReachTests {
    /// A gateway whose only trunk is a name.
    private func gateway(_ uri: String, dns: UInt16, trunk: String = "", more: [String] = []) async throws -> GatewayUnderTest {
      try await GatewayUnderTest(
        [
          "dns: { servers: [ \"127.0.0.1:\(dns)\" ] }",
          "trunks: [ { name: carrier, peers: [127.0.0.0/8], uri: \"\(uri)\"\(trunk.isEmpty ? "" : ", " + trunk) } ]",
        ] + more)
    }

    @Test func `SRV: a refused server and a silent one make way within four seconds, in one record`() async throws {
      let folder = try NameServer.folder()
      defer { try? FileManager.default.removeItem(atPath: folder) }
      let (dns, refused, silent, good) = (try FreePorts.udp(), try FreePorts.udp(), try FreePorts.both(), try FreePorts.both())
      let server = try await NameServer(
        [
          "carrier.example": ["60 NAPTR 10 10 \"s\" \"SIP+D2U\" \"\" _sip._udp.carrier.example."],
          "_sip._udp.carrier.example": [
            "60 SRV 10 1 \(refused) dead.example.", "60 SRV 20 1 \(silent) quiet.example.", "60 SRV 30 1 \(good) good.example.",
          ],
          "dead.example": ["60 A 127.0.0.1"], "quiet.example": ["60 A 127.0.0.2"], "good.example": ["60 A 127.0.0.1"],
        ], port: dns, in: folder)
      let gateway = try await gateway("sip:carrier.example", dns: dns)
      let quiet = try RawTrunk(gateway, from: IPAddress(127, 0, 0, 2), port: silent)
      let carrier = try Peers.sipp(gateway, "answer", ["-p", "\(good)", "-key", "audio_port", "9"])
      let phone = try await Peers.phone(gateway, ["--call", "+15557654321", "--end-after", "0.5", "--calls", "1"])
      #expect(try await phone.finish(within: 25) == 0, "\(phone.text)")
      #expect(try await carrier.finish(within: 10) == 0, "\(carrier.text.suffix(6_000))")
      let record = try #require(try await gateway.records(1).first)
      let times = try #require(record["times"] as? [String: Int])
      let took = (times["connected"] ?? 0) - (times["inviteSent"] ?? 0)
      #expect((3_000...5_500).contains(took), "refused at once, silent 3.5 s: \(took) ms")
      #expect(gateway.records.count == 1)
      // the silent server wakes up too late: its answer gets ACK and BYE, and no second record
      let invite = try #require(quiet.awaited("INVITE"))
      quiet.reply(to: invite, "200 OK", sdp: RawTrunk.offer("0"))
      #expect(quiet.awaited("ACK", within: 3) != nil)
      let bye = try #require(quiet.awaited("BYE", within: 3))
      quiet.reply(to: bye, "200 OK")
      try await gateway.finish()
      #expect(gateway.records.count == 1)
      withExtendedLifetime(server) {}
    }

    @Test func `the last good answers carry calls while the name server is dead; its new ones are taken`() async throws {
      let folder = try NameServer.folder()
      defer { try? FileManager.default.removeItem(atPath: folder) }
      let (dns, first, second) = (try FreePorts.udp(), try FreePorts.both(), try FreePorts.both())
      func zone(_ port: UInt16) -> [String: [String]] {
        ["_sip._udp.carrier.example": ["1 SRV 1 1 \(port) a.example."], "a.example": ["1 A 127.0.0.1"]]
      }
      let server = try await NameServer(zone(first), port: dns, in: folder)
      let gateway = try await gateway("sip:carrier.example;transport=udp", dns: dns)
      try await server.become("dead")
      // The answers' time is over: the gateway asks again, and hears nothing.
      _ = try await server.peer.event("ignored", within: 10)
      for port in [first, second] {
        if port == second {
          try await server.replace(zone(second))
          try await server.become("alive")
          let asked = await eventually(within: 20) { gateway.process.text.components(separatedBy: "trunk located").count > 2 }
          #expect(asked)
        }
        let carrier = try Peers.sipp(gateway, "answer", ["-p", "\(port)", "-key", "audio_port", "9"])
        let phone = try await Peers.phone(gateway, ["--call", "+15557654321", "--end-after", "0.2", "--calls", "1"])
        #expect(try await phone.finish(within: 25) == 0, "\(phone.text)")
        #expect(try await carrier.finish(within: 10) == 0, "\(carrier.text.suffix(6_000))")
      }
      try await gateway.finish()
    }

    @Test func `a full or failing trunk makes way for the next of its route`() async throws {
      let good = try FreePorts.both()
      let gateway = try await GatewayUnderTest([])
      let yaml = gateway.folder + "/gateway.yaml"
      var text = try String(contentsOfFile: yaml, encoding: .utf8)
      text = text.replacing(
        "trunks: [ {", with: "trunks: [ { name: second, peers: [127.0.0.3], uri: \"sip:127.0.0.1:\(good)\" }, {")
      text = text.replacing("{ prefix: \"+\", trunk: carrier }", with: "{ prefix: \"+\", trunks: [ carrier, second ] }")
      try text.write(toFile: yaml, atomically: true, encoding: .utf8)
      gateway.process.signal(SIGHUP)
      #expect(await eventually(within: 5) { gateway.process.text.contains("configuration read again") })
      let busy = try await Peers.callee(gateway, "unavailable")
      let carrier = try Peers.sipp(gateway, "answer", ["-p", "\(good)", "-key", "audio_port", "9"])
      let phone = try await Peers.phone(gateway, ["--call", "+15557654321", "--end-after", "0.2", "--calls", "1"])
      #expect(try await phone.finish(within: 25) == 0, "\(phone.text)")
      for peer in [busy, carrier] { #expect(try await peer.finish(within: 10) == 0, "\(peer.text.suffix(6_000))") }
      #expect(try await gateway.records(1).first?["trunk"] as? String == "second")
      try await gateway.finish()
    }

    @Test func `the gateway registers with its password, and a registrar that was away is asked again`() async throws {
      let gateway = try await GatewayUnderTest(trunk: "auth: { username: u, password_file: password }, register: true")
      #expect(await eventually(within: 5) { gateway.process.text.contains("registration failed") })
      let registrar = try await Peers.callee(gateway, "register")
      #expect(try await registrar.finish(within: 15) == 0, "\(registrar.text.suffix(6_000))")
      #expect(await eventually(within: 5) { try gateway.sum("trunkline_trunk_events_total", "event=\"registered\"") == 1 })
      let farewell = try await Peers.callee(gateway, "unregister")
      try await gateway.finish()
      #expect(try await farewell.finish(within: 5) == 0, "\(farewell.text.suffix(6_000))")
    }

    @Test func `SIGHUP without a trunk: its registration is taken back, its probes end, its call goes on`() async throws {
      let ports = (sip: try FreePorts.both(), app: try FreePorts.tcp(), admin: try FreePorts.tcp())
      let carrier = try RawTrunk(toward: ports.sip)
      let gateway = try await GatewayUnderTest(
        trunk: "register: { user: gw, expires: 60s }, probe: 1s", ports: ports, carrier: carrier.address.port)
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      let register = try #require(carrier.awaited("REGISTER"))
      carrier.reply(to: register, "200 OK")
      #expect(await eventually(within: 5) { try gateway.sum("trunkline_trunk_events_total", "event=\"registered\"") == 1 })
      let probe = try #require(carrier.awaited("OPTIONS"))
      carrier.reply(to: probe, "200 OK")
      let first = carrier.request("INVITE", sdp: RawTrunk.offer())
      let answer = try #require(carrier.ask(first))
      #expect(answer.code == 200)

      let path = gateway.folder + "/gateway.yaml"
      let text = try String(contentsOfFile: path, encoding: .utf8).replacing("name: carrier,", with: "name: another,")
        .replacing("trunk: carrier", with: "trunk: another").replacing("127.0.0.0/8", with: "192.0.2.7")
        .replacing("register: { user: gw, expires: 60s }, probe: 1s", with: "hold: local")
      try text.write(toFile: path, atomically: true, encoding: .utf8)
      gateway.process.signal(SIGHUP)
      let farewell = try #require(carrier.awaited("REGISTER"))
      #expect(farewell.contains("\r\nExpires: 0\r\n") && farewell.contains("<sip:gw@"))
      func callID(_ text: String) -> Substring? { text.split(separator: "\r\n").first { $0.hasPrefix("Call-ID:") } }
      #expect(callID(farewell) == callID(register))
      carrier.reply(to: farewell, "200 OK")

      #expect(carrier.ask(carrier.request("INVITE", sequence: 2, in: first, answer, sdp: RawTrunk.offer()))?.code == 200)
      let second = carrier.request("INVITE", sdp: RawTrunk.offer())
      #expect((carrier.ask(second)?.code ?? 0) >= 400, "no route for a new call")
      var probes: Set<Substring?> = []
      while let text = carrier.receive(within: 1_300) { if text.hasPrefix("OPTIONS ") { probes.insert(callID(text)) } }
      #expect(probes.count <= 1, "one may have been on its way: \(probes)")
      #expect(carrier.ask(carrier.request("BYE", sequence: 3, in: first, answer))?.code == 200)
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      _ = try await gateway.records(1)
      #expect(gateway.endReasons.first == "remoteHangup")
      try await gateway.finish(calls: [first.callID], refused: [second.callID])
    }

    @Test func `a peer that no list names gets a challenge where a trunk takes any, and silence elsewhere`() async throws {
      let listed = "{ name: carrier, peers: [127.0.0.1], uri: \"sip:127.0.0.1:9\" }"
      let open = "{ name: pbx, peers: any, peer_auth: { username: u, password_file: password } }"
      let closed = try await GatewayUnderTest(["trunks: [ \(listed) ]"])
      let stranger = try RawTrunk(closed, from: IPAddress(127, 0, 0, 9))
      stranger.send(stranger.request("OPTIONS").text)
      // what came before it has been seen to when the trunk has its answer
      let trunk = try RawTrunk(closed)
      #expect(trunk.ask(trunk.request("OPTIONS"))?.code == 200)
      #expect(stranger.receive(within: 1) == nil)
      #expect(await eventually(within: 5) { try closed.sum("trunkline_sip_dropped_total", #"reason="stranger""#) == 1 })
      try await closed.finish()
      let gateway = try await GatewayUnderTest(["trunks: [ \(listed), \(open) ]"])
      let pbx = try RawTrunk(gateway, from: IPAddress(127, 0, 0, 9))
      for method in ["OPTIONS", "INVITE", "REGISTER"] {
        let answer = pbx.ask(pbx.request(method, sdp: method == "INVITE" ? RawTrunk.offer() : nil), within: 3)
        #expect(answer?.code == 401 && answer?.header("WWW-Authenticate")?.contains("SHA-256") == true, "\(method)")
      }
      let own = try RawTrunk(gateway)
      #expect(own.ask(own.request("OPTIONS"), within: 3)?.code == 200)
      #expect(gateway.records.isEmpty)
      try await gateway.finish()
    }

    @Test func `openssl speaks SIP over TLS with the gateway, and sees a renewed certificate without a restart`() async throws {
      let folder = try NameServer.folder()
      defer { try? FileManager.default.removeItem(atPath: folder) }
      func certificate(_ name: String) async throws {
        let made = try Spawned(
          "openssl", "/usr/bin/openssl",
          [
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-keyout", "sip.key",
            "-out",
            "sip.pem", "-subj", "/CN=" + name, "-addext", "subjectAltName=DNS:" + name,
          ], in: folder)
        #expect(try await made.finish(within: 20) == 0, "\(made.text)")
      }
      try await certificate("first.example")
      let (sip, tls) = (try FreePorts.both(), try FreePorts.tcp())
      let (app, admin) = (try FreePorts.tcp(), try FreePorts.tcp())
      let gateway = try await GatewayUnderTest(
        [
          "listen: { sip: { udp: 127.0.0.1:\(sip), tls: { address: 127.0.0.1:\(tls), cert: \(folder)/sip.pem, key: \(folder)/sip.key } }, app: { address: 127.0.0.1:\(app) }, admin: 127.0.0.1:\(admin) }"
        ], ports: (sip, app, admin))
      func asks(_ name: String) async throws -> Bool {
        let client = try Spawned(
          "s_client", "/usr/bin/openssl",
          [
            "s_client", "-connect", "127.0.0.1:\(tls)", "-tls1_2", "-CAfile", "sip.pem", "-verify_hostname", name,
            "-verify_return_error", "-quiet",
          ], in: folder)
        let lines = [
          "OPTIONS sip:127.0.0.1 SIP/2.0", "Via: SIP/2.0/TLS 127.0.0.1:9;branch=z9hG4bKs;rport", "From: <sip:a@127.0.0.1>;tag=1",
          "To: <sip:127.0.0.1>", "Call-ID: \(name)", "CSeq: 1 OPTIONS", "Max-Forwards: 70", "Content-Length: 0", "",
        ]
        client.type(lines.joined(separator: "\r\n") + "\r")
        let answered = await eventually(within: 5) { client.text.contains("SIP/2.0 200") || !client.isRunning }
        let ok = client.text.contains("SIP/2.0 200")
        client.signal(SIGTERM)
        _ = try? await client.finish(within: 5)
        return answered && ok
      }
      #expect(try await asks("first.example"))
      #expect(try await asks("other.example") == false)
      try await certificate("second.example")
      #expect(await eventually(within: 12) { gateway.process.text.contains("certificates changed on disk") })
      #expect(try await asks("second.example"))
      try await gateway.finish()
    }
  }
}
