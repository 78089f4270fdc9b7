import Foundation
import Testing

extension Interop {
  /// What carriers do with RTP: packets of other lengths, packets from other ports, media before the answer.
  @Suite(
    .enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"),
    .serialized)
  struct CarrierMediaTests {
    private static let said = Array(Speech.fromFirstWord(Speech.telephone).prefix(20_000))

    @Test(.tags(.audio), arguments: [10, 60])
    func `ptime: both send packets of the length that the carrier wants, and hear each other`(
      milliseconds: Int
    ) async throws {
      try await expectGoodAudio {
        let gateway = try await GatewayUnderTest()
        try Speech.write(Self.said, gateway.folder + "/telephone.wav")
        let own = Array(Speech.fromFirstWord(Speech.app).prefix(20_000))
        try Speech.write(own, gateway.folder + "/app.wav")
        let phone = try await Peers.phone(
          gateway, ["--play", "app.wav", "--record", "app-heard.wav", "--answer-after", "0.2", "--calls", "1"])
        let audio = try await Peers.trunkAudio(
          gateway,
          ["--play", "telephone.wav", "--record", "trunk-heard.wav", "--ptime", "\(milliseconds)", "--silence", "1"])
        var script = SippScript.caller(sdp: SippScript.sdp("0 101", ["a=ptime:\(milliseconds)", "a=sendrecv"]))
        script.isAnswered(containing: ["a=ptime:\(milliseconds)"])
        script.pauses(3_300)
        script.asks("BYE")
        script.response()
        let caller = try Peers.caller(gateway, try script.file(gateway, "ptime"), audio: audio.port)
        #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
        #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
        let done = try await audio.peer.event("done")
        let sizes = try #require(done["sizes"] as? [String: Int])
        #expect(sizes.keys.sorted() == ["\(milliseconds)"], "\(sizes)")
        let faults =
          try Speech.faults("telephone → app", said: Self.said, heardIn: gateway.folder + "/app-heard.wav")
          + Speech.faults(
            "app → telephone", said: own, heardIn: gateway.folder + "/trunk-heard.wav", clippedAtMost: 20 + milliseconds)
        try await gateway.finish()
        return faults
      }
    }

    /// The carrier's codecs are ffmpeg's and numpy's.
    @Test(.tags(.audio), arguments: [("G722", 9), ("opus", 96), ("L16", 98)])
    func `G.722, Opus and L16 on a trunk: agreed alone, and both hear each other`(
      codec: String, payloadType: Int
    ) async throws {
      try await expectGoodAudio {
        let gateway = try await GatewayUnderTest(trunk: "codecs: [ PCMU, \(codec) ]")
        try Speech.write(Self.said, gateway.folder + "/telephone.wav")
        let own = Array(Speech.fromFirstWord(Speech.app).prefix(20_000))
        try Speech.write(own, gateway.folder + "/app.wav")
        let phone = try await Peers.phone(
          gateway, ["--play", "app.wav", "--record", "app-heard.wav", "--answer-after", "0.2", "--calls", "1"])
        let audio = try await Peers.trunkAudio(
          gateway,
          ["--play", "telephone.wav", "--record", "trunk-heard.wav", "--codec", "\(payloadType)", "--silence", "1"])
        var script = SippScript.caller(sdp: SippScript.sdp("\(payloadType) 101"))
        script.isAnswered(containing: ["RTP/AVP \(payloadType)"])
        script.pauses(3_300)
        script.asks("BYE")
        script.response()
        let caller = try Peers.caller(gateway, try script.file(gateway, codec), audio: audio.port)
        #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
        #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
        let done = try await audio.peer.event("done")
        #expect(done["strange"] as? Int == 0 && done["received"] as? Int ?? 0 > 100, "\(done)")
        let faults =
          try Speech.faults("telephone → app", said: Self.said, heardIn: gateway.folder + "/app-heard.wav")
          + Speech.faults("app → telephone", said: own, heardIn: gateway.folder + "/trunk-heard.wav", clippedAtMost: 40)
        try await gateway.finish()
        return faults
      }
    }

    /// The carrier's RTP comes from a port that its SDP does not name.
    @Test(arguments: [("signalled_ip", true, false), ("strict", false, false), ("symmetric", true, true)])
    func `rtp_source: which packets are heard, and where ours go`(policy: String, isHeard: Bool, isFollowed: Bool) async throws {
      let gateway = try await GatewayUnderTest(trunk: "rtp_source: \(policy)")
      try Speech.write(Self.said, gateway.folder + "/telephone.wav")
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      let audio = try await Peers.trunkAudio(
        gateway, ["--play", "telephone.wav", "--send-from", "\(try FreePorts.row(2))", "--silence", "0.7"])
      let caller = try Peers.caller(gateway, "call", audio: audio.port, ["-d", "1500"])
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      #expect(phone.events.contains { $0["event"] as? String == "first_sound" } == isHeard, "\(phone.text)")
      let done = try await audio.peer.event("done")
      let (named, other) = (done["received"] as? Int ?? 0, done["elsewhere"] as? Int ?? 0)
      let isRight = isFollowed ? other > 30 && named < other : other == 0 && named > 30
      #expect(isRight, "\(named) where the SDP says, \(other) elsewhere")
      #expect((try gateway.sum("trunkline_media_drops_total", "unexpected_source") > 20) == !isHeard)
      try await gateway.finish()
    }

    @Test func `early media of a carrier that forks is heard before the answer, and the winner's after it`() async throws {
      let gateway = try await GatewayUnderTest()
      try Speech.write(Self.said, gateway.folder + "/telephone.wav")
      // a tone, in µ-law
      let tone = (0..<8_000).map { [0x10, 0x10, 0x90, 0x90][$0 / 2 % 4] as UInt8 }
      try Data(tone).write(to: URL(fileURLWithPath: gateway.folder + "/early.ulaw"))
      let phone = try await Peers.phone(gateway, ["--calls", "1"])
      let final = try await Peers.trunkAudio(gateway, ["--play", "telephone.wav", "--silence", "1"])
      var script = SippScript.callee()
      script.answers(180, fork: "one")
      script.answers(183, sdp: SippScript.sdp("0 101", port: "[rtpstream_audio_port]"), fork: "one")
      script.speaks(gateway.folder + "/early.ulaw")
      script.answers(180, fork: "two")
      script.pauses(1_200)
      script.speaks(nil)
      script.answers(183, sdp: SippScript.sdp("0 101", port: "\(final.port)"), fork: "two")
      script.answers(200, sdp: SippScript.sdp("0 101", port: "\(final.port)"), fork: "two")
      script.awaits("ACK")
      script.awaits("BYE")
      script.replies()
      let carrier = try await Peers.callee(gateway, try script.file(gateway, "early"))
      phone.type("call +15557654321")
      let sound = try await phone.event("first_sound")
      #expect(phone.events.allSatisfy { $0["event"] as? String != "call.connected" }, "heard before the answer: \(sound)")
      _ = try await phone.event("call.connected")
      _ = try await final.peer.event("first_packet", within: 5)
      let packet = try await final.peer.event("first_packet")
      #expect(packet["payload_type"] as? Int == 0)
      phone.type("end")
      #expect(try await carrier.finish(within: 20) == 0, "\(carrier.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      try await gateway.finish()
    }
  }
}
