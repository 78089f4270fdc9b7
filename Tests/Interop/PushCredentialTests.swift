import Foundation
import Testing

extension Interop {
  /// Who the gateway says it is to a push service: certificates, and browsers' subscriptions.
  @Suite(
    .enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"),
    .serialized)
  struct PushCredentialTests {
    @Test(arguments: PushServiceUnderTest.Kind.allCases)
    func `SRV-8: with a certificate in place of a key: a push without token on a connection that shows it`(
      kind: PushServiceUnderTest.Kind
    ) async throws {
      let service = try await PushServiceUnderTest(kind, clients: true)
      let gateway = try await service.gateway(over: .certificate("good"))
      let app = try await service.killedApp(gateway, [])
      let result = try #require(try gateway.testPush().first)
      #expect(result["accepted"] as? Bool == true, "\(result)")
      if kind == .h2 {
        let request = try #require(service.requests.first)
        #expect(request["client"] as? String == "VoIP Services: good")
        #expect((request["headers"] as? [String: String])?["authorization"] == nil)
      }
      #expect(try gateway.sum("trunkline_push_certificate_expires_seconds") > Date().timeIntervalSince1970 + 80 * 86_400)
      app.signal(SIGTERM)
      _ = try? await app.finish(within: 10)
      try await gateway.finish()
      try await service.stop()
    }

    @Test(arguments: PushServiceUnderTest.Kind.allCases)
    func
      `SRV-8: a certificate that is expired, of somebody else or without its key: said at the start and at a push, alarm, and SIGHUP mends it`(
        kind: PushServiceUnderTest.Kind
      ) async throws
    {
      let service = try await PushServiceUnderTest(kind, clients: true)
      let gateway = try await service.gateway(over: .certificate("expired"))
      #expect(await gateway.logs("push.apns.certificate has expired"), "\(gateway.process.text)")
      #expect(try gateway.sum("trunkline_push_certificate_expires_seconds") < Date().timeIntervalSince1970)
      let app = try await service.killedApp(gateway, [])
      for name in ["expired", "stranger", "mixed"] {
        if name != "expired" { try await gateway.use(try await service.section(.certificate(name))) }
        let result = try #require(try gateway.testPush().first)
        #expect(
          result["accepted"] as? Bool == false && (1...2).contains(result["attempts"] as? Int ?? 0), "\(name): \(result)")
        let advice = result["advice"] as? String ?? ""
        #expect(advice.contains("push.apns.certificate") && advice.contains("SIGHUP"), "\(name): \(result)")
      }
      #expect(await gateway.logs("the key is not the certificate's"))
      #expect(await gateway.logs("push refused"), "a fault is in the log")
      // Five failures in a row open the breaker.
      for _ in 0..<2 { _ = try gateway.testPush() }
      #expect(await eventually(within: 5) { try gateway.metric("trunkline_push_circuit_open{service=\"apns\"}") == 1 })
      #expect(try gateway.testPush().first?["reason"] as? String == "circuitOpen")
      try await gateway.use(try await service.section(.certificate("good")))
      #expect(await eventually(within: 8) { try gateway.testPush().first?["accepted"] as? Bool == true }, "\(service.text)")
      #expect(await eventually(within: 5) { try gateway.metric("trunkline_push_circuit_open{service=\"apns\"}") == 0 })
      app.signal(SIGTERM)
      _ = try? await app.finish(within: 10)
      try await gateway.finish()
      try await service.stop()
    }

    @Test(
      .tags(.audio),
      .enabled(if: Surroundings.isRequired || Surroundings.chromium != nil, "no chromium: run Scripts/install test"))
    func
      `INC-8, INC-9: sequence 2 with Chromium: a Web Push that only its subscription can open wakes the page, both hear each other`()
      async throws
    {
      try await expectGoodAudio { try await wokenBrowser() }
    }

    private func wokenBrowser() async throws -> [String] {
      let service = try await PushServiceUnderTest(.h2)
      let gateway = try await service.gateway(over: .webPush, media: "[ auto ]")
      let subscription = try String(contentsOfFile: service.folder + "/subscription.json", encoding: .utf8)
      let page = try await service.killedApp(gateway, device: "web", token: subscription, ["--push-kind", "webpush"])
      page.signal(SIGTERM)
      _ = try? await page.finish(within: 10)
      let spoken = [Int16](repeating: 0, count: 12_000) + Speech.app
      try Speech.write(spoken, gateway.folder + "/app.wav")
      let talk = Double(max(spoken.count, Speech.telephone.count)) / 8_000 + 1
      let trunk = try await Peers.trunk(
        gateway, ["--call", "+15551230001", "--talk", "\(talk)", "--record", "trunk-heard.wav"])
      let push = try await service.nextPush()
      let request = try #require(service.requests.first)
      let headers = try #require(request["headers"] as? [String: String])
      let claims = try #require(request["claims"] as? [String: Any])
      #expect(headers["content-encoding"] == "aes128gcm" && headers["urgency"] == "high", "\(headers)")
      #expect(Int(headers["ttl"] ?? "").map { (1...30).contains($0) } == true && headers["topic"]?.count == 32, "\(headers)")
      #expect(claims["sub"] as? String == "mailto:ops@example.com", "\(claims)")
      let left = (claims["exp"] as? Double ?? 0) - Date().timeIntervalSince1970
      #expect(left > 0 && left <= 86_400, "RFC 8292: a day at most")
      let from = try #require(push["from"] as? [String: Any])
      #expect(push["v"] as? Int == 1 && push["t"] as? String == "call" && from["h"] as? String == "+15557770001", "\(push)")
      let wake = try #require(push["wake"] as? String)
      let browser = try await Peers.browser(
        gateway, wake: wake, ["--answer", "--play", "app.wav", "--record", "app-heard.wav"])
      #expect(try await trunk.finish(within: 40) == 0, "\(trunk.text)\n\(browser.text)")
      #expect(try await browser.finish(within: 20) == 0, "\(browser.text)")
      let faults =
        try Speech.faults("telephone → browser", said: Speech.telephone, heardIn: gateway.folder + "/app-heard.wav")
        + Speech.faults("browser → telephone", said: spoken, heardIn: gateway.folder + "/trunk-heard.wav", clippedAtMost: 300)
      let record = try #require(try await gateway.records(1).first)
      #expect((record["end"] as? [String: Any])?["reason"] as? String == "remoteHangup" && record["device"] as? String == "web")
      let times = try #require(record["times"] as? [String: Int])
      expect(times, ["start", "pushed", "pushAccepted", "woken", "deviceRinging", "answered", "gateOpen", "connected"])
      #expect(try gateway.sum("trunkline_pushes_total", "service=\"webpush\",outcome=\"accepted\"") == 1)
      gateway.note(invites: [record["sipCallId"] as? String ?? ""])
      try await gateway.finish()
      try await service.stop()
      return faults
    }
  }
}

extension GatewayUnderTest {
  /// `POST /v1/push/test`: a result for each device.
  func testPush(_ user: String = "alice") throws -> [[String: Any]] {
    let answer = try HTTP.request("POST", "/v1/push/test?user=\(user)", port: admin)
    guard answer.status == 200 else { throw Spawned.Failure(description: "\(answer.status) \(answer.body)") }
    let body = try JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [String: Any]
    return body?["results"] as? [[String: Any]] ?? []
  }

  /// The log is written by a thread of its own, a moment later.
  func logs(_ text: String) async -> Bool { await eventually(within: 5) { self.process.text.contains(text) } }

  /// Another line in place of the one with the same key, taken by SIGHUP.
  func use(_ line: String) async throws {
    let path = folder + "/gateway.yaml"
    let key = line.prefix { $0 != ":" } + ":"
    let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").filter { !$0.hasPrefix(key) }
    try (lines.joined(separator: "\n") + "\n" + line + "\n").write(toFile: path, atomically: true, encoding: .utf8)
    let before = process.text.components(separatedBy: "configuration read again").count
    process.signal(SIGHUP)
    guard await eventually(within: 5, { self.process.text.components(separatedBy: "configuration read again").count > before })
    else {
      throw Spawned.Failure(description: "not read again: \(process.text.suffix(6_000))")
    }
  }
}
