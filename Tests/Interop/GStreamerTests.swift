import Foundation
import Testing

extension Interop {
  /// GStreamer's webrtcbin, which many a media server and many a device is made of, as the app: ICE is libnice's, DTLS and SRTP are its own. It is
  /// a foreign program.
  @Suite(
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && GStreamer.isInstalled),
      "no GStreamer: run Scripts/install test"),
    .serialized)
  struct GStreamerTests {
    private static let said = Array(Speech.fromFirstWord(Speech.app).prefix(20_000))
    private static let talk = Double(Baresip.short.count) / 8_000 + 1

    /// It gathers no candidate of loopback where there is another.
    private func gateway() async throws -> GatewayUnderTest {
      let gateway = try await GatewayUnderTest(media: "[ auto ]")
      try Speech.write(Baresip.short, gateway.folder + "/telephone.wav")
      try Speech.write(Self.said, gateway.folder + "/app.wav")
      return gateway
    }

    private func faults(_ gateway: GatewayUnderTest) throws -> [String] {
      try Speech.faults(
        "telephone → GStreamer", said: Baresip.short, heardIn: gateway.folder + "/app-heard.wav", clippedAtMost: 100)
        + Speech.faults(
          "GStreamer → telephone", said: Self.said, heardIn: gateway.folder + "/trunk-heard.wav", clippedAtMost: 100)
    }

    @Test(.tags(.audio), arguments: [[], ["--no-prepare"]])
    func `GStreamer answers a call, both hear each other, and its digits arrive`(
      more: [String]
    ) async throws {
      try await expectGoodAudio {
        let gateway = try await gateway()
        let app = try await GStreamer.phone(
          gateway, more + ["--answer-after", "0.2", "--calls", "1", "--play", "app.wav", "--record", "app-heard.wav"])
        let trunk = try await Peers.trunk(
          gateway,
          [
            "--call", "+15551230001", "--talk", "\(Self.talk + 3)", "--play", "telephone.wav", "--record", "trunk-heard.wav",
          ])
        // digits replace speech
        _ = try await app.event("played", within: 20)
        app.type("dtmf 42#")
        #expect(try await trunk.finish(within: 30) == 0, "\(trunk.text)\n\(app.text)")
        #expect(try await app.finish(within: 10) == 0, "\(app.text)")
        #expect(trunk.fields("digits", of: "ended") == ["42#"], "\(trunk.text)")
        let end = try #require(try await gateway.records(1).first?["end"] as? [String: Any])
        #expect(end["reason"] as? String == "remoteHangup")
        let faults = try faults(gateway)
        try await gateway.finish()
        return faults
      }
    }

    @Test(.tags(.audio)) func `GStreamer calls a number and both hear each other`() async throws {
      try await expectGoodAudio {
        let gateway = try await gateway()
        let trunk = try await Peers.trunk(
          gateway, ["--calls", "1", "--answer-after", "0.3", "--play", "telephone.wav", "--record", "trunk-heard.wav"])
        let app = try await GStreamer.phone(
          gateway,
          [
            "--call", "+15559990001", "--end-after", "\(Self.talk)", "--calls", "1", "--play", "app.wav", "--record",
            "app-heard.wav",
          ])
        #expect(try await app.finish(within: 30) == 0, "\(app.text)\n\(trunk.text)")
        #expect(try await trunk.finish(within: 10) == 0, "\(trunk.text)")
        let record = try #require(try await gateway.records(1).first)
        #expect(record["direction"] as? String == "out")
        #expect((record["end"] as? [String: Any])?["reason"] as? String == "localEnd")
        let faults = try faults(gateway)
        try await gateway.finish()
        return faults
      }
    }
  }
}

/// The app of peers/gst_phone.py. Debian's Python runs it, which has GStreamer's bindings.
enum GStreamer {
  static let python = "/usr/bin/python3"
  static let isInstalled =
    ["/usr/lib/python3/dist-packages/gi/__init__.py", "/usr/lib/python3/dist-packages/websockets/__init__.py"].allSatisfy {
      FileManager.default.fileExists(atPath: $0)
    }
    && Surroundings.program("python3") != nil

  /// Online.
  static func phone(_ gateway: GatewayUnderTest, _ arguments: [String]) async throws -> Spawned {
    let token = try await gateway.token("alice", "gstreamer")
    let phone = try Spawned(
      "gstreamer", python,
      [
        "-B", Surroundings.sources + "/peers/gst_phone.py", "--url", "ws://127.0.0.1:\(gateway.app)/v1/connect", "--token", token,
        "--device", "gstreamer", "--seconds", "60",
      ] + arguments, in: gateway.folder, environment: ["PYTHONUNBUFFERED": "1"])
    _ = try await phone.event("welcome", within: 20)
    return phone
  }
}
