import Foundation
import Testing

extension Interop {
  /// The disk of a running gateway fails: calls ring, run and end, every one gets its record, and an operator sees the cause.
  @Suite(.enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct StoreFaultTests {
    @Test func `the store is locked by another program: calls ring and run, registrations wait, and all is on disk afterwards`()
      async throws
    {
      let service = try await PushServiceUnderTest(.h2)
      let gateway = try await service.gateway()
      let bob = try await Peers.ownPhone(gateway, user: "bob", ["--answer", "--calls", "1"])
      let running = try Peers.caller(gateway, "call", to: "+15551230002", ["-d", "4000"])
      #expect(await eventually(within: 10) { try gateway.sum("trunkline_calls", "connected") == 1 })
      let lock = try Peers.python("lock", "store_lock.py", [gateway.folder + "/trunkline.db"], gateway)
      _ = try await lock.event("locked")

      let app = try await service.killedApp(gateway, ["--calls", "1", "--answer-after", "0.2"])
      let caller = try Peers.caller(gateway, "call", ["-d", "500"])
      try await service.deliver(to: app)
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000)) \(gateway.process.text.suffix(3_000))")
      _ = try await app.finish(within: 10)
      #expect(await eventually(within: 5) { try gateway.metric("trunkline_store_failing") == 1 })
      let ready = try gateway.get("/readyz")
      #expect(ready.status == 503 && ready.body.contains("locked by another process"), "\(ready)")
      #expect(try gateway.metric("trunkline_device_changes_waiting") == 1)
      #expect(try gateway.sum("trunkline_journal_late_total") == 0, "journal entries are in a file of their own")
      #expect(try await running.finish(within: 20) == 0, "the call that ran was touched: \(running.text.suffix(6_000))")
      #expect(gateway.process.text.contains("find the process that holds the file"))

      #expect(try await bob.finish(within: 10) == 0)
      lock.closeInput()
      try await lock.finish(within: 5)
      #expect(await eventually(within: 5) { try gateway.metric("trunkline_store_failing") == 0 })
      #expect(try gateway.get("/readyz").status == 200 && gateway.metric("trunkline_records_lost_total") == 0)
      _ = try await gateway.records(2)
      #expect(gateway.endReasons == ["remoteHangup", "remoteHangup"])
      // calls accepted while the file was locked survive the process
      gateway.process.signal(SIGKILL)
      try await gateway.process.finish(within: 5)
      try await gateway.restart()
      #expect(gateway.records.count == 2, "no call became an orphan")
      let devices = try Spawned(
        "devices", Surroundings.trunkline, ["devices", "list", "--config", gateway.folder + "/gateway.yaml"], in: gateway.folder)
      #expect(try await devices.finish(within: 10) == 0 && devices.text.contains("cell"), "\(devices.text)")
      gateway.process.signal(SIGTERM)
      #expect(try await gateway.process.finish(within: 10) == 0)
      try await service.stop()
    }

    @Test func `the disk is full: calls ring, run and end, their records wait in memory and are written once there is room`()
      async throws
    {
      guard let small = try await SmallDisk() else {
        Issue.record("no mount namespaces here: not tried with a full disk", severity: .warning)
        return
      }
      let gateway = try await GatewayUnderTest(small.settings, binary: small.program)
      try small.show(to: gateway)
      let phone = try await Peers.ownPhone(gateway, ["--answer", "--calls", "3"])
      let running = try Peers.caller(gateway, "call", ["-d", "2500"])
      #expect(await eventually(within: 10) { try gateway.sum("trunkline_calls", "connected") == 1 })

      try await small.fill()
      #expect(try await running.finish(within: 20) == 0, "the call that ran was touched")
      let next = try Peers.caller(gateway, "call", ["-d", "300"])
      #expect(try await next.finish(within: 20) == 0, "\(next.text.suffix(6_000)) \(gateway.process.text.suffix(3_000))")
      #expect(await eventually(within: 5) { try gateway.metric("trunkline_records_waiting") ?? 0 >= 1 })
      #expect(try gateway.metric("trunkline_store_failing") == 1)
      let ready = try gateway.get("/readyz")
      #expect(ready.status == 503 && ready.body.contains("disk is full"), "\(ready)")
      #expect(gateway.records.count < 2)

      try small.free()
      _ = try await gateway.records(2)
      #expect(await eventually(within: 5) { try gateway.get("/readyz").status == 200 })
      let last = try Peers.caller(gateway, "call", ["-d", "300"])
      #expect(try await last.finish(within: 20) == 0, "\(last.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0)
      _ = try await gateway.records(3)
      #expect(try gateway.metric("trunkline_records_lost_total") == 0)
      try await gateway.account(calls: [running.callID, next.callID, last.callID])
      gateway.process.signal(SIGTERM)
      #expect(try await gateway.process.finish(within: 10) == 0)
    }
  }
}
