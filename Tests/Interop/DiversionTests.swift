import Foundation
import Testing

extension Interop {
  /// Calls that no device answers: two carriers joined by the gateway, and a recording.
  @Suite(
    .tags(.audio), .enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"),
    .serialized)
  struct DiversionTests {
    private let users = { (rules: String) in "users: [ { id: alice, numbers: [\"+15551230001\"], diversions: { \(rules) } } ]" }

    private func caller(_ gateway: GatewayUnderTest, _ more: [String]) async throws -> Spawned {
      let port = try FreePorts.both()
      return try Spawned(
        "caller", Surroundings.lab,
        ["trunk", "--gateway", "127.0.0.1:\(gateway.sip)", "--listen", "127.0.0.1:\(port)", "--events", "--call", "+15551230001"]
          + more,
        in: gateway.folder)
    }

    @Test
    func `SRV-7: no device is there: a second trunk leg gets the call, both ends hear each other, one record names both legs`()
      async throws
    {
      try await expectGoodAudio {
        let gateway = try await GatewayUnderTest([users("unreached: { number: \"+15558887777\" }")])
        try Speech.write(Speech.telephone, gateway.folder + "/caller.wav")
        try Speech.write(Speech.app, gateway.folder + "/number.wav")
        let number = try await Peers.trunk(
          gateway,
          ["--calls", "1", "--answer-after", "0.5", "--codec", "PCMA", "--play", "number.wav", "--record", "number-heard.wav"])
        let caller = try await caller(
          gateway, ["--talk", "10", "--codec", "PCMU", "--play", "caller.wav", "--record", "caller-heard.wav"])
        #expect(try await caller.finish(within: 25) == 0, "\(caller.text.suffix(6_000))")
        #expect(try await number.finish(within: 10) == 0, "\(number.text.suffix(6_000))")
        let record = try #require(try await gateway.records(1).first)
        let diversion = try #require((record["diversions"] as? [[String: Any]])?.first)
        #expect(diversion["why"] as? String == "unreached" && diversion["number"] as? String == "+15558887777")
        #expect(
          (diversion["sipCallId"] as? String)?.isEmpty == false
            && record["sipCallId"] as? String != diversion["sipCallId"] as? String)
        #expect((record["end"] as? [String: Any])?["reason"] as? String == "remoteHangup")
        let faults =
          try Speech.faults("caller → number", said: Speech.telephone, heardIn: gateway.folder + "/number-heard.wav")
          + Speech.faults("number → caller", said: Speech.app, heardIn: gateway.folder + "/caller-heard.wav")
        gateway.note(invites: [record["sipCallId"] as? String ?? ""])
        try await gateway.finish()
        return faults
      }
    }

    @Test
    func `SRV-7, OUT-5: the first trunk to the number fails, the next gets the call: its early media and digits both ways pass`()
      async throws
    {
      let (first, next) = (try FreePorts.both(), try FreePorts.both())
      let gateway = try await GatewayUnderTest(
        [
          users("unreached: { number: \"+15558887777\" }"),
          "trunks: [ { name: second, peers: [127.0.0.3], uri: \"sip:127.0.0.1:\(next)\" }, "
            + "{ name: carrier, peers: [127.0.0.0/8], uri: \"sip:127.0.0.1:\(first)\" } ]",
          "routes: { inbound: [ { trunk: carrier, to: users } ], outbound: [ { prefix: \"+\", trunks: [ carrier, second ] } ] }",
        ], carrier: first)
      let failing = try await Peers.callee(gateway, "unavailable")
      let number = try Spawned(
        "number", Surroundings.lab,
        [
          "trunk", "--gateway", "127.0.0.1:\(gateway.sip)", "--listen", "127.0.0.1:\(next)", "--events", "--calls", "1",
          "--early",
          "--answer-after", "2", "--digits", "42",
        ], in: gateway.folder)
      _ = try await number.event("listening")
      let caller = try await caller(gateway, ["--talk", "3", "--digits", "7", "--record", "caller-heard.wav"])
      #expect(try await caller.finish(within: 25) == 0, "\(caller.text.suffix(6_000))")
      for peer in [number, failing] { #expect(try await peer.finish(within: 10) == 0, "\(peer.text.suffix(6_000))") }
      let order = caller.events.compactMap { $0["event"] as? String }.filter { ["firstAudio", "answered"].contains($0) }
      #expect(order == ["firstAudio", "answered"], "heard before the answer: \(caller.text)")
      #expect(
        caller.fields("code", of: "progress").contains("183") && caller.fields("digits", of: "ended") == ["42"], "\(caller.text)")
      #expect(number.fields("digits", of: "ended") == ["7"], "\(number.text)")
      #expect(Speech.level(try Speech.read(gateway.folder + "/caller-heard.wav"), from: 0.3, to: 1.6) > 300)
      let record = try #require(try await gateway.records(1).first)
      let diversions = try #require(record["diversions"] as? [[String: Any]])
      #expect(diversions.count == 1 && diversions.first?["trunk"] as? String == "second", "\(record)")
      #expect((record["end"] as? [String: Any])?["reason"] as? String == "remoteHangup")
      gateway.note(invites: [record["sipCallId"] as? String ?? ""])
      try await gateway.finish()
    }

    @Test func `a recording is heard from its first word to its last, then the gateway hangs up`() async throws {
      try await expectGoodAudio {
        let gateway = try await GatewayUnderTest(["users: []"])
        try Speech.write(Speech.app, gateway.folder + "/away.wav")
        let yaml = try String(contentsOfFile: gateway.folder + "/gateway.yaml", encoding: .utf8)
          .replacingOccurrences(of: "users: []", with: users("unreached: { play: away.wav }"))
        try yaml.write(toFile: gateway.folder + "/gateway.yaml", atomically: true, encoding: .utf8)
        gateway.process.signal(SIGHUP)
        #expect(await eventually(within: 5) { gateway.process.text.contains("configuration read again") })
        let caller = try await caller(gateway, ["--record", "caller-heard.wav"])
        #expect(try await caller.finish(within: 30) == 0, "\(caller.text.suffix(6_000))")
        let record = try #require(try await gateway.records(1).first)
        #expect((record["end"] as? [String: Any])?["reason"] as? String == "unanswered")
        gateway.note(invites: [record["sipCallId"] as? String ?? ""])
        let faults = try Speech.faults("recording → caller", said: Speech.app, heardIn: gateway.folder + "/caller-heard.wav")
        try await gateway.finish()
        return faults
      }
    }
  }
}
