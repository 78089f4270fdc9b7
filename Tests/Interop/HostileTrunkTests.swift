import Bytes
import Foundation
import Testing

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

    @Test func `a BYE that comes before the ACK ends the call like any other`() async throws {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      let trunk = try RawTrunk(gateway)
      let first = trunk.request("INVITE", sdp: RawTrunk.offer())
      trunk.send(first.text)
      _ = try await phone.event("call.connected")
      var answer: RawTrunk.Answer?
      while answer == nil, let text = trunk.receive(within: 1_500) {
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
      #expect(["trunkLost", "server", "overload"].contains(ended["reason"] as? String), "\(ended)")
      try await phone.finish(within: 10)
      try await gateway.finish(calls: [], outgoing: 1)
    }
  }
}
