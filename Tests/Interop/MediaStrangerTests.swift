import Foundation
import Testing

extension Interop {
  /// Streams of carriers and apps that follow RFC 3550 only in part: two sources at once, timestamps of another clock, sequence
  /// numbers that other packets use up; and sound that is nearly a pause.
  @Suite(
    .enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"),
    .serialized)
  struct MediaStrangerTests {
    private static let rate = 8_000.0

    /// Tones of equal strength with this joint level, in dB relative to full scale.
    private static func chord(_ hertz: [Double], level: Double, seconds: Int) -> [Int16] {
      let amplitude: Double = 32_768 * pow(10, level / 20) * (2 / Double(hertz.count)).squareRoot()
      return (0..<seconds * 8_000).map { index -> Int16 in
        let turn: Double = 2 * .pi * Double(index) / rate
        let sum: Double = hertz.reduce(0) { $0 + sin(turn * $1) }
        return Int16((amplitude * sum).rounded())
      }
    }

    /// Levels of pieces of `length` samples, in dB relative to full scale.
    private static func levels(_ samples: [Int16], _ length: Int) -> [Double] {
      stride(from: 0, through: samples.count - length, by: length).map { start in
        let power = samples[start..<start + length].reduce(0.0) { $0 + Double($1) * Double($1) } / Double(length)
        return power > 0 ? 10 * log10(power / (32_768 * 32_768)) : -127
      }
    }

    /// The amplitude of one frequency.
    private static func amplitude(_ samples: ArraySlice<Int16>, _ hertz: Double) -> Double {
      var (re, im) = (0.0, 0.0)
      for (index, sample) in samples.enumerated() {
        let turn: Double = 2 * .pi * hertz * Double(index) / rate
        re += Double(sample) * cos(turn)
        im += Double(sample) * sin(turn)
      }
      return 2 * (re * re + im * im).squareRoot() / Double(samples.count)
    }

    /// The app calls; the carrier answers with this SDP and ends the call after `milliseconds`.
    private func call(
      _ gateway: GatewayUnderTest, _ phone: Spawned, audio: UInt16, answer: String, milliseconds: Int
    ) async throws {
      var script = SippScript.callee()
      script.answers(200, sdp: answer)
      script.awaits("ACK")
      script.pauses(milliseconds)
      script.asks("BYE")
      script.response()
      let carrier = try await Peers.callee(gateway, try script.file(gateway, "answer"), audio: audio)
      phone.type("call +15557654321")
      _ = try await phone.event("call.connected")
      #expect(try await carrier.finish(within: 30) == 0, "\(carrier.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
    }

    @Test(.tags(.audio)) func `two sources at once: the first is heard whole, and the other one as soon as it stops`()
      async throws
    {
      try await expectGoodAudio {
        let gateway = try await GatewayUnderTest(trunk: "codecs: [ PCMU ]")
        let stranger = try await Peers.stranger(
          gateway,
          """
          [{"type": 0, "law": 0, "ssrc": 1, "to": 1.5}, {"type": 0, "law": 0, "ssrc": 2, "hertz": 1500, "from": 0.5}]
          """)
        let phone = try await Peers.phone(gateway, ["--record", "app-heard.wav", "--calls", "1"])
        try await call(gateway, phone, audio: stranger.port, answer: SippScript.sdp("0 101"), milliseconds: 2_500)
        let received = try #require(try await gateway.records(1).first?["fromTrunk"] as? [String: Any])
        let others = (received["unheard"] as? [String: Any])?["otherSources"] as? Int ?? 0
        #expect((45...56).contains(others), "the second was counted for a second: \(received)")
        let samples = try Speech.read(gateway.folder + "/app-heard.wav")
        // frames of 20 ms, by the tone that fills them
        let frames = stride(from: 0, to: samples.count - 160, by: 160).map { start -> Int in
          let frame = samples[start..<start + 160]
          let (first, second) = (Self.amplitude(frame, 440), Self.amplitude(frame, 1_500))
          return first > 5_000 && first > 8 * second ? 1 : second > 5_000 && second > 8 * first ? 2 : 0
        }
        let change = frames.firstIndex(of: 2) ?? frames.count
        let (before, after) = (frames[..<change].drop { $0 == 0 }, frames[change...])
        // The gap between them is the time needed to detect that the first has stopped, at most a tenth of a second.
        let isRight =
          before.count >= 60 && before.count { $0 != 1 } <= 5 && after.count >= 35 && after.count { $0 != 2 } <= 5
          && !after.contains(1)
        try await gateway.finish()
        return isRight ? [] : ["frames by their source: \(frames.map(String.init).joined())"]
      }
    }

    @Test(.tags(.audio), arguments: [false, true])
    func `a soft steady chord is not a pause, for an app with or without DTX, and for a carrier with comfort noise`(
      appTakesPauses: Bool
    ) async throws {
      try await expectGoodAudio {
        let gateway = try await GatewayUnderTest(trunk: "codecs: [ PCMU ]")
        try Speech.write(Self.chord([262, 330, 392], level: -48, seconds: 6), gateway.folder + "/chord.wav")
        let phone = try await Peers.phone(
          gateway, script: "app_stranger.py",
          (appTakesPauses ? ["--fmtp", "usedtx=1"] : [])
            + ["--play", "chord.wav", "--record", "app-heard.wav", "--calls", "1"])
        let audio = try await Peers.trunkAudio(
          gateway, ["--play", "chord.wav", "--record", "trunk-heard.wav", "--silence", "0.7"])
        try await call(
          gateway, phone, audio: audio.port, answer: SippScript.sdp("0 13 101", ["a=rtpmap:13 CN/8000", "a=sendrecv"]),
          milliseconds: 6_500)
        _ = try await audio.peer.event("done")
        // 300 frames of 20 ms were sent
        let faults = try ["app", "trunk"].compactMap { who -> String? in
          let levels = Self.levels(try Speech.read(gateway.folder + "/\(who)-heard.wav"), 160)
          let heard = levels.count { abs($0 + 48) < 4 }
          return heard >= 270 ? nil : "\(who): \(heard) frames of 300, \(levels.map { Int($0) })"
        }
        try await gateway.finish()
        return faults
      }
    }

    @Test(.tags(.audio)) func `an offset in an app's microphone makes no comfort noise louder than its room`() async throws {
      try await expectGoodAudio {
        let gateway = try await GatewayUnderTest(trunk: "codecs: [ PCMU ]")
        // Noise of −60 dBov, and an offset of 1 % of full scale, which alone has −40 dBov.
        var state: UInt32 = 1
        let room = (0..<32_000).map { _ -> Int16 in
          state = state &* 1_664_525 &+ 1_013_904_223
          return 327 + Int16(Double(state >> 16) / 65_536 * 114 - 57)
        }
        try Speech.write(room, gateway.folder + "/room.wav")
        // A-law, so that the stream is not relayed; aiortc's Opus would remove the offset.
        let phone = try await Peers.phone(
          gateway, script: "app_stranger.py", ["--only", "PCMA", "--play", "room.wav", "--calls", "1"])
        let audio = try await Peers.trunkAudio(gateway, ["--silence", "0.7"])
        try await call(
          gateway, phone, audio: audio.port, answer: SippScript.sdp("0 13 101", ["a=rtpmap:13 CN/8000", "a=sendrecv"]),
          milliseconds: 3_800)
        let noise = try #require(try await audio.peer.event("done")["noise"] as? [Int])
        try await gateway.finish()
        // dB below full scale, one value for each 400 ms
        let isRight = noise.count { (57...66).contains($0) } >= 2 && noise.allSatisfy { $0 >= 57 }
        return isRight ? [] : ["comfort noise told: \(noise)"]
      }
    }

    @Test(.tags(.audio)) func `an app that stamps 20 ms of Opus by 480: its lost packets are made up`() async throws {
      try await expectGoodAudio(loses: true) {
        let gateway = try await GatewayUnderTest(trunk: "codecs: [ PCMU ]")
        let said = Array(Speech.fromFirstWord(Speech.app).prefix(48_000))
        try Speech.write(said, gateway.folder + "/app.wav")
        let phone = try await Peers.phone(
          gateway, script: "app_stranger.py",
          ["--step", "480", "--lose", "0.03", "--lose-seed", "3", "--play", "app.wav", "--calls", "1"])
        let audio = try await Peers.trunkAudio(gateway, ["--record", "trunk-heard.wav", "--silence", "0.7"])
        try await call(gateway, phone, audio: audio.port, answer: SippScript.sdp("0 101"), milliseconds: 6_300)
        _ = try await audio.peer.event("done")
        let received = try #require(try await gateway.records(1).first?["fromApp"] as? [String: Any])
        let (lost, concealed) = (received["lost"] as? Int ?? 0, received["concealedMs"] as? Int ?? 0)
        // If each step of 480 were read as 10 ms, nothing would be made up: no packet would be missed.
        let isMadeUp = lost >= 5 && concealed >= 15 * lost && concealed <= 20 * lost + JudgedCalls.concealedMilliseconds
        let faults = try Speech.faults(
          "app → telephone", said: said, heardIn: gateway.folder + "/trunk-heard.wav", clippedAtMost: 60)
        try await gateway.finish()
        return isMadeUp ? faults : faults + ["\(concealed) ms made up for \(lost) packets: \(received)"]
      }
    }

    @Test(.tags(.audio)) func `ringback of two tones at five percent of loss has hardly any holes`() async throws {
      try await expectGoodAudio(loses: true) {
        let gateway = try await GatewayUnderTest(trunk: "codecs: [ PCMU ]")
        try Speech.write(Self.chord([440, 480], level: -18, seconds: 9), gateway.folder + "/ringback.wav")
        let phone = try await Peers.phone(gateway, ["--record", "app-heard.wav", "--calls", "1"])
        let audio = try await Peers.trunkAudio(
          gateway, ["--play", "ringback.wav", "--loss", "0.05", "--seed", "2", "--silence", "0.7"])
        try await call(gateway, phone, audio: audio.port, answer: SippScript.sdp("0 101"), milliseconds: 8_200)
        _ = try await audio.peer.event("done")
        let lost = (try await gateway.records(1).first?["fromTrunk"] as? [String: Any])?["lost"] as? Int ?? 0
        // The tones beat forty times a second, by 7 dB in 10 ms: a level 20 dB below the middle one is a hole.
        let all = Self.levels(try Speech.read(gateway.folder + "/app-heard.wav"), 80)
        let middle = try #require(all.sorted().dropFirst(all.count / 2).first)
        let tones = all.drop { $0 < middle - 12 }.reversed().drop { $0 < middle - 12 }
        let holes = tones.count { $0 < middle - 20 }
        try await gateway.finish()
        return lost >= 10 && holes * 8 <= lost ? [] : ["\(holes) holes of 10 ms at \(lost) places"]
      }
    }

    @Test(arguments: [96, 0])
    func `a relayed stream has our numbers and timestamps: what is dropped leaves no gap, and no jump goes through`(
      codec: Int
    ) async throws {
      let gateway = try await GatewayUnderTest(trunk: "codecs: [ opus, PCMU ]")
      let (type, clock) = codec == 96 ? (111, 48_000) : (0, 8_000)
      // A jump of 154 s; empty keep-alives (RFC 6263 §4.1) and a payload type that was not agreed on, in the stream's sequence
      // numbers.
      let streams = """
        [{"type": \(type), "law": \(codec), "ssrc": 1, "to": 1.2},
        {"type": \(type), "law": \(codec), "ssrc": 1, "from": 1.2, "jump": \(154 * clock)},
        {"type": \(type), "law": null, "octets": 0, "ssrc": 1, "every": 5}, {"type": 55, "law": null, "ssrc": 1, "every": 7}]
        """
      let stranger = try await Peers.stranger(gateway, streams, ["--clock", "\(clock)"])
      let phone = try await Peers.phone(
        gateway, script: "app_stranger.py", ["--only", codec == 96 ? "opus" : "PCMU", "--calls", "1"])
      let answer = codec == 96 ? SippScript.sdp("111", ["a=rtpmap:111 opus/48000/2", "a=sendrecv"]) : SippScript.sdp("0 101")
      try await call(gateway, phone, audio: stranger.port, answer: answer, milliseconds: 2_500)
      let record = try #require(try await gateway.records(1).first)
      let codecs = try #require(record["codecs"] as? [String: String])
      #expect(codecs["app"]?.lowercased() == codecs["trunk"]?.lowercased(), "\(codecs)")
      let heard = try #require(record["fromTrunk"] as? [String: Any])
      #expect(heard["dropped"] as? Int ?? 0 >= 25, "\(heard)")
      let came = try await phone.event("rtp")
      #expect(came["missing"] as? Int == 0 && came["packets"] as? Int ?? 0 > 80, "\(came)")
      let steps = try #require(came["steps"] as? [String: Int])
      // Each step is 20 ms; a peer that was late for its own tick has a longer one.
      let frame = clock / 50
      #expect(steps["\(frame)"] ?? 0 > 80 && steps.keys.allSatisfy { (1...clock).contains(Int($0) ?? 0) }, "\(steps)")
      try await gateway.finish()
    }
  }
}
