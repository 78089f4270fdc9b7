import Foundation
import Testing

extension Interop {
  /// Apps that are not there: pushes over HTTP/2 and TLS, wake tokens, and what becomes of the call.
  @Suite(
    .enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"),
    .serialized)
  struct PushTests {
    @Test(.tags(.audio), arguments: PushServiceUnderTest.Kind.allCases)
    func `INC-8, INC-9, SRV-6, PERF-1, PERF-2: a killed app is woken by one push, answers, and both hear each other`(
      kind: PushServiceUnderTest.Kind
    ) async throws {
      try await expectGoodAudio {
        let service = try await PushServiceUnderTest(kind)
        let gateway = try await service.gateway()
        try Speech.write(Speech.telephone, gateway.folder + "/telephone.wav")
        try Speech.write(Speech.app, gateway.folder + "/app.wav")
        let app = try await service.killedApp(
          gateway, ["--play", "app.wav", "--record", "app-heard.wav", "--answer-after", "0.3", "--calls", "1"])
        let audio = try await Peers.trunkAudio(gateway, ["--play", "telephone.wav", "--record", "trunk-heard.wav"])
        let caller = try Peers.caller(gateway, "call", audio: audio.port, ["-d", "8000"])
        try await service.deliver(to: app)
        #expect(try await caller.finish(within: 25) == 0, "\(caller.text.suffix(6_000)) \(gateway.process.text.suffix(3_000))")
        #expect(try await app.finish(within: 10) == 0, "\(app.text)")
        #expect(try await audio.peer.finish(within: 10) == 0)
        let faults =
          try Speech.faults("telephone → app", said: Speech.telephone, heardIn: gateway.folder + "/app-heard.wav")
          + Speech.faults("app → telephone", said: Speech.app, heardIn: gateway.folder + "/trunk-heard.wav")

        let record = try #require(try await gateway.records(1).first)
        #expect(
          (record["end"] as? [String: Any])?["reason"] as? String == "remoteHangup" && record["device"] as? String == "cell")
        let times = try #require(record["times"] as? [String: Int])
        for (earlier, later) in [
          ("pushed", "pushAccepted"), ("pushed", "woken"), ("woken", "deviceRinging"), ("gateOpen", "connected"),
        ] {
          #expect(try #require(times[earlier]) <= (try #require(times[later])), "\(earlier), \(later): \(times)")
        }
        #expect(try gateway.sum("trunkline_push_requests_total") == 1, "one push for the call")
        #expect(try gateway.sum("trunkline_pushes_total", "accepted") == 1)
        #expect(try gateway.sum("trunkline_invite_to_push_seconds_count") == 1)
        #expect(try gateway.sum("trunkline_push_to_connected_seconds_count") == 1)
        try await gateway.finish()
        try await service.stop()
        return faults
      }
    }

    @Test(arguments: PushServiceUnderTest.Kind.allCases)
    func `SRV-3, END-2: the caller hangs up during the push: no second push, and the app that wakes learns why`(
      kind: PushServiceUnderTest.Kind
    ) async throws {
      let service = try await PushServiceUnderTest(kind)
      let gateway = try await service.gateway(["timers: { early180: 300ms }"])
      let app = try await service.killedApp(gateway, ["--calls", "1", "--start-after", "1.5"])
      let caller = try Peers.caller(gateway, "cancel", ["-d", "300"])
      try await service.deliver(to: app)
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000)) \(gateway.process.text.suffix(3_000))")
      #expect(try await app.field("reason", of: "gone") == "callerCancelled", "\(app.text)")
      _ = try await app.finish(within: 10)
      let end = try #require(try await gateway.records(1).first?["end"] as? [String: Any])
      #expect(end["reason"] as? String == "callerCancelled" && end["sip"] as? Int == 487)
      #expect(try gateway.sum("trunkline_push_requests_total") == 1)
      try await gateway.finish()
      try await service.stop()
    }

    @Test
    func `a killed app declines over HTTP with its wake token, and a repeat, a stranger's token and an unknown call are told so`()
      async throws
    {
      let service = try await PushServiceUnderTest(.h2)
      let gateway = try await service.gateway()
      let app = try await service.killedApp(gateway, [])
      let caller = try Peers.caller(gateway, "refused_486")
      let push = try await service.nextPush()
      let call = try #require(push["call"] as? String)
      let wake = try #require(push["wake"] as? String)
      func reject(_ call: String, _ bearer: String?, _ body: String = "") throws -> Int {
        let headers = bearer.map { ["Authorization: Bearer \($0)"] } ?? []
        return try HTTP.request("POST", "/v1/calls/\(call)/reject", port: gateway.app, headers: headers, body: body).status
      }
      #expect(try reject(call, nil) == 401)
      #expect(try reject(call, wake + "x") == 401)
      #expect(try reject("00000000-0000-4000-8000-000000000000", wake) == 401, "a wake token is for its own call")
      #expect(try reject("nonsense", wake) == 404)
      #expect(try reject(call, wake, "{\"scope\":") == 400)
      #expect(try reject(call, wake, String(repeating: " ", count: 5_000)) == 413)
      #expect(try reject(call, wake, "{\"reason\":\"declined\"}") == 200)
      #expect(try reject(call, wake) == 200, "safe to repeat")
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      #expect(try reject("00000000-0000-4000-8000-000000000000", try await gateway.token("alice", "cell")) == 410)
      app.signal(SIGTERM)
      _ = try await app.finish(within: 10)
      try await gateway.finish()
      try await service.stop()
    }

    @Test func `E2E-2: the caller is sealed for the app, which opens it; the service sees neither number nor name`() async throws
    {
      let service = try await PushServiceUnderTest(.h2)
      let gateway = try await service.gateway()
      let opener = try Peers.python("opener", "open_caller.py", [], gateway)
      let key = try #require(try await opener.event("key")["key"] as? String)
      let app = try await service.killedApp(gateway, ["--seal-key", key])
      let caller = try Peers.caller(gateway, "cancel", ["-d", "300"])
      var push = try await service.nextPush()
      #expect(push["from"] == nil && push["enc"] is String, "\(push)")
      func pass(_ push: [String: Any]) throws {
        opener.type(String(decoding: try JSONSerialization.data(withJSONObject: push), as: UTF8.self))
      }
      try pass(push)
      let opened = try await opener.event("opened")
      #expect(opened["h"] as? String == "15550009999" && opened["n"] as? String == "Carrier", "\(opened)")
      #expect((opened["length"] as? Int ?? 1) % 64 == 0)
      // bound to the call: a seal that is moved to another push says nothing
      push["call"] = "00000000-0000-4000-8000-000000000000"
      try pass(push)
      _ = try await opener.event("refused")
      opener.closeInput()
      #expect(try await opener.finish(within: 5) == 0)
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      app.signal(SIGTERM)
      _ = try? await app.finish(within: 10)
      try await gateway.finish()
      try await service.stop()
    }

    private static func run(_ arguments: [String], _ gateway: GatewayUnderTest) async throws -> (status: Int32, text: String) {
      let command = try Spawned(
        "cli", Surroundings.trunkline, arguments + ["--config", gateway.folder + "/gateway.yaml"], in: gateway.folder)
      return (try await command.finish(within: 30), command.text)
    }

    @Test func `SRV-5: SIGHUP takes a new key: the next push is signed with it on a connection of its own, and none is lost`()
      async throws
    {
      let service = try await PushServiceUnderTest(.h2)
      let gateway = try await service.gateway()
      let app = try await service.killedApp(gateway, [])
      for round in 1...2 {
        let test = try await Self.run(["push", "test", "--user", "alice"], gateway)
        #expect(test.status == 0 && test.text.contains("accepted"), "\(test.text)")
        guard round == 1 else { break }
        let path = gateway.folder + "/gateway.yaml"
        try String(contentsOfFile: path, encoding: .utf8).replacing("KEY1", with: "KEY2").write(
          toFile: path, atomically: true, encoding: .utf8)
        gateway.process.signal(SIGHUP)
        #expect(await eventually(within: 5) { gateway.process.text.contains("configuration read again") })
      }
      let seen = service.keysAndConnections
      #expect(seen.map(\.key) == ["KEY1", "KEY2"] && Set(seen.map(\.connection)).count == 2, "\(seen)")
      app.signal(SIGTERM)
      _ = try? await app.finish(within: 10)
      try await gateway.finish()
      try await service.stop()
    }

    @Test func `TOK-5: an Android app is woken over FCM`() async throws {
      let service = try await PushServiceUnderTest(.standIn)
      let gateway = try await service.gateway(["timers: { early180: 300ms }"], over: .fcm)
      let app = try await service.killedApp(gateway, ["--push-kind", "fcm", "--calls", "1", "--answer-after", "20"])
      let caller = try Peers.caller(gateway, "cancel", ["-d", "1000"])
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000)) \(gateway.process.text.suffix(3_000))")
      _ = try? await app.finish(within: 10)
      #expect(app.events.contains { $0["event"] as? String == "ringing" }, "\(app.text)")
      #expect(try gateway.sum("trunkline_pushes_total", "service=\"fcm\",outcome=\"accepted\"") == 1)
      try await gateway.finish()
      try await service.stop()
    }

    @Test func `TOK-4, TOK-5: registrations outlive kill -9, push test says what is wrong, and a revoked device is not woken`()
      async throws
    {
      let service = try await PushServiceUnderTest(.standIn, answers: "real,400,410,real")
      let gateway = try await service.gateway()
      let app = try await service.killedApp(gateway, [])
      gateway.process.signal(SIGKILL)
      try await gateway.process.finish(within: 5)
      try await gateway.restart()
      func run(_ arguments: [String]) async throws -> (status: Int32, text: String) { try await Self.run(arguments, gateway) }
      let list = try await run(["devices", "list"])
      #expect(list.status == 0 && list.text.contains("cell") && list.text.contains("apns"), "\(list.text)")
      let good = try await run(["push", "test", "--user", "alice"])
      #expect(good.status == 0 && good.text.contains("alice/cell: accepted") && good.text.contains("apns-id "), "\(good.text)")
      #expect(try await app.field("reason", of: "gone") == "unknown", "\(app.text)")
      let wrong = try await run(["push", "test", "--user", "alice", "--device", "cell"])
      #expect(wrong.status == 1 && wrong.text.contains("BadDeviceToken") && wrong.text.contains("env: sandbox"), "\(wrong.text)")
      #expect(try gateway.sum("trunkline_push_token_mismatches_total", "environment=\"production\"") == 1)
      let resting = try await run(["push", "test", "--user", "alice"])
      #expect(resting.status == 1 && resting.text.contains("409"), "unusable until the app registers again: \(resting.text)")
      app.signal(SIGTERM)
      _ = try? await app.finish(within: 10)

      let again = try await service.killedApp(gateway, [])
      let gone = try await run(["push", "test", "--user", "alice"])
      #expect(gone.status == 1 && gone.text.contains("Unregistered"), "\(gone.text)")
      #expect(try await run(["devices", "list"]).text.contains("no devices"))
      again.signal(SIGTERM)
      _ = try? await again.finish(within: 10)

      let third = try await service.killedApp(gateway, [])
      let revoked = try await run(["devices", "revoke", "--user", "alice", "--device", "cell"])
      #expect(revoked.status == 0, "\(revoked.text)")
      let caller = try Peers.caller(gateway, "refused_480")
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      #expect(!third.text.contains("\"pushed\""))
      #expect(try await run(["devices", "show", "--user", "bob", "--device", "cell"]).status == 1, "alice's device is not bob's")
      third.signal(SIGTERM)
      _ = try? await third.finish(within: 10)
      try await gateway.finish()
      try await service.stop()
    }
  }
}
