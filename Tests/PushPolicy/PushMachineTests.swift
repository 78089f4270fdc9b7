import HTTP
import JSONWebToken
import Testing
import TrunklineBytes

@testable import PushPolicy

@Suite struct PushMachineTests {
  @Test func `a push that is taken ends with one report`() throws {
    var rig = try Rig()
    rig.wake()
    rig.now = Instant.zero + .milliseconds(80)
    rig.answer(200)
    rig.answer(200)
    #expect(rig.reports.map(\.outcome) == [.accepted] && rig.reports.first?.elapsed == .milliseconds(80))
    #expect(rig.machine.pending == 0 && rig.machine.nextDeadline == nil)
  }

  @Test func `SRV-3: the same call and device is not pushed twice while one is under way`() throws {
    var rig = try Rig()
    rig.wake()
    rig.wake()
    #expect(rig.sent.count == 1)
  }

  @Test func `a broken connection is tried once more with the same apns-id, on another connection`() throws {
    var rig = try Rig()
    rig.wake()
    rig.feed(.broke(rig.sent[0].attempt, reason: "GOAWAY"))
    #expect(rig.sent.count == 2 && rig.retired.count == 1)
    #expect(rig.sent[0].request.header("apns-id") == rig.sent[1].request.header("apns-id"))
    rig.feed(.broke(rig.sent[1].attempt, reason: "GOAWAY"))
    #expect(rig.sent.count == 2 && rig.reports.map(\.reason) == ["broke: GOAWAY"] && rig.reports[0].attempts == 2)
  }

  @Test func `a forgotten connection with twenty pushes on it is no reason to leave the service alone`() throws {
    var rig = try Rig()
    for device in 0..<20 { rig.wake("d\(device)") }
    for attempt in rig.sent.map(\.attempt) { rig.feed(.broke(attempt, reason: "Failure when receiving data", isOfOld: true)) }
    #expect(rig.sent.count == 40 && rig.reports.isEmpty && rig.machine.openCircuits.isEmpty)
    for attempt in rig.sent.dropFirst(20).map(\.attempt) { rig.feed(.answered(attempt, HTTPClientResponse(status: 200))) }
    #expect(rig.reports.map(\.outcome) == [PushReport.Outcome](repeating: .accepted, count: 20))
    // a service that does not take new connections is left alone as before
    for device in 0..<5 { rig.wake("e\(device)", call: 2) }
    for attempt in rig.sent.suffix(5).map(\.attempt) { rig.feed(.broke(attempt, reason: "Couldn't connect to server")) }
    #expect(rig.machine.openCircuits == [.apns])
  }

  @Test func `the one try of a service that is left alone breaks on an old connection: it is tried again at once`() throws {
    var rig = try Rig()
    for device in 0..<5 { rig.wake("d\(device)") }
    for attempt in rig.sent.map(\.attempt) { rig.feed(.broke(attempt, reason: "Couldn't connect to server")) }
    rig.now = rig.now + .seconds(2)
    let before = rig.sent.count
    rig.wake("later", call: 2)
    rig.feed(.broke(try #require(rig.sent.last).attempt, reason: "Failure when receiving data", isOfOld: true))
    #expect(rig.sent.count == before + 2)
    rig.answer(200)
    #expect(rig.machine.openCircuits.isEmpty)
  }

  @Test func `no retry starts in the last two seconds of the ring window`() throws {
    var rig = try Rig()
    rig.wake()
    rig.now = Instant.zero + .seconds(44)
    rig.answer(503)
    #expect(rig.sent.count == 1 && rig.reports.map(\.reason) == ["status 503"])
  }

  @Test func `a call that is over is not pushed again, and an answer that comes late still counts`() throws {
    var rig = try Rig()
    rig.wake("d1")
    rig.feed(.callOver(Rig.push(1).call))
    #expect(rig.reports.isEmpty)
    rig.answer(503)
    #expect(rig.sent.count == 1 && rig.reports.map(\.reason) == ["callOver"])
  }

  @Test func `the token is signed once for all pushes and again after 50 minutes`() throws {
    var rig = try Rig()
    rig.wake("d1")
    rig.now = Instant.zero + .seconds(49 * 60)
    rig.wake("d2")
    rig.now = Instant.zero + .seconds(50 * 60)
    rig.wake("d3")
    let tokens = rig.sent.map { $0.request.header("authorization") }
    #expect(tokens[0] == tokens[1] && tokens[1] != tokens[2])
  }

  @Test func `an expired token is signed anew for one retry; a fresh one that is called expired is a fault`() throws {
    var rig = try Rig()
    rig.wake("d1")
    rig.answer(403, #"{"reason":"ExpiredProviderToken"}"#)
    #expect(rig.sent.count == 1 && rig.reports.first?.isFault == true)
    rig.now = Instant.zero + .seconds(21 * 60)
    rig.wake("d2")
    rig.answer(403, #"{"reason":"ExpiredProviderToken"}"#)
    #expect(rig.sent.count == 3)
    #expect(rig.sent[1].request.header("authorization") != rig.sent[2].request.header("authorization"))
  }

  @Test func `TooManyProviderTokenUpdates freezes the token for 20 minutes`() throws {
    var rig = try Rig()
    rig.wake("d1")
    rig.now = Instant.zero + .seconds(49 * 60)
    rig.wake("d2")
    rig.answer(429, #"{"reason":"TooManyProviderTokenUpdates"}"#)
    rig.now = Instant.zero + .seconds(55 * 60)
    rig.wake("d3")
    #expect(rig.sent[0].request.header("authorization") == rig.sent[2].request.header("authorization"))
    rig.now = Instant.zero + .seconds(70 * 60)
    rig.wake("d4")
    #expect(rig.sent[3].request.header("authorization") != rig.sent[2].request.header("authorization"))
  }

  @Test(arguments: PushService.allCases)
  func `a push for a service that is not configured fails at once, and the advice names what to configure`(service: PushService)
    throws
  {
    var rig = try Rig(apns: service != .apns, fcm: service != .fcm, webPush: service != .webPush)
    rig.wake("d1", PushTarget(service, token: Rig.token, topic: "org.example.app.voip"))
    let report = try #require(rig.reports.first)
    #expect(rig.sent.isEmpty && rig.machine.pending == 0)
    #expect(report.outcome == .failed && report.reason == "noProvider" && report.isFault && report.attempts == 0)
    #expect(PushAdvice.text(report)?.contains("push.\(service.rawValue)") == true)
  }

  @Test func `a service whose keys are taken away fails what comes after, and ends what is under way`() throws {
    var rig = try Rig()
    rig.wake("d1")
    rig.wake("d2")
    rig.feed(.providers(PushProviders()))
    rig.wake("d3")
    rig.feed(.answered(rig.sent[0].attempt, HTTPClientResponse(status: 200)))
    rig.feed(.answered(rig.sent[1].attempt, HTTPClientResponse(status: 503)))
    #expect(rig.reports.map(\.reason) == ["noProvider", "accepted", "noProvider"])
    #expect(rig.retired.contains(rig.sent[0].request.connection))
  }

  @Test func `SRV-5: a new key starts on new connections while pushes under way end on the old`() throws {
    var rig = try Rig()
    rig.wake("d1")
    rig.feed(.providers(PushProviders([try Rig.apns(keyID: "KEY2")])))
    rig.wake("d2")
    #expect(rig.sent[0].request.connection != rig.sent[1].request.connection)
    #expect(rig.retired.contains(rig.sent[0].request.connection))
    rig.feed(.answered(rig.sent[0].attempt, HTTPClientResponse(status: 200)))
    rig.feed(.answered(rig.sent[1].attempt, HTTPClientResponse(status: 200)))
    #expect(rig.reports.map(\.outcome) == [.accepted, .accepted])
  }

  @Test func `a payload that is too large goes again without the caller`() throws {
    var rig = try Rig()
    rig.wake()
    rig.answer(413, #"{"reason":"PayloadTooLarge"}"#)
    #expect(rig.sent.count == 2)
    #expect(!String(decoding: rig.sent[1].request.body, as: UTF8.self).contains("Jane"))
    rig.answer(413, #"{"reason":"PayloadTooLarge"}"#)
    #expect(rig.reports.count == 1)
  }

  @Test func `after five failures in a row a service is left alone, probed, and used again`() throws {
    var rig = try Rig()
    for n in 0..<3 {
      rig.wake("d\(n)")
      rig.answer(503)
      rig.answer(503)
    }
    #expect(rig.machine.openCircuits == [.apns])
    rig.wake("d8")
    #expect(rig.reports.last?.reason == "circuitOpen")
    rig.now = Instant.zero + .seconds(2)
    rig.wake("d9")
    rig.wake("d10")
    #expect(rig.reports.last?.reason == "circuitOpen" && rig.reports.last?.key.device == "d10")
    rig.answer(200)
    #expect(rig.machine.openCircuits.isEmpty)
  }

  @Test func `FCM asks once for an access token, and the pushes wait for it`() throws {
    var rig = try Rig(apns: false, fcm: true)
    rig.wake("a1", PushTarget(.fcm, token: "t1"))
    rig.wake("a2", PushTarget(.fcm, token: "t2"))
    #expect(rig.sent.count == 1 && rig.sent[0].request.host == "oauth2.googleapis.com")
    rig.answer(200, #"{"access_token":"ya29.x","expires_in":3600}"#)
    #expect(rig.sent.count == 3 && rig.sent.dropFirst().allSatisfy { $0.request.header("authorization") == "Bearer ya29.x" })
    let body = String(decoding: rig.sent[1].request.body, as: UTF8.self)
    #expect(body.contains(#""priority":"HIGH""#) && body.contains(#""ttl":"0s""#) && !body.contains("notification"))
  }

  @Test func `pushes whose access token never comes end at the ring deadline`() throws {
    var rig = try Rig(apns: false, fcm: true)
    rig.wake("a1", PushTarget(.fcm, token: "t1"))
    rig.now = Instant.zero + .seconds(45)
    rig.feed(.timer)
    #expect(rig.reports.map(\.reason) == ["tooLate"] && rig.machine.pending == 0)
  }

  @Test func `a clock that steps back signs a token of the present`() throws {
    var rig = try Rig()
    rig.wake("d1")
    rig.machine.unixSecondsAtZero -= 3_600
    rig.wake("d2")
    #expect(rig.sent[0].request.header("authorization") != rig.sent[1].request.header("authorization"))
  }

  @Test func `SRV-3: whatever services answer, each push ends in one report with at most one acceptance and two attempts`() throws
  {
    let random = RandomSource.seeded(4711)
    for round in 0..<300 {
      var rig = try Rig(apns: true, fcm: true)
      for device in 0..<4 { rig.wake("d\(device)", device % 2 == 0 ? nil : PushTarget(.fcm, token: "t\(device)")) }
      var open = 0
      while open < rig.sent.count {
        let attempt = rig.sent[open].attempt
        rig.now = rig.now + .milliseconds(Int64(random.next() % 9_000))
        switch random.next() % 6 {
        case 0: rig.feed(.answered(attempt, HTTPClientResponse(status: 200, body: Array(#"{"access_token":"x"}"#.utf8))))
        case 1: rig.feed(.broke(attempt, reason: "reset"))
        case 2: rig.feed(.callOver(Rig.push(1).call))
        case 3: rig.feed(.timer)
        default:
          let status = [400, 401, 403, 404, 410, 413, 429, 500, 503][Int(random.next() % 9)]
          rig.feed(.answered(attempt, HTTPClientResponse(status: status, retryAfter: Int(random.next() % 4))))
        }
        open += 1
      }
      rig.now = rig.now + .seconds(60)
      rig.feed(.timer)
      #expect(rig.machine.pending == 0, "round \(round)")
      #expect(Set(rig.reports.map(\.key)).count == 4 && rig.reports.count == 4, "round \(round)")
      #expect(rig.reports.allSatisfy { $0.attempts <= 2 }, "round \(round)")
    }
  }
}

/// Twenty thousand pushes at once.
@Suite struct ManyPushesTests {
  @Test func `of thousands of pushes each is tried again and ends in its own time`() throws {
    var rig = try Rig()
    for number in 0..<3_000 as Range<UInt64> { rig.wake(call: number, window: .milliseconds(3_000 + Int64(number))) }
    #expect(rig.machine.pending == 3_000 && rig.machine.nextDeadline == .zero + .milliseconds(3_000))
    for number in stride(from: 0, to: 3_000, by: 3) { rig.feed(.callOver(Rig.key("d1", UInt64(number)).call)) }
    for (index, sent) in rig.sent.enumerated() where index % 3 == 1 {
      rig.feed(.answered(sent.attempt, HTTPClientResponse(status: 200)))
    }
    #expect(rig.reports.count == 1_000 && rig.machine.pending == 2_000)
    rig.now = .zero + .milliseconds(4_500)
    rig.feed(.timer)
    #expect(rig.machine.nextDeadline == .zero + .milliseconds(4_502))
    rig.now = .zero + .seconds(10)
    rig.feed(.timer)
    #expect(rig.machine.pending == 0 && rig.machine.nextDeadline == nil && rig.reports.count == 3_000)
    #expect(rig.machine.ofCall.isEmpty)
  }

  @Test func `the advice for every word of APNs names what to change`() throws {
    let target = PushTarget(.apns, token: "ab", environment: .sandbox, topic: "org.example.voip")
    let key = Rig.key("d1", 1)
    for reason in [
      "BadDeviceToken", "DeviceTokenNotForTopic", "TopicDisallowed", "InvalidProviderToken", "ExpiredProviderToken", "noProvider",
      "broke: x", "Unregistered", "TooManyProviderTokenUpdates", "BadCertificate", "PayloadTooLarge", "tooLate", "circuitOpen",
    ] {
      #expect(PushAdvice.text(PushReport(key: key, target: target, outcome: .failed, reason: reason)) != nil, "\(reason)")
    }
    #expect(
      PushAdvice.text(PushReport(key: key, target: target, outcome: .tokenMismatch, reason: "BadDeviceToken"))?.contains(
        "env: production") == true)
    #expect(PushAdvice.text(PushReport(key: key, target: target, outcome: .accepted)) == nil)
    #expect(PushAdvice.text(PushReport(key: key, target: target, outcome: .failed, reason: "odd", status: 503)) != nil)
  }
}
