import Foundation
import Testing

extension Interop {
  /// Recordings of real calls, read by FFmpeg.
  @Suite(
    .enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"),
    .serialized)
  struct CallRecordingTests {
    private static let telephone = Array(Speech.fromFirstWord(Speech.telephone).prefix(24_000))
    private static let app = Array(Speech.fromFirstWord(Speech.app).prefix(24_000))

    /// What FFmpeg says of a file, whose channels are `left.wav` and `right.wav` then.
    private func read(_ path: String, _ gateway: GatewayUnderTest) async throws -> [String: Any] {
      let reader = try Peers.python(
        "reader", "recording_reader.py", [path, gateway.folder + "/left.wav", gateway.folder + "/right.wav"], gateway)
      #expect(try await reader.finish(within: 20) == 0, "\(reader.text)")
      return try await reader.event("read")
    }

    @Test(
      .tags(.audio), arguments: [("ogg", "opus", 48_000, 8), ("wav", "pcm_s16le", 16_000, 9), ("wav", "pcm_s16le", 8_000, 0)])
    func `both sides of a call are in its file, each in its own channel; the record and an event name it`(
      format: String, codec: String, rate: Int, payloadType: Int
    ) async throws {
      try await expectGoodAudio {
        let gateway = try await GatewayUnderTest(
          ["recording: { folder: rec, when: on, format: \(format), minimum_free_mib: 0 }", "events: {}"],
          trunk: payloadType == 9 ? "codecs: [ G722 ]" : "")
        try Speech.write(Self.telephone, gateway.folder + "/telephone.wav")
        try Speech.write(Self.app, gateway.folder + "/app.wav")
        let phone = try await Peers.phone(
          gateway, ["--play", "app.wav", "--record", "app-heard.wav", "--answer-after", "0.2", "--calls", "1"])
        let audio = try await Peers.trunkAudio(
          gateway,
          ["--play", "telephone.wav", "--record", "trunk-heard.wav", "--codec", "\(payloadType)", "--silence", "1"])
        var script = SippScript.caller(sdp: SippScript.sdp("\(payloadType) 101"))
        script.isAnswered()
        script.pauses(4_000)
        script.asks("BYE")
        script.response()
        let caller = try Peers.caller(gateway, try script.file(gateway, "recorded"), audio: audio.port)
        #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
        #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
        let record = try #require(try await gateway.records(1).first)
        let call = try #require(record["call"] as? String)
        #expect(record["recordings"] as? [String] == ["\(call)-1.\(format)"])
        #expect(await eventually(within: 5) { try gateway.sum("trunkline_recordings_total", "callEnded") == 1 })
        #expect(await eventually(within: 5) { try gateway.get("/v1/events").body.contains("trunkline.call.recorded") })
        let path = gateway.folder + "/rec/\(call)-1.\(format)"
        let told = try await read(path, gateway)
        #expect(told["format"] as? String == format && told["codec"] as? String == codec, "\(told)")
        #expect(told["rate"] as? Int == rate && told["channels"] as? Int == 2 && told["faults"] as? Int == 0, "\(told)")
        #expect((3.5...6).contains(told["seconds"] as? Double ?? 0), "\(told)")
        #expect(try gateway.sum("trunkline_recording_dropped_frames_total") == 0)
        var faults =
          try Speech.faults("telephone → left", said: Self.telephone, heardIn: gateway.folder + "/left.wav", clippedAtMost: 60)
          + Speech.faults("app → right", said: Self.app, heardIn: gateway.folder + "/right.wav", clippedAtMost: 60)
        // no side is heard in the other's channel
        if try Speech.faults("", said: Self.app, heardIn: gateway.folder + "/left.wav").isEmpty { faults.append("crosstalk") }
        try await gateway.finish()
        return faults
      }
    }

    @Test(.tags(.audio)) func `a program begins and ends recordings by the API, a notice is heard and is in the file`()
      async throws
    {
      try await expectGoodAudio {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("notice-\(UUID().uuidString.prefix(8)).wav")
          .path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try Speech.write(Self.app, folder)
        let gateway = try await GatewayUnderTest(
          ["recording: { folder: rec, when: api, format: wav, minimum_free_mib: 0, notice: \(folder) }"])
        let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
        let audio = try await Peers.trunkAudio(gateway, ["--record", "trunk-heard.wav", "--silence", "1"])
        let caller = try Peers.caller(gateway, "call", audio: audio.port, ["-d", "6000"])
        _ = try await phone.event("call.connected")
        let calls = try JSONSerialization.jsonObject(with: Data(try gateway.get("/v1/calls").body.utf8)) as? [String: Any]
        let call = try #require((calls?["calls"] as? [[String: Any]])?.first?["call"] as? String)
        func post(_ body: String) throws -> Int {
          try HTTP.request("POST", "/v1/calls/\(call)/record", port: gateway.admin, body: body).status
        }
        #expect(try post("{\"on\":\"yes\"}") == 400)
        #expect(try post("{\"on\":true}") == 202)
        #expect(await eventually(within: 5) { try gateway.sum("trunkline_recordings") == 1 })
        // the notice is 3 s long
        #expect(await eventually(within: 8) { (Self.size(gateway.folder + "/rec/\(call)-1.wav.part") ?? 0) > 3_500 * 32 })
        let stop = try Spawned(
          "calls", Surroundings.trunkline, ["calls", "record", call, "--off", "--admin", "127.0.0.1:\(gateway.admin)"],
          in: gateway.folder)
        #expect(try await stop.finish(within: 10) == 0, "\(stop.text)")
        #expect(await eventually(within: 5) { try gateway.sum("trunkline_recordings_total", "stopped") == 1 })
        #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
        #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
        _ = try await audio.peer.event("done")
        let told = try await read(gateway.folder + "/rec/\(call)-1.wav", gateway)
        #expect((told["seconds"] as? Double ?? 0) > 3, "\(told)")
        let faults =
          try Speech.faults("notice → right", said: Self.app, heardIn: gateway.folder + "/right.wav", clippedAtMost: 60)
          + Speech.faults("notice → trunk", said: Self.app, heardIn: gateway.folder + "/trunk-heard.wav", clippedAtMost: 60)
        try await gateway.finish()
        return faults
      }
    }

    private static func size(_ path: String) -> Int? {
      (try? FileManager.default.attributesOfItem(atPath: path))?[.size] as? Int
    }

    @Test func `a disk that fills while four calls are recorded ends the recordings, and no call notices`() async throws {
      guard let small = try await SmallDisk() else {
        Issue.record("no mount namespaces here: not tried with a full disk", severity: .warning)
        return
      }
      let users = Dictionary(uniqueKeysWithValues: (1...4).map { ("user\($0)", "+1555123000\($0)") })
      let gateway = try await GatewayUnderTest(
        ["recording: { folder: \(small.disk)/rec, when: on, format: wav, minimum_free_mib: 0 }"], users: users,
        binary: small.program)
      small.watch(gateway)
      var phones: [Spawned] = []
      var callers: [Spawned] = []
      for user in users.keys.sorted() {
        phones.append(try await Peers.ownPhone(gateway, user: user, ["--answer", "--calls", "1"]))
      }
      // the calls begin together, since the first may not end before the last one's disk is full
      var ports: [UInt16] = []
      for _ in users { ports.append(try await Peers.trunkAudio(gateway, ["--silence", "1"]).port) }
      for (number, port) in zip(users.values.sorted(), ports) {
        callers.append(try Peers.caller(gateway, "call", to: number, audio: port, ["-d", "12000"]))
      }
      // 512 KiB hold 4 s of four calls
      #expect(await eventually(within: 20) { try gateway.sum("trunkline_recordings_total", "diskFull") == 4 })
      #expect(try gateway.sum("trunkline_calls", "connected") == 4, "the calls go on")
      for caller in callers { #expect(try await caller.finish(within: 30) == 0, "\(caller.text.suffix(1_000))") }
      for phone in phones { #expect(try await phone.finish(within: 10) == 0, "\(phone.text.suffix(1_000))") }
      let records = try await gateway.records(4)
      #expect(records.allSatisfy { ($0["end"] as? [String: Any])?["reason"] as? String == "remoteHangup" }, "\(records)")
      for record in records {
        let received = try #require(record["fromTrunk"] as? [String: Any])
        #expect(received["late"] as? Int ?? 99 < 20, "\(received)")
        let name = try #require((record["recordings"] as? [String])?.first)
        let told = try await read(small.outside + "/rec/" + name, gateway)
        #expect(told["faults"] as? Int == 0 && (told["seconds"] as? Double ?? 0) > 0.5, "\(told)")
      }
      try await gateway.finish()
    }

    @Test func `what a killed gateway was recording can be heard after its next start`() async throws {
      let gateway = try await GatewayUnderTest(["recording: { folder: rec, when: on, format: ogg, minimum_free_mib: 0 }"])
      let phone = try await Peers.ownPhone(gateway, ["--answer", "--calls", "1"])
      let audio = try await Peers.trunkAudio(gateway, ["--silence", "1"])
      let caller = try Peers.caller(gateway, "call", audio: audio.port, ["-d", "20000"])
      let folder = gateway.folder + "/rec"
      func parts() -> [String] { ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).sorted() }
      #expect(await eventually(within: 15) { parts().first.flatMap { Self.size(folder + "/" + $0) } ?? 0 > 3_000 })
      gateway.process.signal(SIGKILL)
      try await gateway.process.finish(within: 5)
      phone.signal(SIGTERM)
      caller.signal(SIGKILL)
      #expect(parts().allSatisfy { $0.hasSuffix(".ogg.part") })
      try await gateway.restart()
      let name = try #require(parts().first)
      #expect(name.hasSuffix("-1.ogg"), "\(parts())")
      let told = try await read(folder + "/" + name, gateway)
      #expect(told["codec"] as? String == "opus" && (told["seconds"] as? Double ?? 0) > 0.9, "\(told)")
      gateway.process.signal(SIGTERM)
      #expect(try await gateway.process.finish(within: 10) == 0)
    }
  }
}
