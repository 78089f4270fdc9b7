import Foundation
import Testing

extension Interop {
  /// RFC 4028 and RFC 3261 §14.1 against sipp: peers that fall silent, and peers that offer at the same time.
  @Suite(.enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct SessionTimerTests {
    private static let seconds = "session_timer: 4, session_minimum: 4"
    private static let timer = ["Supported: timer", "Allow: INVITE, ACK, BYE, CANCEL, UPDATE"]

    /// Both cases wait for seconds and do little: they run at the same time.
    @Test func `who falls silent gets BYE and a record that says why: a caller who was to refresh, a carrier that we refresh`()
      async throws
    {
      async let first: Void = silentCaller()
      async let second: Void = silentCarrier()
      _ = try await (first, second)
    }

    private func silentCaller() async throws {
      let gateway = try await GatewayUnderTest(trunk: Self.seconds)
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      var script = SippScript.caller(Self.timer + ["Session-Expires: 4;refresher=uac", "Min-SE: 4"])
      script.isAnswered(containing: ["Session-Expires: 4;refresher=uac", "Require: timer"])
      script.expectsNo("BYE", milliseconds: 2_000)
      script.awaits("BYE", containing: ["Reason: SIP;cause=408;text=\"Session expired\""])
      script.replies()
      let caller = try Peers.caller(gateway, try script.file(gateway, "silent-caller"))
      #expect(try await caller.finish(within: 15) == 0, "\(caller.text.suffix(6_000))")
      try await expectExpired(gateway, phone)
    }

    private func silentCarrier() async throws {
      let gateway = try await GatewayUnderTest(trunk: Self.seconds)
      let phone = try await Peers.phone(gateway, ["--calls", "1"])
      var script = SippScript.callee(containing: ["Session-Expires: 4", "Min-SE: 4", "Supported:.*timer"])
      script.answers(200, Self.timer + ["Require: timer", "Session-Expires: 4;refresher=uac"], sdp: SippScript.sdp())
      script.awaits("ACK")
      script.awaits("UPDATE", containing: ["Session-Expires: 4;refresher=uac", "Min-SE: 4", "Content-Length: 0"])
      script.replies(200, ["Require: timer", "Session-Expires: 4;refresher=uac"])
      script.awaits("UPDATE", containing: ["Session-Expires: 4;refresher=uac"])
      script.awaits("BYE", containing: ["Reason: SIP;cause=408;text=\"Session expired\""])
      script.replies()
      let carrier = try await Peers.callee(gateway, try script.file(gateway, "silent-carrier"))
      phone.type("call +15557654321")
      #expect(try await carrier.finish(within: 20) == 0, "\(carrier.text.suffix(6_000))")
      try await expectExpired(gateway, phone)
    }

    private func expectExpired(_ gateway: GatewayUnderTest, _ phone: Spawned) async throws {
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      #expect(phone.events.contains { $0["event"] as? String == "call.ended" && $0["reason"] as? String == "trunkLost" })
      let end = try #require(try await gateway.records(1).first?["end"] as? [String: Any])
      #expect(end["reason"] as? String == "trunkLost" && end["detail"] as? String == "session expired", "\(end)")
      try await gateway.finish()
    }

    @Test func `glare: who owns no Call-ID tries again within two seconds, who owns it waits longer, and all offers get through`()
      async throws
    {
      async let first: Void = glareOfCaller()
      async let second: Void = glareOfCarrier()
      _ = try await (first, second)
    }

    private func glareOfCaller() async throws {
      let gateway = try await GatewayUnderTest(trunk: "hold: signal")
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      var script = SippScript.caller()
      script.isAnswered()
      script.keepsInviteOpen(containing: ["a=sendonly"])
      script.asks("INVITE", sdp: SippScript.sdp(version: 2))
      script.response(491)
      script.refusesOpenInvite(491)
      script.expectsWithin("INVITE", milliseconds: 2_050, containing: ["a=sendonly"])
      script.replies(200, sdp: SippScript.sdp(version: 2, ["a=ptime:20", "a=recvonly"]))
      script.awaits("ACK")
      script.asks("INVITE", sdp: SippScript.sdp("0 101", port: "[audio_port]", version: 3, ["a=ptime:20", "a=recvonly"]))
      script.response(200, containing: ["a=sendonly"])
      script.asks("BYE")
      script.response()
      let caller = try Peers.caller(gateway, try script.file(gateway, "glare-in"))
      _ = try await phone.event("call.connected")
      phone.type("hold")
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      // One 491 for each collision; retransmissions of either side's transaction are counted apart. The control thread publishes
      // its counts now and then.
      let isCounted = await eventually(within: 5) {
        (try? gateway.sum("trunkline_sip_responses_total", #"direction="out",method="INVITE",code="491""#)) == 1
      }
      #expect(isCounted, "\(caller.text.suffix(6_000))")
      try await gateway.finish()
    }

    private func glareOfCarrier() async throws {
      let gateway = try await GatewayUnderTest(trunk: "hold: signal")
      let phone = try await Peers.phone(gateway, ["--calls", "1"])
      var script = SippScript.callee()
      script.answers(200, sdp: SippScript.sdp())
      script.awaits("ACK")
      script.awaits("INVITE", containing: ["a=sendonly"])
      script.replies(491)
      script.awaits("ACK")
      script.expectsNo("INVITE", milliseconds: 2_000)
      script.expectsWithin("INVITE", milliseconds: 2_300, containing: ["a=sendonly"])
      script.replies(200, sdp: SippScript.sdp(version: 2, ["a=ptime:20", "a=recvonly"]))
      script.awaits("ACK")
      script.asks("BYE", ["Reason: Q.850;cause=31;text=\"Normal, unspecified\""])
      script.response()
      let carrier = try await Peers.callee(gateway, try script.file(gateway, "glare-out"))
      phone.type("call +15557654321")
      _ = try await phone.event("call.connected")
      phone.type("hold")
      #expect(try await carrier.finish(within: 20) == 0, "\(carrier.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      let end = try #require(try await gateway.records(1).first?["end"] as? [String: Any])
      #expect((end["detail"] as? String)?.contains("31") == true, "\(end)")
      try await gateway.finish()
    }
  }
}
