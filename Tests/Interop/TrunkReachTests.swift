import Bytes
import Foundation
import Testing

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
      #expect(try await carrier.finish(within: 10) == 0, "\(carrier.text.suffix(2_000))")
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
      try await Task.sleep(for: .seconds(2))
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
        #expect(try await carrier.finish(within: 10) == 0, "\(carrier.text.suffix(2_000))")
      }
      try await gateway.finish()
    }

    @Test func `a full or failing trunk makes way for the next of its route`() async throws {
      let good = try FreePorts.both()
      let gateway = try await GatewayUnderTest([])
      let yaml = gateway.folder + "/gateway.yaml"
      var text = try String(contentsOfFile: yaml, encoding: .utf8)
      text = text.replacing("trunks: [ {", with: "trunks: [ { name: second, peers: [127.0.0.3], uri: \"sip:127.0.0.1:\(good)\" }, {")
      text = text.replacing("{ prefix: \"+\", trunk: carrier }", with: "{ prefix: \"+\", trunks: [ carrier, second ] }")
      try text.write(toFile: yaml, atomically: true, encoding: .utf8)
      gateway.process.signal(SIGHUP)
      #expect(await eventually(within: 5) { gateway.process.text.contains("configuration read again") })
      let busy = try await Peers.callee(gateway, "unavailable")
      let carrier = try Peers.sipp(gateway, "answer", ["-p", "\(good)", "-key", "audio_port", "9"])
      let phone = try await Peers.phone(gateway, ["--call", "+15557654321", "--end-after", "0.2", "--calls", "1"])
      #expect(try await phone.finish(within: 25) == 0, "\(phone.text)")
      for peer in [busy, carrier] { #expect(try await peer.finish(within: 10) == 0, "\(peer.text.suffix(2_000))") }
      #expect(try await gateway.records(1).first?["trunk"] as? String == "second")
      try await gateway.finish()
    }

    @Test func `the gateway registers with its password, and a registrar that was away is asked again`() async throws {
      let gateway = try await GatewayUnderTest(trunk: "auth: { username: u, password_file: password }, register: true")
      #expect(await eventually(within: 5) { gateway.process.text.contains("registration failed") })
      let registrar = try await Peers.callee(gateway, "register")
      #expect(try await registrar.finish(within: 15) == 0, "\(registrar.text.suffix(2_000))")
      #expect(await eventually(within: 5) { try gateway.sum("trunkline_trunk_events_total", "event=\"registered\"") == 1 })
      try await gateway.finish()
    }
  }
}
