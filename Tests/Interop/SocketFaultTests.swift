import Foundation
import Testing

extension Interop {
  /// Sockets and clocks that lie: half open, never read, set an hour forward and back.
  @Suite(.enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct SocketFaultTests {
    @Test func `EXC-4: a device whose network went without a word is woken by a push, and the call is answered`() async throws {
      let service = try await PushServiceUnderTest(.h2)
      let gateway = try await service.gateway()
      let app = try await service.killedApp(gateway, ["--calls", "1", "--answer-after", "0.2"])
      // the same device with a socket that only the gateway believes in
      let ghost = try await Peers.ownPhone(gateway, device: "cell", [])
      ghost.signal(SIGSTOP)
      let caller = try Peers.caller(gateway, "call", ["-d", "500"])
      try await service.deliver(to: app)
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000)) \(gateway.process.text.suffix(3_000))")
      _ = try await app.finish(within: 10)
      #expect(try gateway.sum("trunkline_push_requests_total") == 1)
      ghost.signal(SIGKILL)
      try await ghost.finish(within: 5)
      _ = try await gateway.records(1)
      #expect(gateway.endReasons == ["remoteHangup"])
      try await gateway.finish()
      try await service.stop()
    }

    @Test func `an INVITE while the app's socket is gone is parked, offered at the resume, and answered`()
      async throws
    {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway, ["--calls", "1", "--resume-when-told", "--answer-after", "0.1"])
      phone.type("drop")
      _ = try await phone.event("closed")
      #expect(await eventually(within: 5) { try gateway.sum("trunkline_app_sessions", "connected") == 0 })
      let caller = try Peers.caller(gateway, "call", ["-d", "1000"])
      // parked: well within the 5 s that a device which was just there is waited for
      #expect(await eventually(within: 5) { try gateway.sum("trunkline_calls") == 1 })
      let parked = Date().timeIntervalSince1970 * 1_000
      phone.type("back")
      let resumed = try await phone.event("welcome", within: 5) { $0["resumed"] as? Bool == true }
      #expect(resumed["calls"] == nil)
      _ = try await phone.event("call.connected", within: 5)
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      _ = try await phone.finish(within: 10)
      let record = try #require(try await gateway.records(1).first)
      #expect((record["end"] as? [String: Any])?["reason"] as? String == "remoteHangup")
      let times = try #require(record["times"] as? [String: Int])
      #expect(
        try Double(#require(times["start"])) <= parked && Double(#require(times["deviceRinging"])) >= parked.rounded(.down),
        "\(times)")
      try await gateway.finish(calls: [caller.callID])
    }

    @Test func `nobody comes back: 480 after 5 s`() async throws {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway)
      phone.type("vanish")
      try await phone.finish(within: 5)
      let caller = try Peers.caller(gateway, "refused_480")
      #expect(try await caller.finish(within: 10) == 0, "\(caller.text.suffix(6_000))")
      let record = try #require(try await gateway.records(1).first)
      let times = try #require(record["times"] as? [String: Int])
      let waited = try #require(times["ended"]) - times["start", default: 0]
      #expect((2_500...5_100).contains(waited), "\(waited) ms")
      try await gateway.finish(calls: [caller.callID])
    }

    @Test func `an app whose description is refused does not leave the caller ringing: 488, and its bare answer hears why`()
      async throws
    {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway, ["--unusable", "--answer-after", "0.2"])
      let caller = try Peers.caller(gateway, "refused_488")
      let refused = try await phone.event("prepared")
      #expect(refused["ok"] as? Bool == false)
      let answered = try await phone.event("answered")
      #expect(answered["code"] as? String == "codec")
      #expect(try await caller.finish(within: 10) == 0, "\(caller.text.suffix(6_000))")
      phone.type("quit")
      _ = try await phone.finish(within: 10)
      _ = try await gateway.records(1)
      #expect(gateway.endReasons == ["codec"])
      try await gateway.finish(calls: [caller.callID])
    }

    @Test func `a call whose app's socket is half open goes on by its media, and the app hears of its end when it is back`()
      async throws
    {
      let gateway = try await GatewayUnderTest()
      let port = try FreePorts.tcp()
      let path = try Peers.python("path", "tcp_path.py", ["--listen", "\(port)", "--to", "\(gateway.app)"], gateway)
      _ = try await path.event("listening")
      let phone = try await Peers.ownPhone(gateway, through: port, ["--answer", "--calls", "1"])
      let audio = try await Peers.trunkAudio(gateway)
      let caller = try Peers.caller(gateway, "call", audio: audio.port, ["-d", "3500"])
      #expect(await eventually(within: 10) { try gateway.sum("trunkline_calls", "connected") == 1 })
      path.signal(SIGSTOP)
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      let record = try #require(try await gateway.records(1).first)
      #expect((record["end"] as? [String: Any])?["reason"] as? String == "remoteHangup")
      for side in ["fromTrunk", "fromApp"] {
        let stream = try #require(record[side] as? [String: Any])
        #expect(try #require(stream["packets"] as? Int) > 120, "\(side): \(stream)")
      }
      #expect(phone.isRunning, "it cannot know yet")
      path.signal(SIGCONT)
      #expect(try await phone.finish(within: 20) == 0, "\(phone.text)")
      for peer in [path, audio.peer] {
        peer.signal(SIGKILL)
        try await peer.finish(within: 5)
      }
      try await gateway.finish(calls: [caller.callID])
    }

    @Test func `twenty apps that send and never read are let go, memory stays, and a call beside them is not touched`()
      async throws
    {
      let gateway = try await GatewayUnderTest()
      let bob = try await Peers.ownPhone(gateway, user: "bob", ["--answer", "--calls", "1"])
      let caller = try Peers.caller(gateway, "call", to: "+15551230002", ["-d", "7000"])
      #expect(await eventually(within: 10) { try gateway.sum("trunkline_calls", "connected") == 1 })
      let before = try #require(try gateway.metric("process_resident_memory_bytes"))
      var tokens: [String] = []
      for number in 0..<20 { tokens += ["--token", try await gateway.token("alice", "d\(number)")] }
      let deaf = try Peers.python("deaf", "deaf_app.py", ["--port", "\(gateway.app)", "--seconds", "4"] + tokens, gateway)
      #expect(try await deaf.finish(within: 30) == 0, "\(deaf.text)")
      let result = try #require(deaf.events.last)
      let after = try #require(try gateway.metric("process_resident_memory_bytes"))
      #expect(result["cut"] as? Int == 20, "\(result)")
      #expect(after - before < 24e6, "\(before) → \(after) bytes after \(result)")
      #expect(try await caller.finish(within: 25) == 0, "the call was touched: \(caller.text.suffix(6_000))")
      #expect(try await bob.finish(within: 10) == 0)
      let record = try #require(try await gateway.records(1).first)
      #expect((record["fromApp"] as? [String: Any])?["lost"] as? Int == 0, "\(record)")
      try await gateway.finish(calls: [caller.callID])
    }

    /// A gateway whose wall clock the test sets, by a library that is made and preloaded here.
    private func gateway(clock file: String, in folder: String) async throws -> GatewayUnderTest {
      let library = folder + "/clock_step.so"
      let made = try Spawned(
        "cc", "/usr/bin/env", ["cc", "-shared", "-fPIC", "-O1", "-o", library, Surroundings.sources + "/peers/clock_step.c"],
        in: folder)
      guard try await made.finish(within: 20) == 0 else { throw Spawned.Failure(description: made.text) }
      let program = folder + "/trunkline"
      try "#!/bin/sh\nexec env LD_PRELOAD=\(library) CLOCK_STEP=\(file) \(Surroundings.trunkline) \"$@\"\n".write(
        toFile: program, atomically: true, encoding: .utf8)
      try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program)
      return try await GatewayUnderTest(["timers: { ring: 2s }"], binary: program)
    }

    @Test func `the clock is set an hour forward and back: a call runs on, others ring, are answered and ring out as ever`()
      async throws
    {
      let folder = FileManager.default.temporaryDirectory.appendingPathComponent("trunkline-clock-\(UUID().uuidString.prefix(8))")
        .path
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(atPath: folder) }
      let clock = folder + "/step"
      try "0".write(toFile: clock, atomically: true, encoding: .utf8)
      let gateway = try await gateway(clock: clock, in: folder)
      let bob = try await Peers.ownPhone(gateway, user: "bob", ["--answer", "--calls", "1"])
      let running = try Peers.caller(gateway, "call", to: "+15551230002", ["-d", "10000"])
      #expect(await eventually(within: 10) { try gateway.sum("trunkline_calls", "connected") == 1 })
      var calls = [running.callID]
      for step in [3_600, -3_600] {
        // one that rings while the clock is set, and rings out by its own time
        let silent = try await Peers.ownPhone(gateway, [])
        let waiting = try Peers.caller(gateway, "refused_480")
        #expect(await eventually(within: 5) { try gateway.sum("trunkline_calls", "ringing") == 1 })
        try "\(step)".write(toFile: clock, atomically: false, encoding: .utf8)
        #expect(try await waiting.finish(within: 10) == 0, "\(waiting.text.suffix(6_000))")
        silent.signal(SIGTERM)
        _ = try? await silent.finish(within: 10)
        let phone = try await Peers.ownPhone(gateway, ["--answer", "--calls", "1"])
        let caller = try Peers.caller(gateway, "call", ["-d", "300"])
        #expect(try await caller.finish(within: 15) == 0, "\(step): \(caller.text.suffix(6_000))")
        #expect(try await phone.finish(within: 10) == 0)
        calls += [waiting.callID, caller.callID]
      }
      #expect(bob.isRunning, "the call that ran was touched: \(bob.text.suffix(1_000))")
      #expect(try await running.finish(within: 25) == 0, "\(running.text.suffix(6_000))")
      #expect(try await bob.finish(within: 10) == 0)
      let records = try await gateway.records(5)
      #expect(gateway.endReasons == ["unanswered", "remoteHangup", "unanswered", "remoteHangup", "remoteHangup"])
      for record in records { #expect((0..<60_000).contains(record["connectedMs"] as? Int ?? -1), "\(record)") }
      // the times of each are those of the clock as it was: forward by an hour, then back by two
      let starts = records.compactMap { ($0["times"] as? [String: Int])?["start"] }
      #expect(starts.count == 5 && starts[1] - starts[3] > 7_000_000, "the step was not seen: \(starts)")
      try await gateway.finish(calls: calls)
    }
  }
}
