import Foundation
import SpeechScore
import Testing

extension Interop {
  /// Calls between users with three kinds of app that know nothing of each other: aiortc, the Swift client and headless Chromium. No carrier
  /// is there.
  @Suite(
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Surroundings.chromium != nil),
      "no chromium or no .venv: run Scripts/install test"), .serialized)
  struct UserCallTests {
    enum App: String, CaseIterable { case aiortc, swift, chromium }

    /// The speaker of Chromium starts when the page opens its microphone, long before the call is connected.
    private func words(_ app: App, _ speech: [Int16]) -> [Int16] {
      app == .chromium ? [Int16](repeating: 0, count: 24_000) + speech : speech
    }

    private func start(_ app: App, _ gateway: GatewayUnderTest, user: String, _ arguments: [String]) async throws -> Spawned {
      switch app {
      case .aiortc: try await Peers.phone(gateway, user: user, device: "py", arguments + ["--calls", "1"])
      case .swift: try await Peers.ownPhone(gateway, user: user, device: "swift", arguments + ["--calls", "1"])
      case .chromium: try await Peers.browser(gateway, user: user, arguments)
      }
    }

    private func call(_ caller: App, _ called: App) async throws -> [String] {
      let isWeb = caller == .chromium || called == .chromium
      let gateway = try await GatewayUnderTest(media: isWeb ? "[ 127.0.0.1, auto ]" : "[ 127.0.0.1 ]")
      let (told, answered) = (words(caller, Speech.telephone), words(called, Speech.app))
      try Speech.write(told, gateway.folder + "/caller.wav")
      try Speech.write(answered, gateway.folder + "/called.wav")
      let talk = "\(Double(max(told.count, answered.count)) / 8_000 + 1.5)"
      let second = try await start(
        called, gateway, user: "bob",
        ["--play", "called.wav", "--record", "called-heard.wav"]
          + (called == .aiortc ? ["--answer-after", "0.3"] : ["--answer"]))
      let ends = [App.aiortc: "--end-after", .swift: "--talk", .chromium: "--hangup-after"][caller] ?? ""
      let first = try await start(
        caller, gateway, user: "alice",
        ["--call", "+15551230002", "--play", "caller.wav", "--record", "caller-heard.wav", ends, talk])
      #expect(try await first.finish(within: 60) == 0, "\(first.text)\n\(second.text)")
      #expect(try await second.finish(within: 20) == 0, "\(second.text)")

      let records = try await gateway.records(2)
      for record in records {
        #expect(record["trunk"] as? String == "direct")
        #expect((record["codecs"] as? [String: String]) == ["trunk": "opus", "app": "opus"])
        let peer = try #require(record["peer"] as? [String: String])
        #expect(records.contains { $0["call"] as? String == peer["call"] && $0["user"] as? String == peer["user"] })
      }
      let ended = Set(records.compactMap { ($0["end"] as? [String: Any])?["reason"] as? String })
      #expect(ended == ["localEnd", "remoteHangup"])
      #expect(try gateway.sum("trunkline_answered_without_media_total") == 0)
      let faults =
        try Speech.faults(
          "\(caller) → \(called)", said: told, heardIn: gateway.folder + "/called-heard.wav",
          clippedAtMost: caller == .chromium ? 300 : 20, delayWithin: -4_000...1_000)
        + Speech.faults(
          "\(called) → \(caller)", said: answered, heardIn: gateway.folder + "/caller-heard.wav",
          clippedAtMost: called == .chromium ? 300 : 20, delayWithin: -4_000...1_000)
      try await gateway.finish()
      return faults
    }

    @Test(.tags(.audio), arguments: [(App.aiortc, App.swift), (.swift, .chromium), (.chromium, .aiortc)])
    func `each hears every word of the other; both records name the other call`(caller: App, called: App) async throws {
      try await expectGoodAudio { try await call(caller, called) }
    }

    @Test func `a user is called by id, declines, and the caller is told so`() async throws {
      let gateway = try await GatewayUnderTest(users: ["alice": "+15551230001", "bob": "+15551230002"])
      let second = try await Peers.phone(gateway, user: "bob", device: "py")
      let first = try await Peers.ownPhone(gateway, device: "swift", ["--call", "bob", "--calls", "1"])
      _ = try await second.event("prepared")
      second.type("reject")
      _ = try await first.finish(within: 10)
      let reasons = try await gateway.records(2).compactMap { ($0["end"] as? [String: Any])?["reason"] as? String }
      #expect(reasons == ["declined", "declined"], "\(first.text)")
      try await gateway.finish()
    }

    @Test(.tags(.audio)) func `nobody is there: the call goes on to the carrier by the user's diversion`() async throws {
      let gateway = try await GatewayUnderTest([
        "users: [ { id: alice, numbers: [\"+15551230001\"] }, { id: bob, numbers: [\"+15551230002\"], diversions: { unreached: { number: \"+15557654321\" } } } ]"
      ])
      let trunk = try await Peers.trunk(gateway, ["--calls", "1", "--record", "trunk-heard.wav"])
      let words = Speech.app
      try Speech.write(words, gateway.folder + "/caller.wav")
      let first = try await Peers.phone(
        gateway,
        ["--call", "+15551230002", "--play", "caller.wav", "--record", "caller-heard.wav", "--end-after", "8", "--calls", "1"])
      #expect(try await first.finish(within: 40) == 0, "\(first.text)")
      #expect(try await trunk.finish(within: 10) == 0, "\(trunk.text)")
      let faults =
        try Speech.faults("app → number", said: words, heardIn: gateway.folder + "/trunk-heard.wav", clippedAtMost: 60)
        + Speech.faults("number → app", said: Speech.telephone, heardIn: gateway.folder + "/caller-heard.wav", clippedAtMost: 60)
      #expect(faults == [])
      let theirs = try #require(try await gateway.records(2).first { $0["user"] as? String == "bob" })
      #expect((theirs["diversions"] as? [[String: Any]])?.first?["number"] as? String == "+15557654321")
      try await gateway.finish()
    }
  }
}
