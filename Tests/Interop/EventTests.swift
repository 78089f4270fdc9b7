import Foundation
import Testing

extension Interop {
  /// The events that a business gets about its calls. The library of Standard Webhooks checks signatures at the receiver, the
  /// schema its events.
  @Suite(.enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct EventTests {
    private func gateway(_ port: UInt16, _ more: String = "", _ lines: [String] = []) async throws -> GatewayUnderTest {
      try await GatewayUnderTest(
        [
          "events: { webhooks: [ { url: \"http://127.0.0.1:\(port)/events\", key_file: jwt.key\(more) } ] }"
        ] + lines)
    }

    /// The webhook's key is `jwt.key`: 32 plain characters, which the library expects in base64.
    private func sink(_ gateway: GatewayUnderTest, _ port: UInt16, _ mode: String = "ok") async throws -> Spawned {
      let text = "0123456789abcdef0123456789abcdef"
      let sink = try Peers.python(
        "sink", "event_sink.py",
        [
          "--port", "\(port)", "--mode", mode, "--secret", "whsec_" + Data(text.utf8).base64EncodedString(), "--schema",
          Surroundings.package + "/docs/reference/schemas/events.json",
        ], gateway)
      _ = try await sink.event("listening", within: 15)
      return sink
    }

    private func told(_ sink: Spawned) -> [[String: Any]] { sink.events.filter { $0["event"] as? String == "told" } }

    /// The events that it answered with 200.
    private func taken(_ sink: Spawned) -> [[String: Any]] {
      told(sink).filter { ["ok", "slow"].contains($0["mode"] as? String) }
    }

    /// All events of the journal, page by page.
    private func fetched(_ gateway: GatewayUnderTest, _ query: String = "") throws -> [[String: Any]] {
      var all: [[String: Any]] = []
      var after = ""
      while true {
        let page = try gateway.get("/v1/events?limit=200" + query + (after.isEmpty ? "" : "&after=\(after)"))
        #expect(page.status == 200, "\(page.body)")
        let json = try #require(try JSONSerialization.jsonObject(with: Data(page.body.utf8)) as? [String: Any])
        all += json["events"] as? [[String: Any]] ?? []
        after = json["after"] as? String ?? ""
        guard json["more"] as? Bool == true else { return all }
      }
    }

    private func stop(_ peer: Spawned) async {
      peer.signal(SIGKILL)
      _ = try? await peer.finish(within: 5)
    }

    @Test func `a third party's receiver gets a call's events from its start to its record, in order, and others fetch the same`()
      async throws
    {
      let port = try FreePorts.tcp()
      let gateway = try await gateway(port)
      let sink = try await sink(gateway, port)
      let listener = try Spawned(
        "listener", Surroundings.trunkline,
        ["events", "listen", "--admin", "127.0.0.1:\(gateway.admin)", "--kinds", "call.ended", "--most", "1"],
        in: gateway.folder)
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.2", "--calls", "1"])
      let caller = try Peers.caller(gateway, "call", ["-d", "500"])
      #expect(try await caller.finish(within: 25) == 0, "\(caller.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      let record = try #require(try await gateway.records(1).first)
      let kinds = ["started", "ringing", "answered", "connected", "ended"].map { "trunkline.call.\($0)" }
      #expect(
        await eventually(within: 10) {
          told(sink).compactMap { $0["type"] as? String }.filter { $0.contains(".call.") } == kinds
        },
        "\(sink.text)")
      #expect(told(sink).allSatisfy { $0["genuine"] as? Bool == true && $0["problem"] is NSNull }, "\(sink.text)")
      let ended = try #require(told(sink).last { $0["type"] as? String == kinds[4] }?["data"] as? [String: Any])
      #expect(NSDictionary(dictionary: ended) == NSDictionary(dictionary: record))
      #expect(try await listener.finish(within: 10) == 0, "\(listener.text)")
      #expect(listener.text.contains(record["call"] as? String ?? "?"), "\(listener.text)")
      // the same events, fetched
      let all = try fetched(gateway)
      // the first event is of the gateway's start, before any listener
      #expect(all[0]["type"] as? String == "trunkline.trunk.up" && (all[0]["time"] as? String ?? "") > "2026-11", "\(all[0])")
      let ids = Set(all.compactMap { $0["id"] as? String })
      #expect(
        await eventually(within: 10) { Set(told(sink).compactMap { $0["id"] as? String }) == ids }, "\(ids): \(sink.text)")
      #expect(try fetched(gateway, "&kinds=call.connected,call.ended").count == 2)
      #expect(try fetched(gateway, "&subject=\(record["call"] as? String ?? "")").count == 5)
      for (query, status) in [
        ("after=nonsense", 400), ("limit=0", 400), ("kinds=call.nothing", 400), ("until=1", 400), ("after=00000000-1", 410),
        ("after=latest", 200),
      ] {
        let answer = try gateway.get("/v1/events?" + query)
        let json = try JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [String: Any]
        #expect(answer.status == status && (json?["code"] == nil) == (status == 200), "\(query): \(answer.body)")
      }
      await stop(sink)
      try await gateway.finish()
    }

    /// A receiver that is away, failing, slow or half-closed, while the gateway is killed three times. EVENT_CALLS: calls before
    /// each kill.
    @Test func `every call's events arrive, in order, whatever the receiver does and however often the gateway is killed`()
      async throws
    {
      let port = try FreePorts.tcp()
      let gateway = try await gateway(port)
      let count = ProcessInfo.processInfo.environment["EVENT_CALLS"].flatMap { Int($0) } ?? 200
      var sinks: [Spawned] = []
      let modes = [nil, "500,500,slow,close,503,ok,close,redirect,404,ok", "500"]
      for (round, mode) in modes.enumerated() {
        let sink = if let mode { try await sink(gateway, port, mode) } else { nil as Spawned? }
        if let sink { sinks.append(sink) }
        let calls = try Peers.caller(gateway, "refused_480", ["-m", "\(count)", "-r", "100", "-timeout", "600s"])
        let before = gateway.records.count
        let enough = before + count * 3 / 10
        _ = await eventually(within: 20 + Double(count) / 50) { gateway.records.count >= enough }
        #expect(gateway.records.count >= enough, "round \(round): \(calls.text.suffix(500))")
        gateway.process.signal(SIGKILL)
        try await gateway.process.finish(within: 5)
        await stop(calls)
        try await gateway.restart()
        if let sink { await stop(sink) }
      }
      let last = try await sink(gateway, port)
      sinks.append(last)
      let events = try fetched(gateway)
      let ids = Set(events.compactMap { $0["id"] as? String })
      #expect(
        await eventually(within: 90 + Double(count) / 10) {
          ids.isSubset(of: sinks.flatMap(taken).compactMap { $0["id"] as? String })
        },
        "\(ids.subtracting(sinks.flatMap(taken).compactMap { $0["id"] as? String }).count) of \(ids.count) were not told")
      #expect(ids.count == events.count, "no id twice")
      let all = sinks.flatMap(told)
      #expect(all.allSatisfy { $0["genuine"] as? Bool == true && $0["problem"] is NSNull && $0["path"] as? String == "/events" })
      // the first acceptance of each event: for each call in the order of the journal
      var order: [String: [String]] = [:]
      var seen: Set<String> = []
      for event in all where event["mode"] as? String == "ok" {
        guard let id = event["id"] as? String, let subject = event["subject"] as? String, seen.insert(id).inserted else {
          continue
        }
        order[subject, default: []].append(event["type"] as? String ?? "")
      }
      var journal: [String: [String]] = [:]
      for event in events { journal[event["subject"] as? String ?? "", default: []].append(event["type"] as? String ?? "") }
      let records = Dictionary(gateway.records.map { ($0["call"] as? String ?? "", $0) }) { first, _ in first }
      #expect(records.count == gateway.records.count)
      #expect(Set(journal.keys.filter { $0.count == 36 }) == Set(records.keys), "a call without events, or events without a call")
      for (call, kinds) in journal where call.count == 36 {
        #expect(kinds.first == "trunkline.call.started" && kinds.last == "trunkline.call.ended", "\(call): \(kinds)")
        #expect(kinds.count { $0 == "trunkline.call.ended" } == 1, "\(call): \(kinds)")
        let rest = kinds.filter { order[call]?.contains($0) == true }
        #expect(order[call] == nil || order[call] == rest, "\(call): \(order[call] ?? []) of \(kinds)")
      }
      for event in events where event["type"] as? String == "trunkline.call.ended" {
        let data = event["data"] as? [String: Any] ?? [:]
        let record = records[event["subject"] as? String ?? ""] ?? [:]
        #expect(NSDictionary(dictionary: data) == NSDictionary(dictionary: record))
      }
      for sink in sinks { await stop(sink) }
      gateway.process.signal(SIGTERM)
      #expect(try await gateway.process.finish(within: 10) == 0)
    }

    @Test func `the example's backend handles each event once, and accepts none that is not signed`() async throws {
      let port = try FreePorts.tcp()
      let gateway = try await gateway(port)
      try "{\"alice\": {\"password\": \"a\", \"grant\": {}}}".write(
        toFile: gateway.folder + "/users.json", atomically: true, encoding: .utf8)
      let backend = try Spawned(
        "backend", "/usr/bin/python3",
        [
          "-B", Surroundings.package + "/Examples/backend/backend.py", "--key", "jwt.key", "--users", "users.json", "--port",
          "\(port)", "--events-key", "jwt.key",
        ], in: gateway.folder)
      _ = try await backend.event("listening")
      let caller = try Peers.caller(gateway, "refused_480")
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(1_000))")
      let kinds = { backend.events.compactMap { $0["type"] as? String }.filter { $0.contains(".call.") } }
      #expect(
        await eventually(within: 15) { kinds() == ["trunkline.call.started", "trunkline.call.ended"] }, "\(backend.text)")
      for (headers, status) in [
        ([], 401), (["webhook-id: x", "webhook-timestamp: 1", "webhook-signature: v1,AAAA"], 401),
        (["webhook-id: x", "webhook-timestamp: \(Int(Date().timeIntervalSince1970))", "webhook-signature: v1,AAAA v2,="], 401),
      ] as [([String], Int)] {
        let answer = try HTTP.request("POST", "/events", port: port, headers: headers, body: #"{"id":"x"}"#)
        #expect(answer.status == status, "\(answer)")
      }
      #expect(kinds().count == 2)
      backend.signal(SIGTERM)
      _ = await eventually(within: 5) { !backend.isRunning }
      try await gateway.finish()
    }

    @Test func `trunkline events sink checks signatures and fails as often as asked`() async throws {
      let port = try FreePorts.tcp()
      let gateway = try await gateway(port, ", kinds: [ call.ended ]")
      let sink = try Spawned(
        "sink", Surroundings.trunkline,
        ["events", "sink", "--listen", "127.0.0.1:\(port)", "--key-file", "jwt.key", "--fail", "50", "--status", "503"],
        in: gateway.folder)
      #expect(await eventually(within: 10) { sink.text.contains("receiving events at") }, "\(sink.text)")
      let calls = try Peers.caller(gateway, "refused_480", ["-m", "4", "-r", "50"])
      #expect(try await calls.finish(within: 20) == 0, "\(calls.text.suffix(1_000))")
      #expect(
        await eventually(within: 20) { sink.text.split(separator: "\n").count { $0.contains("trunkline.call.ended") } == 4 },
        "\(sink.text)")
      #expect(!sink.text.contains("call.started") && !sink.text.contains("does not match this secret"))
      #expect(try gateway.sum("trunkline_event_webhooks_total", "failed") > 0)
      sink.signal(SIGTERM)
      #expect(try await sink.finish(within: 5) == 0)
      try await gateway.finish()
    }
  }
}
