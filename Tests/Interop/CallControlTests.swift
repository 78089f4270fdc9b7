import Foundation
import SpeechScore
import Testing

extension Interop {
  /// Calls that programs make and act on by `/v1/calls`: the examples ask, sipp is the carrier, aiortc the app.
  @Suite(
    .enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"),
    .serialized)
  struct CallControlTests {
    /// The secret in `jwt.key` of a `GatewayUnderTest`.
    private static let token = "0123456789abcdef0123456789abcdef"
    private static let number = "+15557654321"

    private func gateway(_ scopes: String = "read, calls", trunk: String = "", folder: String? = nil) async throws
      -> GatewayUnderTest
    {
      try await GatewayUnderTest(
        [
          "admin: { tokens: [ { name: program, token_file: jwt.key, scopes: [ \(scopes) ], per_second: 200 } ]\(folder.map { ", play_folder: " + $0 } ?? "") }"
        ], trunk: trunk,
        bearer: Self.token)
    }

    /// Examples/curl.
    private func curl(_ gateway: GatewayUnderTest, _ words: String..., refused: Bool = false) async throws -> [String: Any] {
      let asked = try Spawned(
        "curl", "/bin/sh", [Surroundings.package + "/Examples/curl/calls.sh"] + words, in: gateway.folder,
        environment: ["ADMIN": "http://127.0.0.1:\(gateway.admin)", "TOKEN_FILE": "jwt.key"])
      #expect(try await asked.finish(within: 15) == (refused ? 22 : 0), "\(words): \(asked.text)")
      // what curl itself says of a refusal stands below
      let json = asked.text.split(separator: "\n").first { $0.hasPrefix("{") } ?? ""
      return (try? JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]) ?? [:]
    }

    /// Examples/backend, with alice as a user.
    private func backend(_ gateway: GatewayUnderTest) async throws -> (peer: Spawned, port: UInt16) {
      try "{\"alice\": {\"password\": \"a\", \"grant\": {}}, \"bob\": {\"password\": \"b\", \"grant\": {}}}".write(
        toFile: gateway.folder + "/users.json", atomically: true, encoding: .utf8)
      let port = try FreePorts.tcp()
      let peer = try Spawned(
        "backend", "/usr/bin/python3",
        [
          "-B", Surroundings.package + "/Examples/backend/backend.py", "--key", "jwt.key", "--users", "users.json", "--port",
          "\(port)", "--api", "http://127.0.0.1:\(gateway.admin)", "--api-token", "jwt.key",
        ], in: gateway.folder)
      _ = try await peer.event("listening")
      return (peer, port)
    }

    private func post(_ path: String, port: UInt16, _ body: String) throws -> (status: Int, json: [String: Any]) {
      let answer = try HTTP.request("POST", path, port: port, body: body)
      return (answer.status, try JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [String: Any] ?? [:])
    }

    private func code(_ answer: [String: Any]) -> String? { answer["code"] as? String }

    private func stop(_ peer: Spawned) async {
      peer.signal(SIGTERM)
      _ = await eventually(within: 5) { !peer.isRunning }
    }

    @Test func `a program holds, resumes, sends digits and transfers: the carrier's signalling and the app's words follow`()
      async throws
    {
      let gateway = try await gateway(trunk: "hold: signal, dtmf: info, transfers: true")
      let backend = try await backend(gateway)
      var script = SippScript.caller()
      script.isAnswered()
      for (version, sent, answered) in [(2, "sendonly", "recvonly"), (3, "sendrecv", "sendrecv")] {
        script.awaits("INVITE", containing: ["a=\(sent)"])
        script.replies(200, sdp: SippScript.sdp(version: version, ["a=ptime:20", "a=\(answered)"]))
        script.awaits("ACK")
      }
      for digit in ["7", "#"] {
        script.awaits("INFO", containing: ["Signal= ?\(digit)"])
        script.replies(200)
      }
      script.awaits("REFER", containing: ["Refer-To: <?sip:(%2B|\\+)15558880000@"])
      script.replies(202)
      script.asks(
        "NOTIFY", ["Event: refer", "Subscription-State: terminated;reason=noresource"], sdp: "SIP/2.0 200 OK\n",
        type: "message/sipfrag;version=2.0")
      script.response()
      script.awaits("BYE")
      script.replies()
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      let carrier = try Peers.caller(gateway, script.file(gateway, "controlled"))
      _ = try await phone.event("call.connected")
      let calls = try #require(try await curl(gateway, "list")["calls"] as? [[String: Any]])
      let call = try #require(calls.first?["call"] as? String)

      #expect(try await curl(gateway, "hold", call, "true")["call"] as? String == call)
      _ = try await phone.event("call.held") { $0["by"] as? String == "gateway" && $0["on"] as? Bool == true }
      _ = try await curl(gateway, "hold", call, "false")
      _ = try await phone.event("call.held") { $0["by"] as? String == "gateway" && $0["on"] as? Bool == false }
      _ = try await curl(gateway, "mute", call, "true")
      _ = try await phone.event("call.muted") { $0["on"] as? Bool == true }
      _ = try await curl(gateway, "digits", call, "7#")
      let refusals = [
        ["transfer", call, "112"]: "emergency", ["transfer", call, "x"]: "badRequest", ["hangup", call, "busy"]: "badState",
        ["hold", UUID().uuidString, "true"]: "unknownCall",
      ]
      for (words, expected) in refusals {
        let refused = try await curl(gateway, words[0], words[1], words[2], refused: true)
        #expect(code(refused) == expected, "\(words): \(refused)")
      }
      // another user's call is not bob's to transfer
      let others = try post("/calls/\(call)/transfer", port: backend.port, #"{"user":"bob","password":"b","to":"+15558880000"}"#)
      #expect(others.status == 404)
      let taken = try post("/calls/\(call)/transfer", port: backend.port, #"{"user":"alice","password":"a","to":"+15558880000"}"#)
      #expect(taken.status == 202, "\(taken)")
      #expect(try await carrier.finish(within: 20) == 0, "\(carrier.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      #expect(phone.events.contains { $0["event"] as? String == "call.transferred" && $0["status"] as? String == "done" })
      await stop(backend.peer)
      try await gateway.finish()
    }

    @Test func `click to call: the app rings, answers and hears the carrier ring; both are connected, and a program ends it`()
      async throws
    {
      let gateway = try await gateway()
      let backend = try await backend(gateway)
      var script = SippScript.callee(containing: ["From: .*\\+15551230001@"])
      script.answers(180)
      script.pauses(300)
      script.answers(200, sdp: SippScript.sdp())
      script.awaits("ACK")
      script.awaits("BYE")
      script.replies()
      let carrier = try await Peers.callee(gateway, script.file(gateway, "clicked"))
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      let wrong = try post("/calls", port: backend.port, "{\"user\":\"alice\",\"password\":\"b\",\"to\":\"\(Self.number)\"}")
      #expect(wrong.status == 403)
      let made = try post("/calls", port: backend.port, "{\"user\":\"alice\",\"password\":\"a\",\"to\":\"\(Self.number)\"}")
      let call = try #require(made.json["call"] as? String, "\(made)")
      _ = try await phone.event("call.offer")
      _ = try await phone.event("call.progress") { $0["stage"] as? String == "ringing" }
      _ = try await phone.event("call.connected")
      let order = phone.events.compactMap { $0["event"] as? String }.filter { $0.hasPrefix("call.") }
      #expect(order == ["call.offer", "call.progress", "call.connected"], "\(order)")
      _ = try await curl(gateway, "hangup", call, "localEnd")
      #expect(try await carrier.finish(within: 10) == 0, "\(carrier.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      let record = try #require(try await gateway.records(1).first)
      #expect(record["direction"] as? String == "out" && record["user"] as? String == "alice")
      #expect(record["to"] as? String == Self.number && record["from"] as? String == "+15551230001")
      await stop(backend.peer)
      try await gateway.finish()
    }

    @Test func `click to call: a carrier that is busy is told to who answered, a program's end to the carrier that rings`()
      async throws
    {
      let gateway = try await gateway()
      let busy = try await Peers.callee(gateway, "busy")
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "2"])
      _ = try await curl(gateway, "call", "alice", Self.number)
      _ = try await phone.event("call.ended") { $0["reason"] as? String == "busy" }
      #expect(try await busy.finish(within: 10) == 0, "\(busy.text.suffix(6_000))")
      let ringing = try await Peers.callee(gateway, "ring_until_cancel")
      let call = try #require(try await curl(gateway, "call", "alice", Self.number)["call"] as? String)
      _ = try await phone.event("call.progress") { $0["stage"] as? String == "ringing" }
      _ = try await curl(gateway, "hangup", call)
      #expect(try await ringing.finish(within: 10) == 0, "\(ringing.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      let refused = try await curl(gateway, "call", "bob", Self.number, refused: true)
      #expect(code(refused) == "badState", "\(refused)")
      try await gateway.finish()
    }

    @Test(.tags(.audio)) func `the number first: the carrier hears ringback until the app has answered, then the app`()
      async throws
    {
      let gateway = try await gateway()
      try Speech.write(
        (0..<80_000).map { [0, 5_656, 8_000, 5_656, 0, -5_656, -8_000, -5_656][$0 % 8] }, gateway.folder + "/tone.wav")
      let audio = try await Peers.trunkAudio(gateway, ["--record", "trunk-heard.wav"])
      let carrier = try await Peers.callee(gateway, "answer", audio: audio.port)
      let phone = try await Peers.phone(
        gateway, ["--answer-after", "2", "--play", "tone.wav", "--end-after", "2", "--calls", "1"])
      _ = try await curl(gateway, "call", "alice", Self.number, "number")
      #expect(try await phone.finish(within: 25) == 0, "\(phone.text)")
      #expect(try await carrier.finish(within: 10) == 0, "\(carrier.text.suffix(6_000))")
      #expect(try await audio.peer.finish(within: 10) == 0)
      let order = phone.events.compactMap { $0["event"] as? String }.filter { $0.hasPrefix("call.") }
      #expect(order.prefix(2) == ["call.offer", "call.connected"], "\(order)")
      let heard = try Speech.read(gateway.folder + "/trunk-heard.wav")
      let levels = stride(from: 0, to: heard.count - 800, by: 800).map {
        Speech.level(Array(heard[$0..<$0 + 800]), from: 0, to: 0.1)
      }
      // the tone of ringback, its pause, the app
      let rings = levels.firstIndex { $0 > 1_000 } ?? 0
      #expect(levels.dropFirst(rings + 1).prefix(8).allSatisfy { (2_000...3_400).contains($0) }, "\(levels)")
      #expect(levels.dropFirst(rings + 11).prefix(7).allSatisfy { $0 < 100 }, "\(levels)")
      #expect(levels.count { $0 > 3_700 } >= 15, "the app for 2 s: \(levels)")
      let record = try #require(try await gateway.records(1).first)
      let times = try #require(record["times"] as? [String: Int])
      let (answered, connected) = (try #require(times["numberAnswered"]), try #require(times["connected"]))
      let ended = try #require(times["ended"])
      // both are rounded
      let length = try #require(record["connectedMs"] as? Int)
      #expect(connected - answered > 1_500 && abs(length - (ended - answered)) <= 1, "\(record)")
      #expect(record["direction"] as? String == "out" && record["device"] as? String == "d1", "\(record)")
      try await gateway.finish()
    }

    @Test func `the number first: a user who declines is BYE with its cause to the carrier`() async throws {
      let gateway = try await gateway()
      var script = SippScript.callee(containing: ["From: .*\\+15551230001@"])
      script.answers(180)
      script.answers(200, sdp: SippScript.sdp())
      script.awaits("ACK")
      script.awaits("BYE", containing: ["Reason: Q.850;cause=21"])
      script.replies()
      let carrier = try await Peers.callee(gateway, script.file(gateway, "declined"))
      let phone = try await Peers.phone(gateway, ["--calls", "1"])
      _ = try await curl(gateway, "call", "alice", Self.number, "number")
      _ = try await phone.event("call.offer")
      phone.type("reject")
      #expect(try await carrier.finish(within: 10) == 0, "\(carrier.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      let record = try #require(try await gateway.records(1).first)
      #expect((record["end"] as? [String: Any])?["reason"] as? String == "declined", "\(record)")
      try await gateway.finish()
    }

    @Test func `a program refuses a caller: the carrier gets the reason's response`() async throws {
      let gateway = try await gateway()
      let phone = try await Peers.phone(gateway, ["--calls", "1"])
      let carrier = try Peers.caller(gateway, "refused_404")
      let call = try #require(try await phone.event("call.offer")["call"] as? String)
      _ = try await curl(gateway, "hangup", call, "notFound")
      #expect(try await carrier.finish(within: 10) == 0, "\(carrier.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      #expect(phone.events.contains { $0["event"] as? String == "call.cancel" && $0["reason"] as? String == "notFound" })
      try await gateway.finish()
    }

    @Test(.tags(.audio)) func `a muted app is not heard at the carrier's ear`() async throws {
      let gateway = try await gateway()
      try Speech.write(
        (0..<80_000).map { [0, 5_656, 8_000, 5_656, 0, -5_656, -8_000, -5_656][$0 % 8] }, gateway.folder + "/tone.wav")
      let audio = try await Peers.trunkAudio(gateway, ["--record", "trunk-heard.wav"])
      let carrier = try await Peers.callee(gateway, "answer", audio: audio.port)
      let phone = try await Peers.phone(
        gateway, ["--call", Self.number, "--play", "tone.wav", "--end-after", "4", "--calls", "1"])
      let call = try #require(try await phone.event("call.connected")["call"] as? String)
      _ = try await curl(gateway, "mute", call, "true")
      try await Task.sleep(for: .milliseconds(1_500))
      _ = try await curl(gateway, "mute", call, "false")
      #expect(try await phone.finish(within: 25) == 0, "\(phone.text)")
      #expect(try await carrier.finish(within: 10) == 0, "\(carrier.text.suffix(6_000))")
      #expect(try await audio.peer.finish(within: 10) == 0)
      let heard = try Speech.read(gateway.folder + "/trunk-heard.wav")
      let levels = stride(from: 0, to: heard.count - 800, by: 800).map {
        Speech.level(Array(heard[$0..<$0 + 800]), from: 0, to: 0.1)
      }
      #expect(levels.count { $0 < 300 } >= 8, "muted for 1.5 s: \(levels)")
      #expect(levels.count { $0 > 2_000 } >= 8, "and not any more: \(levels)")
      try await gateway.finish()
    }

    @Test(.tags(.audio)) func `a program plays a file: the carrier hears it in place of the app, and the app before and after`()
      async throws
    {
      let folder = try NameServer.folder()
      defer { try? FileManager.default.removeItem(atPath: folder) }
      try Speech.write([Int16](repeating: 0, count: 12_000), folder + "/pause.wav")
      let gateway = try await gateway(folder: folder)
      try Speech.write(
        (0..<80_000).map { [0, 5_656, 8_000, 5_656, 0, -5_656, -8_000, -5_656][$0 % 8] }, gateway.folder + "/tone.wav")
      let audio = try await Peers.trunkAudio(gateway, ["--record", "trunk-heard.wav"])
      let carrier = try await Peers.callee(gateway, "answer", audio: audio.port)
      let phone = try await Peers.phone(
        gateway, ["--call", Self.number, "--play", "tone.wav", "--end-after", "4", "--calls", "1"])
      let call = try #require(try await phone.event("call.connected")["call"] as? String)
      for name in ["other.wav", "..", "pause"] {
        let refused = try await curl(gateway, "play", call, name, refused: true)
        #expect(code(refused) == "unknownFile", "\(refused)")
      }
      _ = try await curl(gateway, "play", call, "off")
      _ = try await curl(gateway, "play", call, "pause.wav")
      #expect(try await phone.finish(within: 25) == 0, "\(phone.text)")
      #expect(try await carrier.finish(within: 10) == 0, "\(carrier.text.suffix(6_000))")
      #expect(try await audio.peer.finish(within: 10) == 0)
      let heard = try Speech.read(gateway.folder + "/trunk-heard.wav")
      let levels = stride(from: 0, to: heard.count - 800, by: 800).map {
        Speech.level(Array(heard[$0..<$0 + 800]), from: 0, to: 0.1)
      }
      let pause = levels.firstIndex { $0 < 100 } ?? 0
      #expect(levels.dropFirst(pause).prefix(14).allSatisfy { $0 < 100 }, "1.5 s of the file: \(levels)")
      #expect(levels.dropFirst(pause + 17).prefix(5).allSatisfy { $0 > 2_000 }, "the app again: \(levels)")
      try await gateway.finish()
    }

    @Test func `a token may do what its scopes say, is changed by SIGHUP without a gap, and a repeat is done once`() async throws
    {
      let gateway = try await gateway("read")
      let phone = try await Peers.phone(gateway, ["--calls", "1"])
      func ask(_ method: String, _ path: String, _ token: String?, _ body: String = "", key: String? = nil) throws -> (
        Int, String?
      ) {
        let headers = (token.map { ["Authorization: Bearer \($0)"] } ?? []) + (key.map { ["Idempotency-Key: \($0)"] } ?? [])
        let answer = try HTTP.request(method, path, port: gateway.admin, headers: headers, body: body)
        let json = try? JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [String: Any]
        return (answer.status, json.flatMap { code($0) ?? $0["call"] as? String })
      }
      let wanted = "{\"user\":\"alice\",\"to\":\"\(Self.number)\"}"
      #expect(try ask("GET", "/v1/calls", nil) == (401, "unauthorized") && ask("GET", "/v1/calls", Self.token).0 == 200)
      #expect(try ask("POST", "/v1/calls", Self.token, wanted) == (403, "forbidden"))

      let (old, new) = ("an-old-token-of-a-program", "a-new-token-of-a-program")
      func reload(_ tokens: String) async throws {
        try tokens.write(toFile: gateway.folder + "/crm.token", atomically: true, encoding: .utf8)
        let path = gateway.folder + "/gateway.yaml"
        var text = try String(contentsOfFile: path, encoding: .utf8)
        if !text.contains("crm.token") {
          text.replace("admin: { tokens: [ ", with: "admin: { tokens: [ { name: crm, token_file: crm.token, scopes: calls }, ")
          try text.write(toFile: path, atomically: true, encoding: .utf8)
        }
        let before = gateway.process.text.components(separatedBy: "configuration read again").count
        gateway.process.signal(SIGHUP)
        let isRead = await eventually(within: 5) {
          gateway.process.text.components(separatedBy: "configuration read again").count > before
        }
        #expect(isRead, "\(gateway.process.text.suffix(6_000))")
      }
      func knows(_ token: String) throws -> Bool { try ask("GET", "/v1/calls", token) == (403, "forbidden") }
      #expect(try !knows(old))
      try await reload(old + "\n")
      #expect(try knows(old) && !knows(new))
      try await reload(old + "\n" + new + "\n")
      #expect(try knows(old) && knows(new))
      try await reload(new + "\n")
      #expect(try !knows(old) && knows(new))

      let (status, call) = try ask("POST", "/v1/calls", new, wanted, key: "k1")
      #expect(status == 201)
      #expect(try ask("POST", "/v1/calls", new, wanted, key: "k1") == (201, call))
      #expect(try ask("POST", "/v1/calls", new, wanted + " ", key: "k1") == (422, "keyReused"))
      #expect(phone.events.count { $0["event"] as? String == "call.offer" } <= 1)
      _ = try await phone.event("call.offer")
      let hangUp = "/v1/calls/\(call ?? "")/hangup"
      #expect(try ask("POST", hangUp, new, #"{"reason":"localEnd"}"#, key: "k2") == (202, call))
      #expect(
        try ask("POST", hangUp, new, #"{"reason":"localEnd"}"#, key: "k2") == (202, call), "the call is over, the answer stands")
      #expect(try ask("POST", hangUp, new, #"{"reason":"localEnd"}"#) == (404, "unknownCall"))
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      #expect(phone.events.count { $0["event"] as? String == "call.offer" } == 1)
      try await gateway.finish()
    }
  }
}
