import Foundation
import Testing

extension Interop {
  /// Calls that a bot has over a media stream: sipp and G.711 on one side, the websockets library or Pipecat on the other.
  @Suite(
    .enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"),
    .serialized)
  struct MediaStreamTests {
    private static let telephone = Array(Speech.fromFirstWord(Speech.telephone).prefix(24_000))
    private static let bot = Array(Speech.fromFirstWord(Speech.app).prefix(24_000))

    /// A gateway whose calls go to a bot, and the bot.
    private func gateway(_ does: String, format: String = "mulaw", trunk: String = "", more: [String] = [], route: String = "")
      async throws -> (gateway: GatewayUnderTest, bot: Spawned)
    {
      let port = try FreePorts.tcp()
      let gateway = try await GatewayUnderTest(
        [
          "routes: { inbound: [ { trunk: carrier, to: \"ws://127.0.0.1:\(port)/call?a=b\", format: \(format), token_file: jwt.key\(route) } ] }"
        ], trunk: trunk)
      return (gateway, try await bot(gateway, port, does, format: format, more))
    }

    private func bot(_ gateway: GatewayUnderTest, _ port: UInt16, _ does: String, format: String = "mulaw", _ more: [String] = [])
      async throws -> Spawned
    {
      let rate = format == "pcm16" ? 16_000 : 8_000
      try Speech.write(rate == 8_000 ? Self.bot : Self.bot.flatMap { [$0, $0] }, gateway.folder + "/bot.wav", rate: rate)
      let bot = try Peers.python(
        "bot", "stream_bot.py",
        ["--port", "\(port)", "--format", format, "--play", "bot.wav", "--record", "bot-heard.wav", "--do", does] + more, gateway)
      _ = try await bot.event("listening", within: 15)
      return bot
    }

    private func caller(_ gateway: GatewayUnderTest, milliseconds: Int, audio: UInt16, payloadType: Int = 0) throws -> Spawned {
      var script = SippScript.caller(sdp: SippScript.sdp("\(payloadType) 101"))
      script.isAnswered()
      script.pauses(milliseconds)
      script.asks("BYE")
      script.response()
      return try Peers.caller(gateway, try script.file(gateway, "bot"), audio: audio)
    }

    private func trunkAudio(_ gateway: GatewayUnderTest, _ more: [String] = []) async throws -> (peer: Spawned, port: UInt16) {
      try Speech.write(Self.telephone, gateway.folder + "/telephone.wav")
      return try await Peers.trunkAudio(
        gateway, ["--play", "telephone.wav", "--record", "trunk-heard.wav", "--silence", "1"] + more)
    }

    @Test(
      .tags(.audio),
      arguments: [("mulaw", "speak"), ("mulaw", "live"), ("mulaw", "pipecat"), ("pcm8", "speak"), ("pcm16", "live")])
    func `a bot and a caller hear each other, whatever sends the bot's audio and however fast`(format: String, does: String)
      async throws
    {
      try await expectGoodAudio {
        let (gateway, bot) = try await gateway(does, format: format, trunk: format == "pcm16" ? "codecs: [ G722 ]" : "")
        let wide = format == "pcm16"
        let audio = try await trunkAudio(gateway, wide ? ["--codec", "9"] : [])
        let caller = try caller(gateway, milliseconds: 5_000, audio: audio.port, payloadType: wide ? 9 : 0)
        let start = try await bot.event("start")
        #expect(start["path"] as? String == "/call?a=b")
        #expect(start["authorization"] as? String == "Bearer 0123456789abcdef0123456789abcdef")
        let told = try #require(start["start"] as? [String: Any])
        let parameters = try #require(told["customParameters"] as? [String: String])
        #expect(parameters["to"] == "+15551230001" && parameters["trunk"] == "carrier" && parameters["from"] != nil)
        _ = try await bot.event("mark", within: 10) { $0["name"] as? String == "end" }
        #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
        _ = try await bot.event("stop")
        let closed = try await bot.event("closed")
        #expect(closed["code"] as? Int == 1000, "\(closed)")
        let record = try #require(try await gateway.records(1).first)
        #expect((record["end"] as? [String: Any])?["reason"] as? String == "remoteHangup")
        #expect((record["stream"] as? String)?.hasSuffix("/call") == true, "\(record)")
        #expect(
          try gateway.sum("trunkline_streams_total", "\"call\"") == 1 && gateway.sum("trunkline_stream_unread_frames_total") == 0)
        let heard = gateway.folder + "/bot-heard.wav"
        if wide { try halve(heard) }
        _ = try await audio.peer.event("done")
        let faults =
          try Speech.faults("caller → bot", said: Self.telephone, heardIn: heard, clippedAtMost: 60)
          + Speech.faults("bot → caller", said: Self.bot, heardIn: gateway.folder + "/trunk-heard.wav", clippedAtMost: 60)
        bot.signal(SIGTERM)
        try await gateway.finish()
        return faults
      }
    }

    /// 16 kHz to 8, for the comparison.
    private func halve(_ path: String) throws {
      let all = try Speech.read(path)
      var half: [Int16] = []
      for index in stride(from: 0, to: all.count - 1, by: 2) {
        let sum = Int(all[index]) + Int(all[index + 1])
        half.append(Int16(sum / 2))
      }
      try Speech.write(half, path)
    }

    @Test(.tags(.audio)) func `clear empties what is queued: the trunk hears something else at once, and the marks come back`()
      async throws
    {
      try await expectGoodAudio {
        let (gateway, bot) = try await gateway("clear")
        let audio = try await trunkAudio(gateway)
        let caller = try caller(gateway, milliseconds: 6_000, audio: audio.port)
        let clearing = try #require(try await bot.event("clearing")["at"] as? Double)
        let mark = try await bot.event("mark") { $0["name"] as? String == "tone" }
        let back = try #require(mark["at"] as? Double)
        #expect(back - clearing < 0.5, "the mark came back after \(back - clearing) s")
        _ = try await bot.event("mark", within: 10) { $0["name"] as? String == "end" }
        #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
        _ = try await audio.peer.event("done")
        let faults = try Speech.faults(
          "bot → caller", said: Self.bot, heardIn: gateway.folder + "/trunk-heard.wav", clippedAtMost: 60,
          // a second of the tone, and then at once
          delayWithin: 900...1_250)
        bot.signal(SIGTERM)
        try await gateway.finish()
        return faults
      }
    }

    @Test(arguments: [("localhost", true), ("127.0.0.1", false)])
    func `over TLS the peer must show a certificate for its name`(host: String, isAccepted: Bool) async throws {
      let port = try FreePorts.tcp()
      let folder = FileManager.default.temporaryDirectory.appendingPathComponent("bot-\(UUID().uuidString.prefix(8))").path
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(atPath: folder) }
      let openssl = try Spawned(
        "openssl", "/usr/bin/openssl",
        [
          "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
          "/CN=localhost",
          "-addext", "subjectAltName=DNS:localhost", "-keyout", "bot.key", "-out", "bot.pem",
        ], in: folder)
      #expect(try await openssl.finish(within: 10) == 0, "\(openssl.text)")
      let gateway = try await GatewayUnderTest([
        "routes: { stream_ca: \(folder)/bot.pem, inbound: [ { trunk: carrier, to: \"wss://\(host):\(port)/\" } ] }"
      ])
      let bot = try await bot(gateway, port, "speak", ["--certificate", folder + "/bot.pem", "--key", folder + "/bot.key"])
      let caller = try Peers.caller(gateway, isAccepted ? "call" : "refused_480", isAccepted ? ["-d", "800"] : [])
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      let end = try #require(try await gateway.records(1).first?["end"] as? [String: Any])
      #expect(end["reason"] as? String == (isAccepted ? "remoteHangup" : "mediaFailed"))
      if !isAccepted { #expect((end["detail"] as? String)?.contains("certificate") == true, "\(end)") }
      bot.signal(SIGTERM)
      try await gateway.finish()
    }

    @Test func `digits of the caller come to the bot`() async throws {
      let (gateway, bot) = try await gateway("silent", trunk: "dtmf: info")
      var script = SippScript.caller()
      script.isAnswered()
      script.pauses(300)
      script.asks("INFO", sdp: "Signal=7\nDuration=160\n", type: "application/dtmf-relay")
      script.response()
      script.pauses(300)
      script.asks("BYE")
      script.response()
      let caller = try Peers.caller(gateway, try script.file(gateway, "digits"))
      #expect(try await bot.event("dtmf")["digit"] as? String == "7")
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      bot.signal(SIGTERM)
      try await gateway.finish()
    }

    @Test(.tags(.audio)) func `a bot that floods, sends junk or never reads costs counted drops, and no other call notices`()
      async throws
    {
      try await expectGoodAudio {
        let port = try FreePorts.tcp()
        let (flooded, deaf) = (try FreePorts.tcp(), try FreePorts.tcp())
        func row(_ number: Int, _ port: UInt16) -> String {
          "{ trunk: carrier, to: \"ws://127.0.0.1:\(port)/\", numbers: [ \"+1555123000\(number)\" ] }"
        }
        let gateway = try await GatewayUnderTest(
          ["routes: { inbound: [ \(row(1, port)), \(row(2, flooded)), \(row(3, deaf)) ] }"])
        let good = try await bot(gateway, port, "junk")
        let flood = try await bot(gateway, flooded, "flood", ["--record", "flood.wav"])
        let silent = try await bot(gateway, deaf, "deaf", ["--record", "deaf.wav"])
        var callers: [Spawned] = []
        for number in 2...3 {
          callers.append(try Peers.caller(gateway, "call", to: "+1555123000\(number)", ["-d", "7000"]))
        }
        _ = try await flood.event("said", within: 20)
        let audio = try await trunkAudio(gateway)
        callers.append(try caller(gateway, milliseconds: 4_500, audio: audio.port))
        _ = try await good.event("mark", within: 15) { $0["name"] as? String == "end" }
        for caller in callers { #expect(try await caller.finish(within: 25) == 0, "\(caller.text.suffix(1_000))") }
        _ = try await gateway.records(3)
        #expect(gateway.endReasons.allSatisfy { $0 == "remoteHangup" }, "\(gateway.endReasons)")
        // five minutes at once, of which two fit; 3000 marks, of which 1000
        #expect(await eventually(within: 5) { try gateway.sum("trunkline_stream_surplus_frames_total") >= 8_900 })
        #expect(try gateway.sum("trunkline_stream_surplus_marks_total") == 2_000)
        #expect(try gateway.sum("trunkline_stream_faults_total") == 7)
        _ = try await audio.peer.event("done")
        let faults =
          try Speech.faults("bot → caller", said: Self.bot, heardIn: gateway.folder + "/trunk-heard.wav", clippedAtMost: 60)
        for peer in [good, flood, silent] { peer.signal(SIGTERM) }
        try await gateway.finish()
        return faults
      }
    }

    @Test(arguments: ["nobody", "refuses", "stalls"])
    func `a bot that cannot be reached is a 480, and the record says why`(_ how: String) async throws {
      let (gateway, bot) = try await gateway(
        "silent", more: how == "refuses" ? ["--refuse", "503"] : how == "stalls" ? ["--stall"] : [])
      if how == "nobody" {
        bot.signal(SIGTERM)
        try await bot.finish(within: 5)
      }
      let caller = try Peers.caller(gateway, "refused_480")
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      let end = try #require(try await gateway.records(1).first?["end"] as? [String: Any])
      #expect(end["reason"] as? String == "mediaFailed" && (end["detail"] as? String)?.hasPrefix("stream: ") == true, "\(end)")
      if how == "refuses" { #expect(end["detail"] as? String == "stream: it answered 503") }
      bot.signal(SIGTERM)
      try await gateway.finish()
    }

    @Test(arguments: [("close", "localEnd"), ("drop", "networkLost")])
    func `a bot that closes ends the call, one that vanishes too`(does: String, reason: String) async throws {
      let (gateway, bot) = try await gateway(does)
      let caller = try Peers.caller(gateway, "call_until_bye")
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      _ = try await gateway.records(1)
      #expect(gateway.endReasons == [reason])
      bot.signal(SIGTERM)
      try await gateway.finish()
    }

    @Test func `a program gives a call that rings to a bot`() async throws {
      let port = try FreePorts.tcp()
      let gateway = try await GatewayUnderTest([
        "routes: { stream_hosts: [ \"ws://127.0.0.1:\(port)\" ], inbound: [ { trunk: carrier, to: users } ] }"
      ])
      let bot = try await bot(gateway, port, "speak")
      let phone = try await Peers.ownPhone(gateway, ["--calls", "1"])
      let audio = try await trunkAudio(gateway)
      let caller = try caller(gateway, milliseconds: 3_000, audio: audio.port)
      #expect(await eventually(within: 10) { try gateway.sum("trunkline_calls", "ringing") == 1 })
      let calls = try JSONSerialization.jsonObject(with: Data(try gateway.get("/v1/calls").body.utf8)) as? [String: Any]
      let call = try #require((calls?["calls"] as? [[String: Any]])?.first?["call"] as? String)
      func post(_ body: String) throws -> Int {
        try HTTP.request("POST", "/v1/calls/\(call)/stream", port: gateway.admin, body: body).status
      }
      #expect(try post("{\"url\":\"http://127.0.0.1:\(port)\"}") == 400)
      #expect(try post("{\"url\":\"ws://127.0.0.1:\(port)\",\"format\":\"mp3\"}") == 400)
      #expect(try post("{\"url\":\"ws://127.0.0.1:\(gateway.admin)/\"}") == 422)
      let words = ["calls", "stream", call, "ws://127.0.0.1:\(port)", "--admin", "127.0.0.1:\(gateway.admin)"]
      let given = try Spawned("calls", Surroundings.trunkline, words, in: gateway.folder)
      #expect(try await given.finish(within: 10) == 0, "\(given.text)")
      #expect(try post("{\"url\":\"ws://127.0.0.1:\(port)\"}") == 409)
      _ = try await bot.event("first_sound")
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      _ = try await gateway.records(1)
      for peer in [bot, phone] { peer.signal(SIGTERM) }
      try await gateway.finish()
    }

    /// A sound goes from the carrier to the bot, which sends it back, and to the carrier again.
    @Test(.tags(.audio)) func `there and back through a bot that echoes takes no longer than its jitter buffer and two ticks`()
      async throws
    {
      try await expectGoodAudio {
        let (gateway, bot) = try await gateway("echo")
        let audio = try await trunkAudio(gateway)
        let caller = try caller(gateway, milliseconds: 5_000, audio: audio.port)
        #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
        _ = try await gateway.records(1)
        _ = try await audio.peer.event("done")
        bot.signal(SIGTERM)
        try await gateway.finish()
        return try Speech.faults(
          "caller → bot → caller", said: Self.telephone, heardIn: gateway.folder + "/trunk-heard.wav", clippedAtMost: 60,
          delayWithin: 0...150)
      }
    }
  }
}
