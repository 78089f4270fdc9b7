import Foundation
import Testing

extension Interop {
  /// What an operator and Prometheus see.
  @Suite(.enabled(if: Surroundings.missing == nil, "\(Surroundings.missing ?? "")"), .serialized)
  struct HealthTests {
    /// Family, and a part of a sample's labels that must be there.
    private static let afterACall = [
      ("trunkline_calls", #"state="connected""#), ("trunkline_calls", #"state="ringing""#),
      ("trunkline_calls_ended_total", #"reason="remoteHangup""#), ("trunkline_answer_to_audio_seconds_count", "trunk_to_app"),
      ("trunkline_answer_to_audio_seconds_count", "app_to_trunk"), ("trunkline_invite_to_ringing_seconds_count", ""),
      ("trunkline_media_gate_seconds_count", #"direction="in""#), ("trunkline_media_packets_total", "trunk_received"),
      ("trunkline_media_packets_total", "app_received"), ("trunkline_media_packets_total", #""sent""#),
      ("trunkline_media_lost_total", #"leg="trunk""#), ("trunkline_media_lost_total", #"leg="app""#),
      ("trunkline_media_jitter_seconds_count", ""), ("trunkline_media_late_total", #"leg="trunk""#),
      ("trunkline_media_concealed_seconds_total", #"leg="app""#), ("trunkline_media_jitter_buffer_seconds_count", ""),
      ("trunkline_media_tick_lateness_seconds_count", ""), ("trunkline_media_thread_cpu_seconds_total", #"thread="media-0""#),
      ("trunkline_media_thread_cpu_seconds_total", #"thread="media-1""#), ("trunkline_media_sessions", ""),
      ("trunkline_app_sessions", #"state="connected""#), ("trunkline_sip_requests_total", #"method="INVITE""#),
      ("trunkline_sip_responses_total", #"code="200""#), ("trunkline_calls_refused_total", #"reason="mediaPorts""#),
      ("trunkline_calls_refused_total", #"reason="draining""#), ("trunkline_sip_refused_total", #"reason="malformed""#),
      ("trunkline_sip_dropped_total", #"reason="stranger""#), ("trunkline_media_drops_total", "reason="),
      ("trunkline_app_hello_refused_total", "reason="), ("trunkline_app_connections_refused_total", "reason="),
      ("trunkline_answered_without_media_total", ""), ("trunkline_records_waiting", ""), ("trunkline_records_written_total", ""),
      ("process_cpu_seconds_total", ""), ("process_resident_memory_bytes", ""), ("trunkline_build_info", "version="),
    ]
    /// Samples that one call must have moved.
    private static let moved = [
      "trunkline_answer_to_audio_seconds_count", "trunkline_invite_to_ringing_seconds_count",
      "trunkline_media_gate_seconds_count",
      "trunkline_media_packets_total", "trunkline_media_jitter_seconds_count", "trunkline_media_tick_lateness_seconds_count",
      "trunkline_media_jitter_buffer_seconds_count", "trunkline_media_thread_cpu_seconds_total", "trunkline_sip_requests_total",
      "trunkline_sip_responses_total", "trunkline_records_written_total", "trunkline_dtls_handshake_seconds_count",
    ]

    @Test(.tags(.audio)) func `scraped 100 times a second the call is heard as ever`() async throws {
      let gateway = try await GatewayUnderTest()
      try Speech.write(Speech.telephone, gateway.folder + "/telephone.wav")
      try Speech.write(Speech.app, gateway.folder + "/app.wav")
      try await expectGoodAudio {
        let scraper = Task.detached {
          var scrapes = 0
          while !Task.isCancelled {
            let begin = ContinuousClock.now
            if try gateway.get("/metrics").status == 200 { scrapes += 1 }
            try? await Task.sleep(until: begin + .milliseconds(10))
          }
          return scrapes
        }
        let phone = try await Peers.ownPhone(
          gateway, ["--answer", "--calls", "1", "--play", "app.wav", "--record", "app-heard.wav"])
        let audio = try await Peers.trunkAudio(gateway, ["--play", "telephone.wav", "--record", "trunk-heard.wav"])
        let caller = try Peers.caller(gateway, "call", audio: audio.port, ["-d", "8000"])
        #expect(try await caller.finish(within: 25) == 0, "\(caller.text.suffix(6_000))")
        #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
        #expect(try await audio.peer.finish(within: 10) == 0)
        scraper.cancel()
        #expect(try await scraper.value > 400)
        return try Speech.faults("telephone → app", said: Speech.telephone, heardIn: gateway.folder + "/app-heard.wav")
          + Speech.faults("app → telephone", said: Speech.app, heardIn: gateway.folder + "/trunk-heard.wav")
      }
      try await gateway.finish()
    }

    @Test func `PERF-3: after a call every metric of the health line is there, moved, and valid for promtool`() async throws {
      let gateway = try await GatewayUnderTest()
      try Speech.write(Speech.telephone, gateway.folder + "/telephone.wav")
      try Speech.write(Speech.app, gateway.folder + "/app.wav")
      let phone = try await Peers.phone(gateway, ["--play", "app.wav", "--answer-after", "0.1", "--calls", "1"])
      let audio = try await Peers.trunkAudio(gateway, ["--play", "telephone.wav", "--loss", "0.05"])
      let caller = try Peers.caller(gateway, "call", audio: audio.port, ["-d", "6000"])
      _ = try await phone.event("call.connected")
      #expect(try gateway.metric(#"trunkline_calls{state="connected"}"#) == 1)
      #expect(try gateway.metric(#"trunkline_app_sessions{state="connected"}"#) == 1)
      #expect(await eventually(within: 3) { try gateway.metric("trunkline_media_sessions") == 1 })
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0)
      try await audio.peer.finish(within: 10)
      _ = try await gateway.records(1)
      _ = await eventually(within: 3) { try gateway.metric("trunkline_media_sessions") == 0 }
      // The user agent's counts are published once a second.
      #expect(await eventually(within: 5) { try gateway.sum("trunkline_sip_responses_total") > 0 })

      let body = try gateway.get("/metrics").body
      let lines = body.split(separator: "\n")
      for (family, part) in Self.afterACall {
        let own = lines.filter { $0.hasPrefix(family + "{") || $0.hasPrefix(family + " ") }
        let found = part.isEmpty ? !own.isEmpty : own.contains { $0.contains(part) }
        #expect(found, "\(family) \(part) is missing")
      }
      for family in Self.moved { #expect(try gateway.sum(family) > 0, "\(family) did not move") }
      #expect(try gateway.sum("trunkline_media_lost_total", "trunk") > 0, "5 % of the trunk's packets were lost")
      #expect(try gateway.sum("trunkline_media_concealed_seconds_total") > 0)
      if let promtool = ["/usr/bin/promtool", "/usr/local/bin/promtool"].first(where: FileManager.default.isExecutableFile) {
        try body.write(toFile: gateway.folder + "/metrics", atomically: true, encoding: .utf8)
        let check = try Spawned("promtool", "/bin/sh", ["-c", "exec \(promtool) check metrics < metrics"], in: gateway.folder)
        #expect(try await check.finish(within: 10) == 0, "\(check.text)")
        #expect(check.text.isEmpty, "\(check.text)")
      }
      try await gateway.finish(calls: [caller.callID])
    }

    @Test func `health pages are JSON, and a draining gateway says so everywhere`() async throws {
      let gateway = try await GatewayUnderTest()
      func json(_ path: String) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(try gateway.get(path).body.utf8)) as? [String: Any])
      }
      #expect(try json("/healthz")["status"] as? String == "ok")
      let ready = try json("/readyz")
      #expect(ready["ready"] as? Bool == true)
      #expect(try #require(ready["components"] as? [[String: Any]]).count >= 2)
      #expect(try gateway.get("/nothing").status == 404)

      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1"])
      let caller = try Peers.caller(gateway, "call", ["-d", "3000"])
      _ = try await phone.event("call.connected")
      gateway.process.signal(SIGTERM)
      #expect(await eventually(within: 3) { try gateway.get("/readyz").status == 503 })
      let reasons = try #require(try json("/readyz")["components"] as? [[String: Any]]).compactMap { $0["reason"] as? String }
      #expect(reasons.count == 1 && reasons[0].contains("draining"), "\(reasons)")
      #expect(try gateway.get("/healthz").status == 200)
      let trunk = try RawTrunk(gateway)
      #expect(trunk.ask(trunk.request("OPTIONS"))?.code == 503)
      let refused = trunk.request("INVITE", sdp: RawTrunk.offer())
      #expect(trunk.ask(refused)?.code == 503)
      try await gateway.account(calls: [], refused: [refused.callID], live: [caller.callID])
      #expect(try await caller.finish(within: 20) == 0, "the live call was cut")
      #expect(try await gateway.process.finish(within: 10) == 0)
      try await phone.finish(within: 10)
      #expect(gateway.endReasons == ["remoteHangup"])
    }

    @Test func `the admin endpoint refuses what it does not know, and hangs up a call by its id`() async throws {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      let caller = try Peers.caller(gateway, "call_until_bye")
      _ = try await phone.event("call.connected")
      let unknown = UUID().uuidString.lowercased()
      #expect(try HTTP.request("POST", "/v1/calls/\(unknown)/hangup", port: gateway.admin).status == 404)
      #expect(try HTTP.request("POST", "/v1/calls/x/hangup", port: gateway.admin).status == 400)
      #expect(try HTTP.request("POST", "/v1/calls", port: gateway.admin).status == 400)
      #expect(try HTTP.request("POST", "/v1/calls/\(unknown)", port: gateway.admin).status == 405)
      #expect(try gateway.get("/v1/calls/\(unknown)").status == 404)
      struct Listed: Decodable { struct Call: Decodable { var call: String }; var calls: [Call] }
      let listed = try JSONDecoder().decode(Listed.self, from: Data(try gateway.get("/v1/calls").body.utf8))
      let id = try #require(listed.calls.first?.call)
      #expect(listed.calls.count == 1)
      #expect(try HTTP.request("POST", "/v1/calls/\(id)/hangup", port: gateway.admin).status == 202)
      #expect(try await caller.finish(within: 10) == 0, "no BYE came")
      #expect(try await phone.finish(within: 10) == 0)
      let end = try await gateway.records(1).first?["end"] as? [String: Any]
      #expect(end?["by"] as? String == "gateway")
      #expect(try gateway.get("/v1/calls/\(id)").status == 404)
      try await gateway.finish(calls: [caller.callID])
    }
  }
}
