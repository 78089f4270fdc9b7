import Foundation
import Testing
import TrunklineBytes

extension Interop {
  /// A trunk that is let in and then breaks the rules, inside calls of both directions.
  @Suite(.enabled(if: Surroundings.missing == nil, "\(Surroundings.missing ?? "")"), .serialized) struct HostileTrunkTests {
    @Test func `nonsense inside a dialog is refused with its code and the call goes on`() async throws {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      let trunk = try RawTrunk(gateway)
      let first = trunk.request("INVITE", sdp: RawTrunk.offer())
      let answer = try #require(trunk.ask(first))
      #expect(answer.code == 200)
      _ = try await phone.event("call.connected")
      func ask(_ method: String, _ sequence: Int, sdp: String? = nil) -> Int? {
        trunk.ask(trunk.request(method, sequence: sequence, in: first, answer, sdp: sdp), within: 3)?.code
      }
      #expect(ask("INVITE", 2, sdp: "no description at all").map { (400...499).contains($0) } == true)
      #expect(ask("INVITE", 3, sdp: RawTrunk.offer("18", more: ["a=rtpmap:18 G729/8000"])) == 488)
      #expect(ask("TELEPORT", 4) == 501)
      #expect(ask("SUBSCRIBE", 5) == 405 || ask("SUBSCRIBE", 6) == 501)
      #expect(ask("OPTIONS", 7) == 200)
      #expect(ask("BYE", 1) == 500, "a number from the past (RFC 3261 §12.2.2)")
      trunk.send(trunk.request("BYE", sequence: 9, in: first, answer).with("CSeq", "nine BYE").text)
      trunk.send(trunk.request("BYE", sequence: 10, in: first, answer).with("To", "<sip:x@127.0.0.1>;tag=another").text)
      trunk.send(trunk.request("ACK", sequence: 1, in: first, answer, sdp: "a second ACK with nonsense").text)
      #expect(try gateway.metric(#"trunkline_calls{state="connected"}"#) == 1)
      #expect(ask("INVITE", 20, sdp: RawTrunk.offer()) == 200, "a good re-INVITE is taken all the same")
      #expect(ask("BYE", 21) == 200)
      #expect(try await phone.finish(within: 10) == 0)
      _ = try await gateway.records(1)
      #expect(gateway.endReasons == ["remoteHangup"])
      try await gateway.finish(calls: [first.callID])
    }

    /// Numbers that the outbound routes have, in every spelling, through every header that could send a call on.
    @Test func `nothing routes trunk to trunk: whatever a trunk asks for, no INVITE leaves`() async throws {
      let gateway = try await GatewayUnderTest([
        "trunks: [ { name: carrier, peers: [127.0.0.1], uri: \"sip:127.0.0.1:9\", trust_identity: true }, { name: second, peers: [127.0.0.2], uri: \"sip:127.0.0.1:9\" } ]",
        "routes: { inbound: [ { trunk: carrier, to: users }, { trunk: second, to: users } ], outbound: [ { prefix: \"\", trunk: second } ] }",
      ])
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      let trunks = [try RawTrunk(gateway), try RawTrunk(gateway, from: IPAddress(127, 0, 0, 2))]
      let uris = [
        "sip:+15557654321@127.0.0.1", "sip:15557654321@127.0.0.1", "sip:%2B15557654321@127.0.0.1", "sip:0015557654321@127.0.0.1",
        "tel:+15557654321", "sip:+15557654321;phone-context=+1@127.0.0.1;user=phone", "sip:911@127.0.0.1", "sip:112@127.0.0.1",
        "sip:+15557654321@192.0.2.1:5060", "sip:second@127.0.0.1", "sip:+15557654321@second",
        "sip:carrier@127.0.0.1;maddr=192.0.2.1",
        "sip:+15557654321@127.0.0.1?Route=%3Csip:192.0.2.1%3E", "sip:alice@127.0.0.1", "sip:127.0.0.1",
      ]
      let headers: [(String, String)] = [
        ("Route", "<sip:192.0.2.1;lr>"), ("Route", "<sip:127.0.0.2:5060;lr>, <sip:+15557654321@192.0.2.1>"),
        ("Refer-To", "<sip:+15557654321@127.0.0.1>"), ("Diversion", "<sip:+15551230001@127.0.0.1>;reason=unconditional"),
        ("P-Asserted-Identity", "<sip:+15551230001@127.0.0.1>"), ("Replaces", "any;to-tag=1;from-tag=2"),
        ("Request-Disposition", "proxy, fork"), ("Proxy-Require", "path"), ("Target-Dialog", "any;local-tag=1;remote-tag=2"),
      ]
      var refused: [String] = []
      for trunk in trunks {
        for uri in uris {
          var request = trunk.request("INVITE", sdp: RawTrunk.offer())
          request.lines[0] = "INVITE \(uri) SIP/2.0"
          let code = trunk.ask(request.with("To", "<\(uri)>"))?.code
          #expect((code ?? 0) >= 400, "\(uri): \(code ?? 0)")
          refused.append(request.callID)
        }
        for (name, value) in headers {
          let request = trunk.request("INVITE", to: "+15557654321", sdp: RawTrunk.offer()).with(name, value)
          let code = trunk.ask(request)?.code
          #expect((code ?? 0) >= 400, "\(name): \(code ?? 0)")
          refused.append(request.callID)
        }
        let outside = trunk.request("REFER").with("Refer-To", "<sip:+15557654321@127.0.0.1>")
        #expect((trunk.ask(outside)?.code ?? 0) >= 400)
      }
      // in a call, too: transfers are off
      let first = trunks[0].request("INVITE", sdp: RawTrunk.offer())
      let answer = try #require(trunks[0].ask(first))
      let refer = trunks[0].request("REFER", sequence: 2, in: first, answer).with("Refer-To", "<sip:+15557654321@127.0.0.1>")
      #expect((trunks[0].ask(refer)?.code ?? 0) >= 400)
      #expect(trunks[0].ask(trunks[0].request("BYE", sequence: 3, in: first, answer))?.code == 200)
      #expect(try await phone.finish(within: 10) == 0)
      #expect(try gateway.sum("trunkline_sip_requests_total", #"direction="out",method="INVITE""#) == 0)
      #expect(try gateway.sum("trunkline_calls_started_total", #"direction="out""#) == 0)
      #expect(gateway.records.allSatisfy { $0["direction"] as? String == "in" })
      gateway.note(invites: refused + [first.callID])
      try await gateway.finish()
    }

    @Test func `a BYE that comes before the ACK ends the call like any other`() async throws {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      let trunk = try RawTrunk(gateway)
      let first = trunk.request("INVITE", sdp: RawTrunk.offer())
      trunk.send(first.text)
      _ = try await phone.event("call.connected")
      var answer: RawTrunk.Answer?
      let deadline = Deadline(in: 5)
      while answer == nil, !deadline.isOver {
        guard let text = trunk.receive(within: 200) else { continue }
        if text.hasPrefix("SIP/2.0 200"), text.contains("CSeq: 1 INVITE") { answer = .init(code: 200, text: text) }
      }
      #expect(trunk.ask(trunk.request("BYE", sequence: 2, in: first, try #require(answer)))?.code == 200)
      _ = try await phone.event("call.ended") { $0["reason"] as? String == "remoteHangup" }
      try await phone.finish(within: 10)
      try await gateway.finish(calls: [first.callID])
    }

    @Test(arguments: ["G.729", "nonsense", "nothing"])
    func `a carrier that answers with what cannot be used gets ACK and BYE`(kind: String) async throws {
      let gateway = try await GatewayUnderTest()
      let carrier = try RawTrunk(gateway, port: gateway.carrier)
      let phone = try await Peers.phone(gateway, ["--call", "+15550001111", "--calls", "1"])
      let invite = try #require(carrier.awaited("INVITE"))
      carrier.send("SIP/2.0 999\r\n\r\n")
      carrier.reply(to: invite.replacing("branch=z9hG4bK", with: "branch=z9hG4bKx"), "200 OK", sdp: RawTrunk.offer())
      carrier.reply(to: invite.replacing(" INVITE\r\n", with: " BYE\r\n"), "200 OK", sdp: RawTrunk.offer())
      carrier.reply(to: invite, "183 Session Progress", sdp: "nonsense")
      let sdp = ["G.729": RawTrunk.offer("18", more: ["a=rtpmap:18 G729/8000"]), "nonsense": "v=1"][kind]
      carrier.reply(to: invite, "200 OK", sdp: sdp)
      #expect(carrier.awaited("ACK") != nil)
      let bye = try #require(carrier.awaited("BYE"))
      carrier.reply(to: bye, "200 OK")
      _ = try await phone.event("call.ended") { $0["reason"] as? String == "codec" }
      try await phone.finish(within: 10)
      _ = try await gateway.records(1)
      #expect(gateway.endReasons == ["codec"])
      try await gateway.finish(calls: [], outgoing: 1)
    }

    @Test func `a carrier that is not there fails the call at once, with a cause`() async throws {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway, ["--call", "+15550001111", "--calls", "1"])
      let ended = try await phone.event("call.ended", within: 8)
      #expect(["trunkLost", "trunkFailed"].contains(ended["reason"] as? String), "\(ended)")
      try await phone.finish(within: 10)
      try await gateway.finish(calls: [], outgoing: 1)
    }
  }
}
