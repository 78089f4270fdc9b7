import Foundation
import Testing

extension Interop {
  /// Users that are not listed: a foreign backend signs their identity. sipp calls, aiortc answers.
  @Suite(.enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct TokenGrantTests {
    private static let number = "+15557000001"

    private func gateway() async throws -> GatewayUnderTest {
      try await GatewayUnderTest([
        "users: [ { id: any, max_calls: 2, claims: { numbers: [\"+1555\"], max_numbers: 2, diversions: true } } ]"
      ])
    }

    /// Signed a second after the one before.
    private func token(_ gateway: GatewayUnderTest, _ user: String, iat: Int, _ grant: String) async throws -> String {
      let claims = "{\"sub\":\"\(user)\",\"dev\":\"d-\(user)\",\"iat\":\(iat),\"trunkline\":\(grant)}"
      return try await Peers.signed(gateway, claims)
    }

    private func phone(_ gateway: GatewayUnderTest, _ user: String, _ token: String, _ more: [String]) async throws -> Spawned {
      try await Peers.phone(gateway, user: user, device: "d-\(user)", token: token, more)
    }

    @Test func `a number rings the user that the backend names, moves to another user by the next token, and outlives kill -9`()
      async throws
    {
      let gateway = try await gateway()
      let users = """
        {"carol": {"password": "c", "grant": {"numbers": ["\(Self.number)"]}}, "dora": {"password": "d", "grant": {}}}
        """
      try users.write(toFile: gateway.folder + "/users.json", atomically: true, encoding: .utf8)
      let port = try FreePorts.tcp()
      let backend = try Spawned(
        "backend", "/usr/bin/python3",
        [
          "-B", Surroundings.package + "/Examples/backend/backend.py", "--key", "jwt.key", "--users", "users.json", "--port",
          "\(port)",
        ],
        in: gateway.folder)
      _ = try await backend.event("listening")
      func login(_ user: String, _ password: String) throws -> String {
        let answer = try HTTP.request(
          "POST", "/login", host: "127.0.0.1", port: port,
          body: "{\"user\":\"\(user)\",\"password\":\"\(password)\",\"device\":\"d-\(user)\"}")
        let json = try JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [String: Any]
        return try #require(json?["token"] as? String, "\(answer)")
      }

      let carolToken = try login("carol", "c")
      let carol = try await phone(gateway, "carol", carolToken, ["--answer-after", "0.1", "--calls", "1"])
      let first = try Peers.caller(gateway, "call", to: Self.number, ["-d", "500"])
      #expect(try await first.finish(within: 20) == 0, "\(first.text.suffix(6_000))")
      #expect(try await carol.finish(within: 10) == 0, "\(carol.text)")

      gateway.process.signal(SIGKILL)
      try await gateway.process.finish(within: 5)
      try await gateway.restart()
      // her number is known, and no device of hers is there: no 404
      let refused = try Peers.caller(gateway, "refused_480", to: Self.number)
      #expect(try await refused.finish(within: 20) == 0, "\(refused.text.suffix(6_000))")

      let moved = try HTTP.request(
        "PUT", "/users/dora", host: "127.0.0.1", port: port, body: "{\"numbers\":[\"\(Self.number)\"]}")
      #expect(moved.status == 200, "\(moved)")
      let dora = try await phone(gateway, "dora", try login("dora", "d"), ["--answer-after", "0.1", "--calls", "1"])
      // carol comes back with the token that she has, without the number
      let again = try await phone(gateway, "carol", carolToken, ["--answer-after", "0.1"])
      let second = try Peers.caller(gateway, "call", to: Self.number, ["-d", "500"])
      #expect(try await second.finish(within: 20) == 0, "\(second.text.suffix(6_000))")
      #expect(try await dora.finish(within: 10) == 0, "\(dora.text)")
      #expect(!again.events.contains { $0["event"] as? String == "call.offer" }, "\(again.text)")
      let rung = try await gateway.records(3).compactMap { $0["user"] as? String }
      #expect(rung == ["carol", "carol", "dora"])
      for peer in [again, backend] {
        peer.signal(SIGTERM)
        _ = await eventually(within: 5) { !peer.isRunning }
      }
      gateway.process.signal(SIGTERM)
      #expect(try await gateway.process.finish(within: 10) == 0)
    }

    @Test
    func `a directory that is asked says whose a number is; it moves between two calls; without it what was known holds on`()
      async throws
    {
      let port = try FreePorts.tcp()
      let gateway = try await GatewayUnderTest([
        "users: [ { id: any, webhook: { url: \"http://127.0.0.1:\(port)/directory\", key_file: jwt.key, cache: 1 } } ]"
      ])
      let users = """
        {"carol": {"password": "c", "grant": {"numbers": ["\(Self.number)"], "name": "Carol"}}, "dora": {"password": "d", "grant": {}}}
        """
      try users.write(toFile: gateway.folder + "/users.json", atomically: true, encoding: .utf8)
      let backend = try Spawned(
        "backend", "/usr/bin/python3",
        [
          "-B", Surroundings.package + "/Examples/backend/backend.py", "--key", "jwt.key", "--directory-key", "jwt.key",
          "--users",
          "users.json", "--port", "\(port)",
        ],
        in: gateway.folder)
      _ = try await backend.event("listening")
      let carol = try await phone(gateway, "carol", try await gateway.token("carol", "d-carol"), ["--answer-after", "0.1"])
      let dora = try await phone(gateway, "dora", try await gateway.token("dora", "d-dora"), ["--answer-after", "0.1"])
      let first = try Peers.caller(gateway, "call", to: Self.number, ["-d", "500"])
      #expect(try await first.finish(within: 20) == 0, "\(first.text.suffix(6_000))")
      // by the user's id, and from her number
      dora.type("call carol")
      _ = try await dora.event("started")
      _ = try await dora.event("call.connected")
      dora.type("end")
      _ = try await gateway.records(3)

      let moved = try HTTP.request(
        "PUT", "/users/dora", host: "127.0.0.1", port: port, body: "{\"numbers\":[\"\(Self.number)\"]}")
      #expect(moved.status == 200, "\(moved)")
      // the answer from before holds for a second
      var (rung, count) = ("", 3)
      while rung != "dora", count < 12 {
        let next = try Peers.caller(gateway, "call", to: Self.number, ["-d", "400"])
        #expect(try await next.finish(within: 20) == 0, "\(next.text.suffix(6_000))")
        count += 1
        rung = try await gateway.records(count).last?["user"] as? String ?? ""
      }
      #expect(rung == "dora")

      backend.signal(SIGTERM)
      _ = await eventually(within: 5) { !backend.isRunning }
      let unanswered = try Peers.caller(gateway, "call", to: Self.number, ["-d", "500"])
      #expect(try await unanswered.finish(within: 20) == 0, "\(unanswered.text.suffix(6_000))")
      for peer in [carol, dora] {
        peer.type("quit")
        _ = await eventually(within: 5) { !peer.isRunning }
      }
      try await gateway.finish()
    }

    @Test func `the user calls from the token's number`() async throws {
      let gateway = try await gateway()
      let carol = try await token(gateway, "carol", iat: 1_700_000_000, "{\"numbers\":[\"\(Self.number)\"],\"name\":\"Carol\"}")
      var script = SippScript.callee(containing: ["From: \"Carol\" <sip:\\\(Self.number)@"])
      script.answers(200, sdp: SippScript.sdp())
      script.awaits("ACK")
      script.awaits("BYE")
      script.replies()
      let carrier = try await Peers.callee(gateway, script.file(gateway, "callee"))
      let phone = try await phone(gateway, "carol", carol, ["--call", "+15557654321", "--end-after", "0.3", "--calls", "1"])
      #expect(try await phone.finish(within: 25) == 0, "\(phone.text)")
      #expect(try await carrier.finish(within: 10) == 0, "\(carrier.text.suffix(6_000))")
      try await gateway.finish()
    }

    @Test(arguments: [
      ("{\"numbers\":[\"+15557000001\",\"+4915550001\"]}", "trunkline.numbers[1]: +4915550001 is not one that"),
      ("{\"numbers\":[\"+15551\",\"+15552\",\"+15553\"]}", "trunkline.numbers: has more than 2"),
      ("{\"number\":\"+15551\"}", "trunkline.number: is not known here"),
      ("{\"max_calls\":3}", "trunkline.max_calls: is more than the 2 of any"),
    ]) func `more than the configuration allows is refused with its path`(grant: String, why: String) async throws {
      let gateway = try await gateway()
      let token = try await token(gateway, "carol", iat: 1_700_000_000, grant)
      let phone = try Peers.python(
        "phone", "app_phone.py",
        [
          "--url", "ws://127.0.0.1:\(gateway.app)/v1/connect", "--token", token, "--device", "d-carol", "--host", "127.0.0.1",
          "--trace", "--seconds", "10",
        ], gateway)
      _ = await eventually(within: 10) { phone.text.contains(why) }
      #expect(phone.text.contains(why), "\(phone.text)")
      phone.signal(SIGTERM)
      _ = await eventually(within: 5) { !phone.isRunning }
      try await gateway.finish()
    }
  }
}
