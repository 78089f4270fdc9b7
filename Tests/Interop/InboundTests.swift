import Foundation
import Testing

extension Interop {
  /// sipp → gateway → aiortc.
  @Suite(
    .enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"),
    .serialized)
  struct InboundTests {
    @Test(.tags(.audio))
    func `a call reaches the app, both hear each other from the first word, and one record says how it ended`() async throws {
      try await expectGoodAudio {
        let gateway = try await GatewayUnderTest()
        try Speech.write(Speech.telephone, gateway.folder + "/telephone.wav")
        try Speech.write(Speech.app, gateway.folder + "/app.wav")
        let phone = try await Peers.phone(
          gateway, ["--play", "app.wav", "--record", "app-heard.wav", "--answer-after", "0.5", "--calls", "1"])
        let audio = try await Peers.trunkAudio(gateway, ["--play", "telephone.wav", "--record", "trunk-heard.wav"])
        let caller = try Peers.caller(gateway, "call", audio: audio.port, ["-d", "10000"])
        #expect(try await caller.finish(within: 25) == 0, "\(caller.text.suffix(6_000))")
        #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
        #expect(try await audio.peer.finish(within: 10) == 0)
        let faults =
          try Speech.faults("telephone → app", said: Speech.telephone, heardIn: gateway.folder + "/app-heard.wav")
          + Speech.faults("app → telephone", said: Speech.app, heardIn: gateway.folder + "/trunk-heard.wav")

        let record = try #require(try await gateway.records(1).first)
        let end = try #require(record["end"] as? [String: Any])
        #expect(end["reason"] as? String == "remoteHangup")
        #expect(end["by"] as? String == "trunk")
        #expect(end["sip"] as? Int == 200)
        #expect(record["direction"] as? String == "in")
        #expect(record["user"] as? String == "alice")
        #expect(record["device"] as? String == "d1")
        #expect((record["sipCallId"] as? String)?.hasSuffix("@127.0.0.1") == true)
        let times = try #require(record["times"] as? [String: Int])
        // The gate: nothing that must come before the 200 came after it.
        for stage in ["answered", "ice", "dtls", "mediaReady", "gateOpen"] {
          #expect(try #require(times[stage]) <= (try #require(times["connected"])), "\(stage)")
        }
        #expect(try gateway.sum("trunkline_invite_to_ringing_seconds_count") == 1)
        #expect(try gateway.sum("trunkline_answer_to_audio_seconds_count") == 2)
        try await gateway.finish()
        return faults
      }
    }

    @Test func `the app hangs up: the trunk gets BYE at once`() async throws {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--end-after", "1", "--calls", "1"])
      let caller = try Peers.caller(gateway, "call_until_bye")
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0)
      let end = try await gateway.records(1).first?["end"] as? [String: Any]
      #expect(end?["reason"] as? String == "localEnd")
      #expect(end?["by"] as? String == "app")
      try await gateway.finish()
    }

    @Test func `the caller gives up while it rings`() async throws {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway, ["--calls", "1"])
      let caller = try Peers.caller(gateway, "cancel", ["-d", "500"])
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0)
      #expect(phone.events.contains { $0["event"] as? String == "call.cancel" && $0["reason"] as? String == "callerCancelled" })
      let end = try await gateway.records(1).first?["end"] as? [String: Any]
      #expect(end?["reason"] as? String == "callerCancelled")
      #expect(end?["sip"] as? Int == 487)
      try await gateway.finish()
    }

    @Test func `the user declines`() async throws {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway, ["--calls", "1"])
      let caller = try Peers.caller(gateway, "refused_486")
      _ = try await phone.event("prepared")
      phone.type("reject")
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      let end = try await gateway.records(1).first?["end"] as? [String: Any]
      #expect(end?["reason"] as? String == "declined" || end?["reason"] as? String == "declinedElsewhere")
      try await gateway.finish()
    }

    @Test(arguments: [("+15551230001", "refused_480", "unanswered"), ("+19990000000", "refused_404", "notFound")])
    func `calls without a device and unknown numbers are refused with a record`(number: String, scenario: String, reason: String)
      async throws
    {
      let gateway = try await GatewayUnderTest()
      let caller = try Peers.caller(gateway, scenario, to: number)
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      let end = try await gateway.records(1).first?["end"] as? [String: Any]
      #expect(end?["reason"] as? String == reason)
      try await gateway.finish()
    }

    @Test func `two devices ring and the first answer wins`() async throws {
      let gateway = try await GatewayUnderTest()
      let first = try await Peers.phone(gateway, device: "d1", ["--calls", "1"])
      let second = try await Peers.phone(gateway, device: "d2", ["--calls", "1"])
      let caller = try Peers.caller(gateway, "call", ["-d", "1000"])
      _ = try await first.event("prepared")
      _ = try await second.event("prepared")
      first.type("answer")
      second.type("answer")
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      #expect(try await first.finish(within: 10) == 0)
      #expect(try await second.finish(within: 10) == 0)
      let won = (first.events + second.events).filter { $0["event"] as? String == "answered" && $0["won"] as? Bool == true }
      #expect(won.count == 1)
      try await gateway.finish()
    }
  }
}
