import Foundation
import Testing

extension Interop {
  /// Headless Firefox ESR on the web phone that the gateway serves: the other browser engine, with an ICE, a DTLS and a jitter buffer of its own.
  /// Its microphone and its loudspeaker are PulseAudio's null sinks (peers/firefox_phone.py).
  @Suite(
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Firefox.isInstalled && Sofia.isInstalled),
      "no Firefox, no PulseAudio or no Sofia-SIP: run Scripts/install test"),
    .serialized)
  struct FirefoxTests {
    private static let said = Array(Speech.fromFirstWord(Speech.app).prefix(20_000))

    private func gateway(_ more: [String] = [], carrier: UInt16? = nil) async throws -> GatewayUnderTest {
      let gateway = try await GatewayUnderTest(more, media: "[ auto ]", carrier: carrier)
      try Speech.write(Baresip.short, gateway.folder + "/telephone.wav")
      try Speech.write(Self.said, gateway.folder + "/app.wav")
      return gateway
    }

    /// The page records from before its login on, and speaks once its call is connected: what counts is that speech is heard.
    private func faults(_ gateway: GatewayUnderTest) throws -> [String] {
      try Speech.faults(
        "telephone → Firefox", said: Baresip.short, heardIn: gateway.folder + "/app-heard.wav", clippedAtMost: 100,
        delayWithin: -2_000...20_000)
        + Speech.faults(
          "Firefox → telephone", said: Self.said, heardIn: gateway.folder + "/trunk-heard.wav", clippedAtMost: 100,
          delayWithin: -2_000...20_000)
    }

    /// Over a stand-in of the package: what Chromium does in WebPhoneActTests.
    @Test func `in Firefox what a person does is seen, spoken and within reach of the keyboard`() async throws {
      let gateway = try await GatewayUnderTest()
      try await PhoneActs.expect(atLeast: 20, gateway, ["--firefox"])
      try await gateway.finish()
    }

    @Test(.tags(.audio)) func `Firefox answers a call, and both hear each other and their digits`() async throws {
      try await expectGoodAudio {
        let gateway = try await gateway()
        let firefox = try await Firefox.phone(gateway, ["--answer", "--play", "app.wav", "--record", "app-heard.wav"])
        let trunk = try await Peers.trunk(
          gateway,
          [
            "--call", "+15551230001", "--talk", "9", "--digits", "7", "--play", "telephone.wav", "--record", "trunk-heard.wav",
          ])
        // digits replace speech
        _ = try await firefox.event("played", within: 30)
        firefox.type("digits 42#")
        #expect(try await trunk.finish(within: 30) == 0, "\(trunk.text)\n\(firefox.text)")
        #expect(try await firefox.finish(within: 20) == 0, "\(firefox.text)")
        #expect(trunk.fields("digits", of: "ended") == ["42#"])
        #expect(firefox.events.contains { $0["event"] as? String == "digit" && $0["digit"] as? String == "7" })
        let end = try #require(try await gateway.records(1).first?["end"] as? [String: Any])
        #expect(end["reason"] as? String == "remoteHangup")
        let faults = try faults(gateway)
        try await gateway.finish()
        return faults
      }
    }

    @Test(.tags(.audio)) func `Firefox calls a number, and both hear each other`() async throws {
      try await expectGoodAudio {
        let gateway = try await gateway()
        let trunk = try await Peers.trunk(
          gateway, ["--calls", "1", "--answer-after", "0.3", "--play", "telephone.wav", "--record", "trunk-heard.wav"])
        let firefox = try await Firefox.phone(
          gateway, ["--call", "+15559990001", "--play", "app.wav", "--record", "app-heard.wav"])
        _ = try await firefox.event("played", within: 30)
        firefox.type("hangup")
        #expect(try await firefox.finish(within: 20) == 0, "\(firefox.text)\n\(trunk.text)")
        #expect(try await trunk.finish(within: 10) == 0, "\(trunk.text)")
        let states = firefox.events.filter { $0["event"] as? String == "state" }.compactMap { $0["state"] as? String }
        #expect(states.contains("progress"), "it rang in the page")
        let record = try #require(try await gateway.records(1).first)
        #expect(record["direction"] as? String == "out")
        #expect((record["end"] as? [String: Any])?["reason"] as? String == "localEnd")
        let faults = try faults(gateway)
        try await gateway.finish()
        return faults
      }
    }

    @Test(.tags(.audio)) func `Firefox is loaded again in a call, takes it up, and both hear each other and their digits`()
      async throws
    {
      // What is said while there is no page is lost.
      try await expectGoodAudio(loses: true) {
        let gateway = try await gateway()
        let firefox = try await Firefox.phone(
          gateway, ["--answer", "--play", "app.wav", "--say-when-told", "--record", "app-heard.wav"])
        let trunk = try await Peers.trunk(
          gateway,
          ["--call", "+15551230001", "--talk", "16", "--repeat", "--play", "telephone.wav", "--record", "trunk-heard.wav"])
        _ = try await firefox.event("state", within: 20) { $0["state"] as? String == "connected" }
        firefox.type("reload")
        let again = await eventually(within: 10) {
          firefox.events.filter { $0["event"] as? String == "state" && $0["state"] as? String == "connected" }.count == 2
        }
        #expect(again, "\(firefox.text)")
        firefox.type("say")
        _ = try await firefox.event("played", within: 20)
        firefox.type("digits 42#")
        #expect(try await trunk.finish(within: 40) == 0, "\(trunk.text)\n\(firefox.text)")
        #expect(try await firefox.finish(within: 20) == 0, "\(firefox.text)")
        #expect(trunk.fields("digits", of: "ended") == ["42#"])
        let heard = try Speech.read(gateway.folder + "/app-heard.wav")
        let end = Double(heard.count) / 8_000
        #expect(Speech.level(heard, from: end - 3, to: end) > 500, "heard after the reload, to the end")
        let times = try #require(try await gateway.records(1).first?["times"] as? [String: Any])
        #expect(times["restarted"] != nil, "\(times)")
        let faults = try faults(gateway)
        try await gateway.finish()
        return faults
      }
    }

    @Test(.tags(.audio))
    func `a headset is unplugged in a call: another loudspeaker and microphone at once, and it is taken back`()
      async throws
    {
      let gateway = try await gateway()
      for name in ["telephone", "app"] { try EndlessTone.write(90, gateway.folder + "/\(name).wav") }
      let firefox = try await Firefox.phone(gateway, ["--answer", "--play", "app.wav"])
      firefox.type("plug headset")
      let trunk = try await Peers.trunk(
        gateway, ["--call", "+15551230001", "--talk", "80", "--play", "telephone.wav", "--record", "trunk-heard.wav"])
      _ = try await firefox.event("state", within: 30) { $0["state"] as? String == "connected" }
      try await expectSound(firefox, at: "ear")
      firefox.type("loudspeaker headset")
      _ = try await firefox.event("chosen", within: 20) { ($0["device"] as? String)?.contains("headset") == true }
      try await expectSound(firefox, at: "headset")
      firefox.type("microphone headset-microphone")
      _ = try await firefox.event("chosen", within: 20) { ($0["device"] as? String)?.contains("microphone") == true }
      try await expectMicrophone(firefox, "headset-microphone")
      firefox.type("unplug headset")
      _ = try await firefox.event("devices", within: 10) {
        $0["loudspeaker"] as? String == "loudspeakerGone" && $0["microphone"] as? String == "microphoneGone"
      }
      try await expectSound(firefox, at: "ear")
      try await expectMicrophone(firefox, "microphone")
      firefox.type("plug headset")
      _ = try await firefox.event("devices", within: 10) { $0["loudspeaker"] is NSNull && $0["microphone"] is NSNull }
      try await expectSound(firefox, at: "headset")
      try await expectMicrophone(firefox, "headset-microphone")
      // The headset was silent so far: what the trunk receives from here on comes by the microphone that was taken back.
      try EndlessTone.write(4, gateway.folder + "/short.wav")
      firefox.type("play headset-mouth short.wav")
      _ = try await firefox.event("played", within: 20)
      firefox.type("hangup")
      #expect(try await firefox.finish(within: 20) == 0, "\(firefox.text)")
      #expect(try await trunk.finish(within: 10) == 0, "\(trunk.text)")
      let heard = try Speech.read(gateway.folder + "/trunk-heard.wav")
      let end = Double(heard.count) / 8_000
      #expect(Speech.level(heard, from: end - 3, to: end - 0.5) > 500, "the microphone of the headset that came back")
      try await gateway.finish()
    }

    /// Firefox records from this source and no other, within 15 s: the page hears of a device that has gone or come, and asks for another stream.
    private func expectMicrophone(_ firefox: Spawned, _ name: String) async throws {
      var names: [String]?
      let isRight = await eventually(within: 15) {
        firefox.type("sources")
        usleep(300_000)
        names = firefox.events.last { $0["event"] as? String == "sources" }?["names"] as? [String]
        return names == [name]
      }
      #expect(isRight, "not \(name), but \(names ?? [])\n\(firefox.text.suffix(4_000))")
    }

    /// Within 6 s: a browser asks PulseAudio for another stream.
    private func expectSound(_ firefox: Spawned, at sink: String) async throws {
      let heard = await eventually(within: 6) {
        firefox.type("level \(sink)")
        usleep(700_000)
        return
          (firefox.events.last { $0["event"] as? String == "level" && $0["sink"] as? String == sink }?["level"] as? Double ?? 0)
          > 500
      }
      #expect(heard, "nothing at \(sink)\n\(firefox.text.suffix(4_000))")
    }

    @Test func `Sofia-SIP holds and resumes Firefox, Firefox holds and resumes, and digits go both ways`() async throws {
      let carrier = try FreePorts.both()
      let gateway = try await gateway(
        ["trunks: [ { name: carrier, peers: [127.0.0.0/8], uri: \"sip:127.0.0.1:\(carrier)\" } ]"], carrier: carrier)
      let firefox = try await Firefox.phone(gateway, ["--answer"])
      let sofia = try await Sofia.phone(
        gateway,
        [
          "--port", "\(gateway.carrier)", "--media", "\(try FreePorts.row(2))", "--call",
          "sip:+15551230001@127.0.0.1:\(gateway.sip)", "--do", "hold@0.6 resume@1.6 digits:42#@2.6",
        ])
      for on in [true, false] {
        _ = try await firefox.event("held", within: 20) { $0["by"] as? String == "remote" && $0["on"] as? Bool == on }
      }
      for digit in ["4", "2", "#"] { _ = try await firefox.event("digit") { $0["digit"] as? String == digit } }
      for on in [true, false] {
        firefox.type("hold")
        _ = try await firefox.event("held") { $0["by"] as? String == "local" && $0["on"] as? Bool == on }
      }
      firefox.type("digits 19*")
      for digit in ["1", "9", "*"] { _ = try await sofia.event("digit") { $0["digit"] as? String == digit } }
      firefox.type("hangup")
      #expect(try await firefox.finish(within: 20) == 0, "\(firefox.text)\n\(sofia.text)")
      #expect(try await sofia.finish(within: 10) == 0, "\(sofia.text)")
      let times = try #require(try await gateway.records(1).first?["times"] as? [String: Any])
      for stage in ["heldByTrunk", "resumedByTrunk", "heldByApp", "resumedByApp"] {
        #expect(times[stage] != nil, "\(stage): \(times)")
      }
      try await gateway.finish()
    }
  }
}

/// Firefox with peers/firefox_phone.py, and the PulseAudio that it needs.
enum Firefox {
  static let isInstalled =
    Surroundings.program("firefox-esr", "firefox") != nil
    && ["pulseaudio", "pactl", "paplay", "parec"].allSatisfy { Surroundings.program($0) != nil }

  /// On the web phone, logged in by link, online.
  static func phone(_ gateway: GatewayUnderTest, user: String = "alice", _ arguments: [String]) async throws -> Spawned {
    let token = try await gateway.token(user, "web")
    let firefox = try Peers.python(
      "firefox", "firefox_phone.py",
      ["--url", "http://127.0.0.1:\(gateway.app)/#token=\(token)", "--seconds", "60"] + arguments, gateway)
    _ = try await firefox.event("line", within: 60) { $0["state"] as? String == "online" }
    return firefox
  }
}
