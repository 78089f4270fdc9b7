import Foundation
import Testing

extension Interop {
  /// Peers that break in the middle of a call.
  @Suite(.enabled(if: Surroundings.missing == nil, "\(Surroundings.missing ?? "")"), .serialized) struct FaultTests {
    @Test(arguments: [("--no-ice", "mediaTimeout"), ("--bad-fingerprint", "mediaFailed")])
    func `an app without media: the trunk hears 480 with cause 41, never 200`(habit: String, reason: String) async throws {
      let gateway = try await GatewayUnderTest(["timers: { media_gate_warm: 2s, media_gate_cold: 2s }"])
      let phone = try await Peers.phone(gateway, [habit, "--answer-after", "0.1", "--calls", "1"])
      let trunk = try RawTrunk(gateway)
      let request = trunk.request("INVITE", sdp: RawTrunk.offer())
      let answer = trunk.ask(request)
      #expect(answer?.code == 480, "\(answer?.text ?? "silence")")
      #expect(answer?.header("Reason")?.contains("Q.850;cause=41") == true, "\(answer?.text ?? "")")
      _ = try await phone.event("call.ended") { $0["reason"] as? String == reason }
      try await phone.finish(within: 10)
      _ = try await gateway.records(1)
      #expect(gateway.endReasons == [reason])
      try await gateway.finish(calls: [request.callID])
    }

    @Test(arguments: ["dtls-garbage", "dtls-cut"])
    func `an app whose DTLS is broken after an honest ICE is no call, and its neighbour is`(habit: String) async throws {
      let gateway = try await GatewayUnderTest(["timers: { media_gate_warm: 3s, media_gate_cold: 3s }"])
      let hostile = try await Peers.hostile(gateway, habit, device: "d1", ["--answer-after", "0.1", "--calls", "1"])
      let bob = try await Peers.phone(gateway, user: "bob", device: "d2", ["--answer-after", "0.1", "--calls", "1"])
      let refused = try Peers.caller(gateway, "refused_480")
      let good = try Peers.caller(gateway, "call", to: "+15551230002", ["-d", "2000"])
      #expect(try await refused.finish(within: 20) == 0, "\(refused.text.suffix(6_000))")
      #expect(try await good.finish(within: 20) == 0, "\(good.text.suffix(6_000))")
      let ended = try await hostile.event("call.ended")
      let reason = try #require(ended["reason"] as? String)
      #expect(["mediaTimeout", "mediaFailed"].contains(reason))
      for phone in [hostile, bob] { try await phone.finish(within: 15) }
      _ = try await gateway.records(2)
      #expect(Set(gateway.endReasons) == [reason, "remoteHangup"])
      try await gateway.finish(calls: [refused.callID, good.callID])
    }

    @Test(.tags(.audio)) func `an app that sends junk beside its audio is heard all the same, and drops are counted by reason`()
      async throws
    {
      try await expectGoodAudio {
        let gateway = try await GatewayUnderTest()
        try Speech.write(Speech.telephone, gateway.folder + "/telephone.wav")
        try Speech.write(Speech.app, gateway.folder + "/app.wav")
        let phone = try await Peers.hostile(
          gateway, "midcall", device: "d1",
          ["--play", "app.wav", "--record", "app-heard.wav", "--answer-after", "0.2", "--calls", "1"])
        let audio = try await Peers.trunkAudio(gateway, ["--play", "telephone.wav", "--record", "trunk-heard.wav"])
        let caller = try Peers.caller(gateway, "call", audio: audio.port, ["-d", "9500"])
        #expect(try await caller.finish(within: 25) == 0, "\(caller.text.suffix(6_000))")
        #expect(try await phone.finish(within: 10) == 0, "\(phone.text.suffix(6_000))")
        #expect(try await audio.peer.finish(within: 10) == 0)
        let faults =
          try Speech.faults("telephone → app", said: Speech.telephone, heardIn: gateway.folder + "/app-heard.wav")
          + Speech.faults("app → telephone", said: Speech.app, heardIn: gateway.folder + "/trunk-heard.wav")
        #expect(try gateway.sum("trunkline_media_drops_total") > 100)
        try await gateway.finish(calls: [caller.callID])
        return faults
      }
    }

    @Test func `an app killed while it rings: the call rings out and ends unanswered`() async throws {
      let gateway = try await GatewayUnderTest(["timers: { ring: 3s }"])
      let phone = try await Peers.phone(gateway)
      let caller = try Peers.caller(gateway, "refused_480")
      _ = try await phone.event("prepared")
      phone.signal(SIGKILL)
      try await phone.finish(within: 5)
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      _ = try await gateway.records(1)
      #expect(gateway.endReasons == ["unanswered"])
      try await gateway.finish(calls: [caller.callID])
    }

    @Test func `an app killed between the tap and its media: the deadline ends the call`() async throws {
      let gateway = try await GatewayUnderTest(["timers: { media_gate_warm: 2s, media_gate_cold: 2s }"])
      let phone = try await Peers.phone(gateway, ["--no-ice", "--answer-after", "0.1"])
      let caller = try Peers.caller(gateway, "refused_480")
      _ = try await phone.event("answered")
      phone.signal(SIGKILL)
      try await phone.finish(within: 5)
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      _ = try await gateway.records(1)
      #expect(gateway.endReasons == ["mediaTimeout"], "\(gateway.endReasons)")
      try await gateway.finish(calls: [caller.callID])
    }

    /// The one slow test of faults: 15 s of silence of the app, 20 s of the trunk, are what the protocol says. A third call
    /// beside them must not notice.
    @Test func `an app and a trunk vanish mid-call: networkLost with BYE, trunkLost, and others talk on`() async throws {
      let gateway = try await GatewayUnderTest(
        ["timers: { app_grace: 1s }"], users: ["alice": "+15551230001", "bob": "+15551230002", "carol": "+15551230003"])
      let alice = try await Peers.phone(gateway, ["--answer-after", "0.1"])
      let bob = try await Peers.phone(gateway, user: "bob", device: "d2", ["--answer-after", "0.1", "--calls", "1"])
      let carol = try await Peers.phone(gateway, user: "carol", device: "d3", ["--answer-after", "0.1", "--calls", "1"])
      let toAlice = try Peers.caller(gateway, "call_until_bye")
      let audio = try await Peers.trunkAudio(gateway)
      let toBob = try Peers.caller(gateway, "call", to: "+15551230002", audio: audio.port, ["-d", "60000"])
      let toCarol = try Peers.caller(gateway, "call", to: "+15551230003", ["-d", "28000"])
      for phone in [alice, bob, carol] { _ = try await phone.event("call.connected") }
      _ = try await audio.peer.event("first_packet")
      #expect(await eventually(within: 5) { try gateway.sum("trunkline_media_packets_total", "trunk_received") > 20 })
      let vanished = ContinuousClock.now
      for peer in [alice, toBob, audio.peer] {
        peer.signal(SIGKILL)
        try await peer.finish(within: 5)
      }
      #expect(try await toAlice.finish(within: 30) == 0, "no BYE for the lost app: \(toAlice.text.suffix(6_000))")
      let lost = ContinuousClock.now - vanished
      #expect(lost > .seconds(14) && lost < .seconds(20), "\(lost)")
      // The dead carrier's port answers the OPTIONS with ICMP errors, which are believed after 3.5 s; a silent one has 20 s (Scenarios).
      _ = try await bob.event("call.ended", within: 30) { $0["reason"] as? String == "trunkLost" }
      #expect(ContinuousClock.now - vanished > .seconds(19))
      #expect(try await bob.finish(within: 10) == 0)
      #expect(try await toCarol.finish(within: 40) == 0, "another call was disturbed")
      #expect(try await carol.finish(within: 10) == 0)
      _ = try await gateway.records(3)
      #expect(gateway.endReasons == ["networkLost", "trunkLost", "remoteHangup"], "\(gateway.endReasons)")
      try await gateway.finish(calls: [toAlice, toBob, toCarol].map(\.callID))
    }

    /// Refused without state, or by the reservation that came too late. The first are published once a second.
    private func refusals(_ gateway: GatewayUnderTest, _ early: String, _ late: String) throws -> Double {
      try gateway.sum("trunkline_sip_refused_total", "reason=\"\(early)\"")
        + gateway.sum("trunkline_calls_refused_total", "reason=\"\(late)\"")
    }

    @Test func `ports run out: 503 and a counted refusal, and the call that has them goes on`() async throws {
      let first = try FreePorts.row(4)
      let gateway = try await GatewayUnderTest([
        "media: { addresses: [ 127.0.0.1 ], threads: 1, app_port: \(first + 2), trunk_ports: \(first)-\(first + 1) }"
      ])
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1"])
      let other = try await Peers.phone(gateway, user: "bob", device: "d2")
      let caller = try Peers.caller(gateway, "call", ["-d", "1500"])
      _ = try await phone.event("call.connected")
      let trunk = try RawTrunk(gateway)
      var refused: [String] = []
      for _ in 0..<3 {
        let request = trunk.request("INVITE", to: "+15551230002", sdp: RawTrunk.offer())
        let answer = trunk.ask(request)
        #expect(answer?.code == 503, "\(answer?.text ?? "silence")")
        #expect(answer?.header("Retry-After") != nil)
        refused.append(request.callID)
      }
      #expect(await eventually(within: 3) { try refusals(gateway, "ports", "mediaPorts") == 3 })
      #expect(try await caller.finish(within: 20) == 0, "the running call was touched")
      #expect(!other.events.contains { $0["event"] as? String == "call.offer" })
      for peer in [phone, other] {
        peer.type("quit")
        try await peer.finish(within: 10)
      }
      try await gateway.finish(calls: [caller.callID], refused: refused)
    }

    @Test func `media threads are full: 503 in 100 ms, counted, and the call that runs is not touched`() async throws {
      let first = try FreePorts.row(20)
      // An idle thread takes one call whatever its limit; a few more may fit once complexity has fallen.
      let gateway = try await GatewayUnderTest([
        "media: { addresses: [ 127.0.0.1 ], threads: 1, app_port: \(first + 18), trunk_ports: \(first)-\(first + 17), "
          + "load_limit: 1 }",
        "timers: { ring: 3s }",
      ])
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1"])
      let other = try await Peers.phone(gateway, user: "bob", device: "d2")
      let caller = try Peers.caller(gateway, "call", ["-d", "6000"])
      _ = try await phone.event("call.connected")
      let trunk = try RawTrunk(gateway)
      var (refused, ringing): ([String], [String]) = ([], [])
      for _ in 0..<6 {
        let request = trunk.request("INVITE", to: "+15551230002", sdp: RawTrunk.offer())
        let asked = ContinuousClock.now
        let answer = trunk.ask(request)
        guard answer?.code == 503 else {
          ringing.append(request.callID)
          continue
        }
        let took = ContinuousClock.now - asked
        if took > .milliseconds(100) { Issue.record("503 after \(took)", severity: .warning) }
        #expect(answer?.header("Retry-After") != nil)
        refused.append(request.callID)
      }
      #expect(!refused.isEmpty)
      let count = Double(refused.count)
      #expect(await eventually(within: 3) { try refusals(gateway, "cpu", "mediaOverload") == count })
      #expect(await eventually(within: 2) { try gateway.get("/readyz").body.contains("overloaded (cpu)") })
      #expect(try await caller.finish(within: 20) == 0, "the running call was touched")
      for peer in [phone, other] {
        peer.type("quit")
        try await peer.finish(within: 10)
      }
      try await gateway.finish(calls: [caller.callID] + ringing, refused: refused)
    }
  }
}

extension Peers {
  /// `phone` whose media breaks the rules as `hostile_phone.py` says.
  static func hostile(_ gateway: GatewayUnderTest, _ habit: String, user: String = "alice", device: String, _ more: [String])
    async throws -> Spawned
  {
    let token = try await gateway.token(user, device)
    let phone = try python(
      "hostile-\(device)", "hostile_phone.py",
      [
        habit, "--url", "ws://127.0.0.1:\(gateway.app)/v1/connect", "--token", token, "--device", device, "--host", "127.0.0.1",
        "--seconds", "60",
      ] + more, gateway)
    _ = try await phone.event("welcome", within: 15)
    return phone
  }
}
