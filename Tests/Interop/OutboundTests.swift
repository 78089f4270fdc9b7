import Foundation
import Testing

extension Interop {
  /// aiortc → gateway → sipp.
  @Suite(
    .enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"),
    .serialized)
  struct OutboundTests {
    @Test(.tags(.audio)) func `the app calls out: the INVITE leaves after the media is ready, and both hear each other`()
      async throws
    {
      try await expectGoodAudio {
        let gateway = try await GatewayUnderTest()
        try Speech.write(Speech.telephone, gateway.folder + "/telephone.wav")
        try Speech.write(Speech.app, gateway.folder + "/app.wav")
        let audio = try await Peers.trunkAudio(gateway, ["--play", "telephone.wav", "--record", "trunk-heard.wav"])
        let carrier = try await Peers.callee(gateway, "answer", audio: audio.port)
        let phone = try await Peers.phone(
          gateway,
          ["--call", "+15557654321", "--play", "app.wav", "--record", "app-heard.wav", "--end-after", "10", "--calls", "1"])
        #expect(try await phone.finish(within: 25) == 0, "\(phone.text)")
        #expect(try await carrier.finish(within: 10) == 0, "\(carrier.text.suffix(6_000))")
        #expect(try await audio.peer.finish(within: 10) == 0)
        let faults =
          try Speech.faults("telephone → app", said: Speech.telephone, heardIn: gateway.folder + "/app-heard.wav")
          + Speech.faults("app → telephone", said: Speech.app, heardIn: gateway.folder + "/trunk-heard.wav")
        let record = try #require(try await gateway.records(1).first)
        let times = try #require(record["times"] as? [String: Int])
        for stage in ["ice", "dtls", "mediaReady", "gateOpen"] {
          #expect(try #require(times[stage]) <= (try #require(times["inviteSent"])), "\(stage)")
        }
        #expect(record["direction"] as? String == "out")
        #expect((record["end"] as? [String: Any])?["reason"] as? String == "localEnd")
        try await gateway.finish()
        return faults
      }
    }

    @Test func `a challenge is answered, to the configured trunk, with its password`() async throws {
      let gateway = try await GatewayUnderTest(trunk: "auth: { username: u, password_file: password }")
      let carrier = try await Peers.callee(gateway, "answer_digest")
      let phone = try await Peers.phone(gateway, ["--call", "+15557654321", "--end-after", "0.5", "--calls", "1"])
      #expect(try await phone.finish(within: 25) == 0, "\(phone.text)")
      #expect(try await carrier.finish(within: 10) == 0, "\(carrier.text.suffix(6_000))")
      #expect(phone.events.contains { $0["event"] as? String == "call.connected" })
      try await gateway.finish()
    }

    @Test(arguments: [("busy", "busy"), ("unavailable", "trunkFailed")])
    func `what the carrier refuses with is what the app is told`(scenario: String, reason: String) async throws {
      let gateway = try await GatewayUnderTest()
      let carrier = try await Peers.callee(gateway, scenario)
      let phone = try await Peers.phone(gateway, ["--call", "+15557654321", "--calls", "1"])
      #expect(try await phone.finish(within: 25) == 0, "\(phone.text)")
      #expect(try await carrier.finish(within: 10) == 0, "\(carrier.text.suffix(6_000))")
      #expect(
        phone.events.contains { $0["event"] as? String == "call.ended" && $0["reason"] as? String == reason }, "\(phone.text)")
      try await gateway.finish()
    }

    @Test func `the app gives up while it rings`() async throws {
      let gateway = try await GatewayUnderTest()
      let carrier = try await Peers.callee(gateway, "ring_until_cancel")
      let phone = try await Peers.phone(gateway, ["--call", "+15557654321", "--calls", "1"])
      _ = try await phone.event("call.progress") { $0["stage"] as? String == "ringing" }
      phone.type("end")
      #expect(try await phone.finish(within: 25) == 0, "\(phone.text)")
      #expect(try await carrier.finish(within: 10) == 0, "\(carrier.text.suffix(6_000))")
      try await gateway.finish()
    }

    @Test func `an app without media makes no call: no INVITE leaves`() async throws {
      let gateway = try await GatewayUnderTest(["timers: { media_gate_outgoing: 1s }"])
      let phone = try await Peers.phone(gateway, ["--call", "+15557654321", "--no-ice", "--calls", "1"])
      #expect(try await phone.finish(within: 25) == 0, "\(phone.text)")
      #expect(
        phone.events.contains { $0["event"] as? String == "call.ended" && $0["reason"] as? String == "mediaFailed" },
        "\(phone.text)")
      #expect(try gateway.sum("trunkline_sip_requests_total", "direction=\"out\"") == 0)
      try await gateway.finish()
    }

    @Test func `a number without a route is notFound, and no call`() async throws {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway, ["--call", "0000", "--calls", "1"])
      #expect(try await phone.finish(within: 25) == 0, "\(phone.text)")
      #expect(phone.events.contains { $0["event"] as? String == "err" && $0["code"] as? String == "notFound" }, "\(phone.text)")
      #expect(gateway.records.isEmpty)
      try await gateway.finish()
    }
  }
}
