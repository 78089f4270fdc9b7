import Foundation
import Testing

extension Interop {
  /// A cluster's records on their way: log rotation, a full disk, and files and a collector behind Debian's rsyslog, as in
  /// Deploy/records.
  @Suite(.withRedis, .serialized)
  struct ClusterRecordsTests {
    private static let stream = "records: { file: calls.jsonl, stream: true }"

    /// The stream's lines so far, from its beginning.
    private func follow(_ cluster: ClusterUnderTest, _ count: Int) async throws -> [String] {
      let node = cluster.nodes[0]
      let follower = try Spawned(
        "follow", Surroundings.trunkline,
        ["records", "follow", "--redis", "127.0.0.1:\(cluster.redisPort)", "--from-start", "--count", "\(count)"], in: node.folder
      )
      guard try await follower.finish(within: 20) == 0 else { throw Spawned.Failure(description: follower.text) }
      return Self.calls(follower.text)
    }

    /// The field `call` of each line.
    private static func calls(_ text: String) -> [String] {
      text.split(separator: "\n").map { line in
        ((try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])?["call"] as? String) ?? "no record: \(line)"
      }
    }

    /// The stanza of Deploy/records/logrotate.conf with its path replaced by `file`; `restart` starts the file's writer again.
    private func rotation(of path: String, for file: String, restart: String? = nil, copies: Bool = false) throws -> String {
      let text = try String(contentsOfFile: Surroundings.package + "/Deploy/records/logrotate.conf", encoding: .utf8)
      let start = try #require(text.range(of: path + " {")?.lowerBound)
      let end = try #require(text.range(of: "\n}\n", range: start..<text.endIndex)?.upperBound)
      let owner = try FileManager.default.attributesOfItem(atPath: file)
      let (user, group) = (owner[.ownerAccountName] as? String ?? "root", owner[.groupOwnerAccountName] as? String ?? "root")
      var stanza = String(text[start..<end]).replacing(path, with: file).replacing(
        "trunkline trunkline", with: "\(user) \(group)")
      if let restart { stanza = stanza.replacing("systemctl try-restart trunkline-records.service", with: restart) }
      if copies { stanza = stanza.replacing(/create .*/, with: "copytruncate") }
      return stanza
    }

    private func rotate(_ stanza: String, in folder: String) async throws {
      let name = folder + "/rotate-\(UUID().uuidString.prefix(8))"
      try stanza.write(toFile: name, atomically: true, encoding: .utf8)
      try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: name)
      let run = try Spawned(
        "logrotate", Surroundings.logrotate ?? "logrotate", ["--force", "--state", folder + "/rotated", name], in: folder)
      #expect(try await run.finish(within: 20) == 0, "\(run.text)")
      #expect(!run.text.contains("error"), "\(run.text)")
    }

    @Test(
      .enabled(if: Surroundings.isRequired || Surroundings.logrotate != nil, "no logrotate: run Scripts/install test"),
      arguments: [false, true])
    func `logrotate moves a node's records away, or copies and cuts them: each call is in the stream once`(copies: Bool)
      async throws
    {
      let cluster = try await ClusterUnderTest(1, hasEdge: false, [Self.stream])
      let node = cluster.nodes[0]
      let phone = try await Peers.ownPhone(node, device: "desk", ["--answer", "--answer-after", "0.1", "--calls", "4"])
      func call() async throws {
        let caller = try cluster.call(to: node, ["-d", "100"])
        #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      }
      func streamed(_ count: Int) async {
        #expect(await eventually(within: 15) { try node.sum("trunkline_records_streamed_total") == Double(count) })
      }
      let file = node.folder + "/calls.jsonl"
      for round in 0..<2 {
        try await call()
        _ = try await node.records(round == 0 ? 1 : 2)
        // a line that is cut before it was read is lost to the stream: hence no copytruncate in Deploy
        if copies { await streamed(2 * round + 1) }
        try await rotate(rotation(of: "/var/lib/trunkline/calls.jsonl", for: file, copies: copies), in: node.folder)
        try await call()
        await streamed(2 * round + 2)
      }
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      let packed = try Spawned(
        "unpack", "/bin/sh", ["-c", "for f in calls.jsonl*.gz; do gunzip $f; done; cat calls.jsonl calls.jsonl.[0-9]"],
        in: node.folder)
      try await packed.finish(within: 10)
      let written = Self.calls(packed.text)
      #expect(written.count == 4 && Set(written).count == 4, "\(packed.text)")
      #expect(try await Set(follow(cluster, 4)) == Set(written))
      #expect(try node.sum("trunkline_records_superseded_total") == 0 && node.sum("trunkline_records_unreadable_total") == 0)
      try await cluster.finish()
    }

    @Test func `the disk of one node is full: its lease and calls go on, other nodes notice nothing, and the stream gets all`()
      async throws
    {
      guard let small = try await SmallDisk() else {
        Issue.record("no mount namespaces here: not tried with a full disk", severity: .warning)
        return
      }
      let cluster = try await ClusterUnderTest(1, hasEdge: false, [Self.stream])
      try await cluster.join(
        2, small.settings.map { $0.replacing("calls.jsonl }", with: "calls.jsonl, stream: true }") }, binary: small.program)
      let (first, second) = (cluster.nodes[0], cluster.nodes[1])
      try small.show(to: second)
      let desk = try await Peers.ownPhone(second, device: "desk", ["--answer", "--answer-after", "0.1", "--calls", "2"])
      let cell = try await Peers.ownPhone(
        first, user: "bob", device: "cell", ["--answer", "--answer-after", "0.1", "--calls", "1"])
      let running = try cluster.call(to: second, ["-d", "2500"])
      #expect(await eventually(within: 10) { try second.sum("trunkline_calls", "connected") == 1 })
      try await small.fill()
      #expect(try await running.finish(within: 20) == 0, "the call that ran was touched: \(running.text.suffix(6_000))")
      let next = try cluster.call(to: second, ["-d", "100"])
      #expect(try await next.finish(within: 20) == 0, "\(next.text.suffix(6_000))")
      let other = try cluster.call(to: first, number: "+15551230002", ["-d", "100"])
      #expect(try await other.finish(within: 20) == 0, "\(other.text.suffix(6_000))")
      #expect(await eventually(within: 5) { try second.metric("trunkline_records_waiting") ?? 0 >= 1 })
      #expect(try second.sum("trunkline_cluster_state", "up") == 1, "its lease is no file")
      #expect(try first.sum("trunkline_cluster_nodes", "living") == 2)
      #expect(try second.get("/readyz").status == 503 && first.get("/readyz").status == 200, "edges send it no new calls")
      let live = try first.get("/v1/cluster/calls").body
      #expect(live.contains("\"calls\":[]"), "nothing of a call is left: \(live)")
      try small.free()
      #expect(await eventually(within: 15) { try second.sum("trunkline_records_streamed_total") == 2 })
      #expect(await eventually(within: 15) { try first.sum("trunkline_records_streamed_total") == 1 })
      let streamed = try await follow(cluster, 3)
      #expect(Set(streamed).count == 3, "\(streamed)")
      for phone in [desk, cell] { #expect(try await phone.finish(within: 10) == 0, "\(phone.text)") }
      _ = try await cluster.records(3)
      try await cluster.finish()
    }

    /// Deploy/records/rsyslog.conf within the essentials of Debian's rsyslog.conf, with folders and a collector of the test.
    private func rsyslog(_ folder: String, reading file: String, collector: UInt16) throws -> Spawned {
      let part = try String(contentsOfFile: Surroundings.package + "/Deploy/records/rsyslog.conf", encoding: .utf8)
        .replacing("/var/lib/trunkline-records/records.jsonl", with: file).replacing("/var/log/trunkline", with: folder + "/days")
        .replacing("192.0.2.20", with: "127.0.0.1").replacing("port=\"6514\"", with: "port=\"\(collector)\"")
      try part.write(toFile: folder + "/trunkline.conf", atomically: true, encoding: .utf8)
      try FileManager.default.createDirectory(atPath: folder + "/spool", withIntermediateDirectories: true)
      try """
      module(load="imuxsock" sysSock.use="off")
      $WorkDirectory \(folder)/spool
      $IncludeConfig \(folder)/trunkline.conf
      *.* -\(folder)/syslog

      """.write(toFile: folder + "/rsyslog.conf", atomically: true, encoding: .utf8)
      return try Spawned(
        "rsyslogd", Surroundings.rsyslog ?? "rsyslogd", ["-n", "-iNONE", "-f", folder + "/rsyslog.conf"], in: folder)
    }

    @Test(
      .enabled(
        if: Surroundings.isRequired || (Surroundings.rsyslog != nil && Surroundings.logrotate != nil),
        "no rsyslog or logrotate: run Scripts/install test"))
    func `rsyslog forwards the records of two nodes to files and a collector, over log rotation and restarts`() async throws {
      let cluster = try await ClusterUnderTest(2, hasEdge: false, [Self.stream])
      let folder = cluster.nodes[0].folder
      let file = folder + "/records.jsonl"
      // the unit's command, with the test's folder and program
      let unit = try String(contentsOfFile: Surroundings.package + "/Deploy/records/trunkline-records.service", encoding: .utf8)
      let line = try #require(unit.firstMatch(of: /ExecStart=\/bin\/sh -c '(.*)'/)?.1)
      let command = line.replacing("/usr/bin/trunkline", with: Surroundings.trunkline)
        .replacing("/etc/trunkline/trunkline.yaml", with: "gateway.yaml")
      func service() throws -> Spawned { try Spawned("records", "/bin/sh", ["-c", String(command)], in: folder) }
      var follower = try service()
      let port = try FreePorts.tcp()
      let collector = try Peers.python("collector", "collector.py", ["\(port)", folder + "/collected"], cluster.nodes[0])
      _ = try await collector.event("listening")
      let daemon = try rsyslog(folder, reading: file, collector: port)
      var calls = 0.0
      func call(_ index: Int) async throws {
        let caller = try cluster.call(to: cluster.nodes[index], number: "+1555123000\(index + 1)", ["-d", "100"])
        #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
        calls += 1
      }
      func collected() -> String { (try? String(contentsOfFile: folder + "/collected", encoding: .utf8)) ?? "" }
      func arrived() async {
        let wanted = Int(calls)
        #expect(
          await eventually(within: 20) { Set(Self.calls(collected())).count == wanted }, "\(collected())\n\(daemon.text)")
      }
      let desk = try await Peers.ownPhone(
        cluster.nodes[0], device: "desk", ["--answer", "--answer-after", "0.1", "--calls", "3"])
      let cell = try await Peers.ownPhone(
        cluster.nodes[1], user: "bob", device: "cell", ["--answer", "--answer-after", "0.1", "--calls", "3"])
      try await call(0)
      try await call(1)
      await arrived()
      // killed, while calls continue
      follower.signal(SIGKILL)
      try await follower.finish(within: 5)
      try await call(0)
      follower = try service()
      await arrived()
      let restart = "touch \(folder)/restarted"
      try await rotate(
        rotation(of: "/var/lib/trunkline-records/records.jsonl", for: file, restart: restart), in: folder)
      #expect(FileManager.default.fileExists(atPath: folder + "/restarted"))
      // as systemd stops it
      follower.signal(SIGTERM)
      try await follower.finish(within: 5)
      try await call(1)
      follower = try service()
      try await call(0)
      try await call(1)
      await arrived()
      for phone in [desk, cell] { #expect(try await phone.finish(within: 10) == 0, "\(phone.text)") }
      let written = Set(cluster.nodes.flatMap(\.records).compactMap { $0["call"] as? String })
      #expect(written.count == 6 && written == Set(Self.calls(collected())))
      let days = try FileManager.default.contentsOfDirectory(atPath: folder + "/days")
      let lines = try days.map { try String(contentsOfFile: folder + "/days/" + $0, encoding: .utf8) }.joined()
      #expect(days.allSatisfy { $0.firstMatch(of: /^calls-\d{4}-\d\d-\d\d\.jsonl$/) != nil } && Set(Self.calls(lines)) == written)
      let system = (try? String(contentsOfFile: folder + "/syslog", encoding: .utf8)) ?? ""
      #expect(!system.contains("\"call\""), "records are no lines of the system's log: \(system.prefix(500))")
      for process in [follower, daemon, collector] {
        process.signal(SIGTERM)
        _ = try await process.finish(within: 20)
      }
      try await cluster.finish()
    }
  }
}
