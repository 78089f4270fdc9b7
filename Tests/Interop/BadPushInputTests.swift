import Foundation
import Testing

extension Interop {
  /// What apps get wrong, or attackers try, around registrations and wake tokens: a clear error, nothing lost, nothing rings twice.
  @Suite(.enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct BadPushInputTests {
    private func badApp(_ gateway: GatewayUnderTest, _ what: String, _ more: [String] = []) throws -> Spawned {
      try Peers.python(
        "bad-\(what)", "bad_app.py",
        [what, "--url", "ws://127.0.0.1:\(gateway.app)/v1/connect", "--key", gateway.folder + "/jwt.key"] + more, gateway)
    }

    @Test func `TOK-5: every wrong device-put gets its error, and the registration from before is pushed to, once`() async throws
    {
      let service = try await PushServiceUnderTest(.h2)
      let gateway = try await service.gateway()
      let app = try await service.killedApp(gateway, ["--calls", "1"])
      let puts = try badApp(gateway, "puts")
      #expect(try await puts.finish(within: 60) == 0, "\(puts.text)")
      let answers = puts.events.filter { $0["event"] as? String == "put" }
      #expect(answers.count == 14)
      for answer in answers {
        #expect(answer["got"] as? String == "err" && answer["code"] as? String == "badRequest", "\(answer)")
        #expect((answer["msg"] as? String)?.isEmpty == false, "\(answer)")
      }
      #expect(puts.events.contains { $0["event"] as? String == "deleted" && $0["got"] as? String == "ok" }, "\(puts.text)")
      #expect(puts.events.contains { $0["event"] as? String == "oversized" && $0["close"] as? Int == 1009 }, "\(puts.text)")
      let caller = try Peers.caller(gateway, "cancel", ["-d", "1000"])
      let push = try await service.nextPush()
      #expect(push["call"] is String)
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      #expect(try gateway.sum("trunkline_push_requests_total") == 1)
      app.signal(SIGTERM)
      _ = try? await app.finish(within: 10)
      try await gateway.finish()
      try await service.stop()
    }

    @Test func `INC-9: forged and foreign wake tokens open nothing; a good one twice is one device, and the call rings on`()
      async throws
    {
      let service = try await PushServiceUnderTest(.h2)
      let gateway = try await service.gateway(["timers: { early180: 300ms }"])
      let app = try await service.killedApp(gateway, [])
      let caller = try Peers.caller(gateway, "cancel", ["-d", "6000"])
      let push = try await service.nextPush()
      let wakes = try badApp(gateway, "wakes", ["--wake", try #require(push["wake"] as? String)])
      #expect(try await wakes.finish(within: 60) == 0, "\(wakes.text)")
      let refused = wakes.events.filter { $0["event"] as? String == "wake" }
      #expect(refused.count == 9)
      for answer in refused {
        #expect(answer["close"] as? Int == 4001 && answer["got"] as? String != "welcome", "\(answer)")
      }
      let good = wakes.events.filter { $0["event"] as? String == "good" }
      #expect(good.count == 2)
      for answer in good {
        #expect(
          answer["got"] as? String == "welcome" && answer["calls"] as? [String] == [push["call"] as? String ?? ""], "\(answer)")
      }
      #expect(wakes.events.contains { $0["event"] as? String == "replaced" && $0["close"] as? Int == 4009 }, "\(wakes.text)")
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      #expect(try gateway.sum("trunkline_push_requests_total") == 1, "one push for the call")
      _ = try await gateway.records(1)
      #expect(gateway.endReasons == ["callerCancelled"])
      app.signal(SIGTERM)
      _ = try? await app.finish(within: 10)
      try await gateway.finish()
      try await service.stop()
    }
  }
}
