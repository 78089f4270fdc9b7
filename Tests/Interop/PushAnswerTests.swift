import Foundation
import Testing

extension Interop {
  /// Every answer that a push service may give, and the gateway's reaction.
  @Suite(.enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct PushAnswerTests {
    private struct Row {
      var answers: String
      var isAccepted: Bool
      var attempts: Int
      var reason: String
      /// Part of the advice to the operator.
      var advice = ""
      init(_ answers: String, _ isAccepted: Bool, _ attempts: Int, _ reason: String, _ advice: String = "") {
        (self.answers, self.isAccepted, self.attempts, self.reason, self.advice) = (answers, isAccepted, attempts, reason, advice)
      }
    }

    /// The tables of Apple and Google; a registration that is refused for good comes last.
    private static let apns = [
      Row("real", true, 1, "accepted"), Row("500,real", true, 2, "accepted"), Row("503,real", true, 2, "accepted"),
      Row("goaway,real", true, 2, "accepted"), Row("drop,real", true, 2, "accepted"), Row("413,real", true, 2, "accepted"),
      Row("delay:700", true, 1, "accepted"), Row("403", false, 1, "InvalidProviderToken", "push.apns.key_id"),
      Row("429", false, 1, "TooManyRequests", "wait"), Row("413,413", false, 2, "PayloadTooLarge", "push.gateway"),
      Row("500,503", false, 2, "ServiceUnavailable", "try again"), Row("real", true, 1, "accepted"),
    ]
    private static let fcm = [
      Row("real", true, 1, "accepted"), Row("429,real", true, 2, "accepted"), Row("503,real", true, 2, "accepted"),
      Row("goaway,real", true, 2, "accepted"), Row("drop,real", true, 2, "accepted"), Row("delay:300", true, 1, "accepted"),
      Row("400", false, 1, "INVALID_ARGUMENT", "registration token"), Row("real", true, 1, "accepted"),
    ]

    @Test(arguments: ["apns", "fcm"])
    func `TOK-4, SRV-3: each answer of the push service has its reaction, and the device stays or goes as the tables say`(
      service name: String
    ) async throws {
      let isAPNs = name == "apns"
      let rows = isAPNs ? Self.apns : Self.fcm
      let last = isAPNs ? "reorder,real,400,410" : "403,404"
      let service = try await PushServiceUnderTest(.standIn, answers: (rows.map(\.answers) + [last]).joined(separator: ","))
      let gateway = try await service.gateway(over: isAPNs ? .apns : .fcm)
      func registered() async throws -> Spawned {
        try await service.killedApp(gateway, isAPNs ? [] : ["--push-kind", "fcm"])
      }
      let app = try await registered()
      for row in rows {
        let (ids, pushed) = (service.attempts.count, app.fields("from", of: "pushed").count)
        let result = try #require(try gateway.testPush().first, "\(row.answers)")
        #expect(
          result["accepted"] as? Bool == row.isAccepted && result["reason"] as? String == row.reason, "\(row.answers): \(result)")
        #expect(result["attempts"] as? Int == row.attempts, "\(row.answers): \(result)")
        #expect(row.advice.isEmpty || (result["advice"] as? String ?? "").contains(row.advice), "\(row.answers): \(result)")
        if isAPNs {
          let own = service.attempts.dropFirst(ids)
          #expect(own.count == row.attempts && Set(own) == [result["apnsId"] as? String ?? ""], "\(row.answers): one id, \(own)")
        }
        guard row.isAccepted else { continue }
        #expect(
          await eventually(within: 5) { app.fields("from", of: "pushed").count == pushed + 1 }, "\(row.answers): \(app.text)")
        let isBare = row.answers.hasPrefix("413")
        #expect(app.fields("from", of: "pushed").last == (isBare ? "" : "push test"), "\(row.answers): without the caller")
      }
      #expect(try gateway.sum("trunkline_push_circuit_open") == 0)
      if isAPNs { try await expectReordered(gateway, app) }
      try await expectLosses(gateway, name, app, registered)
      try await gateway.finish()
      try await service.stop()
    }

    /// The first push is held back until the second: both arrive, and each starts the app once.
    private func expectReordered(_ gateway: GatewayUnderTest, _ app: Spawned) async throws {
      let before = app.fields("call", of: "pushed").count
      #expect(try gateway.testPush().first?["accepted"] as? Bool == true)
      #expect(app.fields("call", of: "pushed").count == before)
      #expect(try gateway.testPush().first?["accepted"] as? Bool == true)
      #expect(await eventually(within: 5) { app.fields("call", of: "pushed").count == before + 2 }, "\(app.text)")
      #expect(Set(app.fields("call", of: "pushed").suffix(2)).count == 2)
    }

    /// A mismatched token waits for the app to register again, an unregistered one is deleted.
    private func expectLosses(
      _ gateway: GatewayUnderTest, _ name: String, _ app: Spawned, _ registered: () async throws -> Spawned
    ) async throws {
      let wrong = try #require(try gateway.testPush().first)
      #expect(wrong["reason"] as? String == (name == "apns" ? "BadDeviceToken" : "SENDER_ID_MISMATCH"), "\(wrong)")
      #expect((wrong["advice"] as? String ?? "").contains(name == "apns" ? "env: sandbox" : "Firebase project"), "\(wrong)")
      #expect(try gateway.sum("trunkline_push_token_mismatches_total", "service=\"\(name)\",environment=\"production\"") == 1)
      #expect(await gateway.logs("a push token is of another environment or app"))
      let status = { try HTTP.request("POST", "/v1/push/test?user=alice", port: gateway.admin).status }
      #expect(await eventually(within: 5) { try status() == 409 }, "until it registers again")
      let again = try await registered()
      #expect(try gateway.testPush().first?["reason"] as? String == (name == "apns" ? "Unregistered" : "UNREGISTERED"))
      #expect(await eventually(within: 5) { try status() == 404 }, "deleted")
      for app in [app, again] {
        app.signal(SIGTERM)
        _ = try? await app.finish(within: 10)
      }
    }

    @Test func `a push service that fails is left alone after five failures in a row, with an alarm, and asked again later`()
      async throws
    {
      let service = try await PushServiceUnderTest(.standIn, answers: "503,drop,goaway,500,503,real")
      let gateway = try await service.gateway()
      let app = try await service.killedApp(gateway, [])
      for attempts in [2, 2, 1] {
        let result = try #require(try gateway.testPush().first)
        #expect(result["accepted"] as? Bool == false && result["attempts"] as? Int == attempts, "\(result)")
      }
      #expect(await eventually(within: 5) { try gateway.metric("trunkline_push_circuit_open{service=\"apns\"}") == 1 })
      #expect(await gateway.logs("a push service does not answer"))
      let resting = try #require(try gateway.testPush().first)
      #expect(resting["reason"] as? String == "circuitOpen" && resting["attempts"] as? Int == 0, "\(resting)")
      #expect(service.attempts.count == 5, "nothing was sent meanwhile: \(service.text)")
      #expect(await eventually(within: 5) { try gateway.testPush().first?["accepted"] as? Bool == true })
      #expect(await eventually(within: 5) { try gateway.metric("trunkline_push_circuit_open{service=\"apns\"}") == 0 })
      #expect(await gateway.logs("a push service answers again"))
      app.signal(SIGTERM)
      _ = try? await app.finish(within: 10)
      try await gateway.finish()
      try await service.stop()
    }
  }
}
