import Foundation
import Glibc
import Testing

extension Interop {
  /// Exactly one record per call, whatever happens to the process or its disk.
  @Suite(.enabled(if: Surroundings.missing == nil, "\(Surroundings.missing ?? "")"), .serialized) struct RecordTests {
    @Test func `kill -9 with a ringing and a connected call: each has one record, finished calls keep theirs`() async throws {
      let gateway = try await GatewayUnderTest()
      let trunk = try RawTrunk(gateway)
      let finished = trunk.request("INVITE", to: "+19990000000", sdp: RawTrunk.offer())
      #expect(trunk.ask(finished)?.code == 404)
      _ = try await gateway.records(1)
      let alice = try await Peers.phone(gateway, ["--answer-after", "0.1"])
      let bob = try await Peers.phone(gateway, user: "bob", device: "d2")
      let connected = try Peers.caller(gateway, "call", ["-d", "30000"])
      let ringing = try Peers.caller(gateway, "call", to: "+15551230002", ["-d", "30000"])
      _ = try await alice.event("call.connected")
      _ = try await bob.event("prepared")
      gateway.process.signal(SIGKILL)
      try await gateway.process.finish(within: 5)
      for peer in [connected, ringing, alice, bob] {
        peer.signal(SIGKILL)
        try await peer.finish(within: 5)
      }
      #expect(gateway.endReasons == ["notFound"], "a record before its time")
      // A line that the dying process did not finish.
      let file = try #require(FileHandle(forWritingAtPath: gateway.folder + "/calls.jsonl"))
      try file.seekToEnd()
      try file.write(contentsOf: Data(#"{"call":"half"#.utf8))
      try file.close()

      for _ in 0..<2 {
        try await gateway.restart()
        let records = try await gateway.records(3)
        #expect(gateway.endReasons.sorted() == ["gatewayRestart", "gatewayRestart", "notFound"])
        #expect(records.count == 3)
        #expect(Set(records.compactMap { $0["sipCallId"] as? String }) == [finished.callID, connected.callID, ringing.callID])
        gateway.process.signal(SIGTERM)
        #expect(try await gateway.process.finish(within: 10) == 0)
      }
      try await gateway.restart()
      let next = try RawTrunk(gateway)
      let request = next.request("INVITE", to: "+19990000000", sdp: RawTrunk.offer())
      #expect(next.ask(request)?.code == 404)
      #expect(try await gateway.records(4).count == 4)
      gateway.process.signal(SIGTERM)
      #expect(try await gateway.process.finish(within: 10) == 0)
    }

    enum Disk: String, CaseIterable { case full, folder }

    /// A full disk (a device that says so) and a path that cannot be a file: calls go on, their records wait, nothing is lost or
    /// doubled.
    @Test(arguments: Disk.allCases)
    func `a records file that cannot be written: records wait, readyz says why, all are written later`(disk: Disk) async throws {
      let gateway = try await GatewayUnderTest()
      let path = gateway.folder + "/calls.jsonl"
      let trunk = try RawTrunk(gateway)
      var calls: [String] = []
      func call() {
        let request = trunk.request("INVITE", to: "+19990000000", sdp: RawTrunk.offer())
        #expect(trunk.ask(request)?.code == 404)
        calls.append(request.callID)
      }
      call()
      _ = try await gateway.records(1)
      try FileManager.default.moveItem(atPath: path, toPath: path + ".kept")
      switch disk {
      case .full: try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "/dev/full")
      case .folder: try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
      }
      for _ in 0..<5 { call() }
      #expect(await eventually(within: 5) { try gateway.get("/readyz").status == 503 })
      let page = try gateway.get("/readyz").body
      #expect(page.contains("calls.jsonl"), "\(page)")
      #expect(page.contains(disk == .full ? "the disk is full" : "Is a directory"), "\(page)")
      #expect(await eventually(within: 5) { try gateway.metric("trunkline_records_waiting") == 5 })
      #expect(try gateway.get("/healthz").status == 200)
      #expect(trunk.ask(trunk.request("OPTIONS"))?.code == 200, "calls go on")

      try FileManager.default.removeItem(atPath: path)
      try FileManager.default.moveItem(atPath: path + ".kept", toPath: path)
      #expect(await eventually(within: 5) { try gateway.get("/readyz").status == 200 })
      #expect(try gateway.metric("trunkline_records_waiting") == 0)
      #expect(try gateway.metric("trunkline_records_lost_total") == 0)
      call()
      try await gateway.finish(calls: calls)
    }

    /// A file system of 512 KB that is really full, the journal's database on it too. Only root can mount one.
    @Test(.enabled(if: geteuid() == 0 && FileManager.default.isExecutableFile(atPath: "/bin/mount")))
    func `a disk that is full for journal and records: calls go on, and later every record is there`() async throws {
      let disk = NSTemporaryDirectory() + "/trunkline-disk-\(UUID().uuidString.prefix(8))"
      try FileManager.default.createDirectory(atPath: disk, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(atPath: disk) }
      let mount = try Spawned(
        "mount", "/bin/mount", ["-t", "tmpfs", "-o", "size=512k", "none", disk], in: NSTemporaryDirectory())
      guard try await mount.finish(within: 5) == 0 else { return }  // a container that may not mount
      defer { umount2(disk, Int32(MNT_DETACH)) }
      let gateway = try await GatewayUnderTest(["store: { sqlite: \(disk)/t.db }", "records: { file: \(disk)/calls.jsonl }"])
      let link = gateway.folder + "/calls.jsonl"
      try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: disk + "/calls.jsonl")
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      let fill = open(disk + "/fill", O_WRONLY | O_CREAT, 0o600)
      let zeros = [UInt8](repeating: 0, count: 1_024)
      while write(fill, zeros, zeros.count) == zeros.count {}
      close(fill)
      let caller = try Peers.caller(gateway, "call", ["-d", "500"])
      #expect(try await caller.finish(within: 20) == 0, "a call needs no disk: \(caller.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0)
      let trunk = try RawTrunk(gateway)
      let calls = (0..<20).map { _ in trunk.request("INVITE", to: "+19990000000", sdp: RawTrunk.offer()) }
      for request in calls { #expect(trunk.ask(request)?.code == 404) }
      #expect(await eventually(within: 5) { try gateway.get("/readyz").status == 503 })
      #expect(await eventually(within: 5) { try gateway.metric("trunkline_records_waiting") == 21 })
      unlink(disk + "/fill")
      #expect(await eventually(within: 5) { try gateway.get("/readyz").status == 200 })
      try await gateway.finish(calls: [caller.callID] + calls.map(\.callID))
    }

    @Test func `a records file that was moved away by log rotation is made anew`() async throws {
      let gateway = try await GatewayUnderTest()
      let path = gateway.folder + "/calls.jsonl"
      let trunk = try RawTrunk(gateway)
      let before = trunk.request("INVITE", to: "+19990000000", sdp: RawTrunk.offer())
      #expect(trunk.ask(before)?.code == 404)
      _ = try await gateway.records(1)
      try FileManager.default.moveItem(atPath: path, toPath: path + ".1")
      let after = trunk.request("INVITE", to: "+19990000000", sdp: RawTrunk.offer())
      #expect(trunk.ask(after)?.code == 404)
      #expect(try await gateway.records(1).first?["sipCallId"] as? String == after.callID)
      try (try String(contentsOfFile: path + ".1", encoding: .utf8) + String(contentsOfFile: path, encoding: .utf8))
        .write(toFile: path, atomically: false, encoding: .utf8)
      try await gateway.finish(calls: [before.callID, after.callID])
    }
  }
}
