import Foundation
import Testing

extension Interop {
  /// Headless Chromium on the web phone that the gateway serves. Browsers never use 127.0.0.1 for ICE: the gateway offers the
  /// machine's own addresses here, as it does by default.
  @Suite(
    .tags(.audio),
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Surroundings.chromium != nil),
      "no chromium or no .venv: run Scripts/install test"), .serialized)
  struct BrowserTests {
    @Test func `a call is answered in the page: speech both ways, digits both ways, moving meters (INC-7, ANS-5)`() async throws {
      try await expectGoodAudio { try await answered() }
    }

    private func answered() async throws -> [String] {
      let gateway = try await GatewayUnderTest(media: "[ auto ]")
      // The fake microphone starts its file when the page opens it, a moment before the call is connected. Digits are pressed a second after that, and
      // nothing else is heard instead of them: the first word follows them, on a slow machine too.
      let spoken = [Int16](repeating: 0, count: 32_000) + Speech.app
      try Speech.write(spoken, gateway.folder + "/app.wav")
      let browser = try await Peers.browser(
        gateway, ["--answer", "--play", "app.wav", "--record", "app-heard.wav", "--digits", "42#", "--screenshot", "page.png"])
      let talk = Double(max(spoken.count, Speech.telephone.count)) / 8_000 + 1
      let trunk = try await Peers.trunk(
        gateway, ["--call", "+15551230001", "--talk", "\(talk)", "--digits", "7", "--record", "trunk-heard.wav"])
      #expect(try await trunk.finish(within: 40) == 0, "\(trunk.text)\n\(browser.text)")
      #expect(try await browser.finish(within: 20) == 0, "\(browser.text)")

      // Chromium's own encoder begins weakly after digital silence; first words are FirstWordsTests' business.
      let faults =
        try Speech.faults("telephone → browser", said: Speech.telephone, heardIn: gateway.folder + "/app-heard.wav")
        + Speech.faults("browser → telephone", said: spoken, heardIn: gateway.folder + "/trunk-heard.wav", clippedAtMost: 300)
      #expect(trunk.fields("digits", of: "ended") == ["42#"])
      #expect(browser.events.contains { $0["event"] as? String == "digit" && $0["digit"] as? String == "7" })
      let done = browser.events.last { $0["event"] as? String == "done" }
      let meters = try #require(done?["meters"] as? [String: Double], "\(browser.text)")
      #expect(try #require(meters["in"]) > -30)
      #expect(try #require(meters["out"]) > -30)
      #expect(FileManager.default.fileExists(atPath: gateway.folder + "/page.png"))
      let end = try #require(try await gateway.records(1).first?["end"] as? [String: Any])
      #expect(end["reason"] as? String == "remoteHangup")
      try await gateway.finish()
      return faults
    }

    @Test func `the page calls a number, mutes and hangs up (OUT-4)`() async throws {
      try await expectGoodAudio { try await call() }
    }

    private func call() async throws -> [String] {
      let gateway = try await GatewayUnderTest(media: "[ auto ]")
      let tone = (0..<8_000).map { Int16(8_000 * sin(Double($0) * 2 * .pi * 440 / 8_000)) }
      try Speech.write(tone, gateway.folder + "/tone.wav")
      let trunk = try await Peers.trunk(gateway, ["--calls", "1", "--answer-after", "0.3", "--record", "trunk-heard.wav"])
      let browser = try await Peers.browser(
        gateway,
        [
          "--call", "+15559990001", "--play", "tone.wav", "--loop", "--record", "app-heard.wav", "--mute-after", "2",
          "--hangup-after",
          "\(Double(Speech.telephone.count) / 8_000 + 1)",
        ])
      #expect(try await browser.finish(within: 40) == 0, "\(browser.text)")
      #expect(try await trunk.finish(within: 10) == 0, "\(trunk.text)")

      let faults = try Speech.faults(
        "telephone → browser", said: Speech.telephone, heardIn: gateway.folder + "/app-heard.wav")
      let heard = try Speech.read(gateway.folder + "/trunk-heard.wav")
      #expect(Speech.level(heard, from: 0.5, to: 1.5) > 2_000, "heard before mute")
      #expect(Speech.level(heard, from: 2.8, to: Double(heard.count) / 8_000) < 20, "silence after mute")
      let states = browser.events.filter { $0["event"] as? String == "state" }.compactMap { $0["state"] as? String }
      #expect(states.contains("progress"), "it rang in the page")
      let record = try #require(try await gateway.records(1).first)
      #expect(record["direction"] as? String == "out")
      let end = try #require(record["end"] as? [String: Any])
      #expect(end["reason"] as? String == "localEnd")
      #expect(end["by"] as? String == "app")
      try await gateway.finish()
      return faults
    }
  }
}
