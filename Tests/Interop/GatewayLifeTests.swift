import Foundation
import Glibc
import Testing

extension Interop {
  /// Start, reload, drain, kill.
  @Suite(.enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct GatewayLifeTests {
    @Test func `a killed process leaves no call without an end`() async throws {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1"])
      let caller = try Peers.caller(gateway, "call", ["-d", "30000"])
      _ = try await phone.event("call.connected")
      gateway.process.signal(SIGKILL)
      try await gateway.process.finish(within: 5)
      #expect(gateway.records.isEmpty)
      try await gateway.restart()
      let records = try await gateway.records(1)
      let end = try #require(records.first?["end"] as? [String: Any])
      #expect(end["reason"] as? String == "gatewayRestart")
      let times = try #require(records.first?["times"] as? [String: Int])
      #expect(try #require(times["connected"]) >= times["start", default: .max], "\(times)")
      #expect((records.first?["sipCallId"] as? String)?.contains("@127.0.0.1") == true)
      caller.signal(SIGKILL)
      try await caller.finish(within: 5)
      try await phone.finish(within: 10)
      gateway.process.signal(SIGTERM)
      #expect(try await gateway.process.finish(within: 10) == 0)
      #expect(gateway.records.count == 1)
    }

    @Test func `standard streams that are closed at the start are filled, and a call has its record`() async throws {
      let folder = FileManager.default.temporaryDirectory.appendingPathComponent("closed-\(UUID().uuidString.prefix(8))").path
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(atPath: folder) }
      let gateway = try await GatewayUnderTest(
        binary: try Surroundings.wrapped("sh -c 'exec \"$@\" <&- >&- 2>&-' sh", in: folder))
      for fd in 0...2 {
        let target = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(gateway.process.pid)/fd/\(fd)")
        #expect(target == "/dev/null", "descriptor \(fd)")
      }
      #expect(try gateway.get("/readyz").body.contains("standard error was closed"))
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      let caller = try Peers.caller(gateway, "call", ["-d", "300"])
      #expect(try await caller.finish(within: 15) == 0, "\(caller.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      _ = try await gateway.records(1)
      try await gateway.finish()
    }

    @Test(.enabled(if: Surroundings.isRequired || getuid() == 0, "no root"))
    func `as PID 1 of a container it leaves no zombies, and SIGTERM ends it`() async throws {
      let folder = FileManager.default.temporaryDirectory.appendingPathComponent("first-\(UUID().uuidString.prefix(8))").path
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(atPath: folder) }
      // two orphans: one that ends before the gateway looks after them, and one behind that
      let orphans = "(sleep 0.01 &); (sleep 3 &); exec \"$@\""
      let gateway = try await GatewayUnderTest(
        binary: try Surroundings.wrapped("unshare --pid --fork --kill-child --mount-proc sh -c '\(orphans)' sh", in: folder))
      func children(_ pid: pid_t) -> [pid_t] {
        ((try? String(contentsOfFile: "/proc/\(pid)/task/\(pid)/children", encoding: .utf8)) ?? "").split(separator: " ")
          .compactMap { pid_t($0) }
      }
      let first = try #require(children(gateway.process.pid).first)
      #expect(await eventually(within: 10) { children(first).isEmpty }, "\(children(first))")
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      let caller = try Peers.caller(gateway, "call", ["-d", "300"])
      #expect(try await caller.finish(within: 15) == 0, "\(caller.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      _ = try await gateway.records(1)
      #expect(kill(first, SIGTERM) == 0)
      #expect(try await gateway.process.finish(within: 10) == 0, "\(gateway.process.text)")
    }

    @Test(.enabled(if: Surroundings.isRequired || getuid() == 0, "no root"))
    func `without /proc it serves all the same`() async throws {
      let folder = FileManager.default.temporaryDirectory.appendingPathComponent("noproc-\(UUID().uuidString.prefix(8))").path
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(atPath: folder) }
      let gateway = try await GatewayUnderTest(
        binary: try Surroundings.wrapped("unshare --mount sh -c 'umount -l /proc; exec \"$@\"' sh", in: folder))
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      let caller = try Peers.caller(gateway, "call", ["-d", "300"])
      #expect(try await caller.finish(within: 15) == 0, "\(caller.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      _ = try await gateway.records(1)
      try await gateway.finish()
    }

    @Test func `SIGTERM waits for the call, refuses new ones, and ends with it`() async throws {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1"])
      let caller = try Peers.caller(gateway, "call", ["-d", "4000"])
      _ = try await phone.event("call.connected")
      gateway.process.signal(SIGTERM)
      #expect(await eventually(within: 3) { try gateway.get("/readyz").status == 503 })
      #expect(try gateway.get("/readyz").body.contains("draining"))
      let refused = try Peers.caller(gateway, "refused_503")
      #expect(try await refused.finish(within: 10) == 0, "\(refused.text.suffix(6_000))")
      #expect(gateway.process.isRunning)
      #expect(try await caller.finish(within: 20) == 0, "the call was cut")
      #expect(try await gateway.process.finish(within: 10) == 0)
      _ = try await phone.event("closed") { $0["code"] as? Int == 1012 }
      try await phone.finish(within: 10)
      #expect(gateway.records.count == 1)
      #expect((gateway.records.first?["end"] as? [String: Any])?["reason"] as? String == "remoteHangup")
    }

    @Test func `a second SIGTERM ends the calls, each with its record`() async throws {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1"])
      let caller = try Peers.caller(gateway, "call_until_bye")
      _ = try await phone.event("call.connected")
      gateway.process.signal(SIGTERM)
      #expect(await eventually(within: 3) { try gateway.get("/readyz").status == 503 })
      gateway.process.signal(SIGTERM)
      #expect(try await caller.finish(within: 10) == 0, "no BYE came")
      #expect(try await gateway.process.finish(within: 10) == 0)
      try await phone.finish(within: 10)
      #expect(gateway.records.count == 1)
    }

    @Test func `SIGHUP brings a new user without touching the call`() async throws {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1"])
      let caller = try Peers.caller(gateway, "call", ["-d", "4000"])
      _ = try await phone.event("call.connected")
      let path = gateway.folder + "/gateway.yaml"
      let old = try String(contentsOfFile: path, encoding: .utf8)
      try old.replacing("{ id: bob,", with: "{ id: carol, numbers: [\"+15551230003\"] }, { id: bob,")
        .write(toFile: path, atomically: true, encoding: .utf8)
      gateway.process.signal(SIGHUP)
      #expect(await eventually(within: 5) { gateway.process.text.contains("configuration read again") })
      let carol = try await Peers.phone(gateway, user: "carol", device: "c1", ["--answer-after", "0.1", "--calls", "1"])
      let second = try Peers.caller(gateway, "call", to: "+15551230003", ["-d", "500"])
      #expect(try await second.finish(within: 20) == 0, "\(second.text.suffix(6_000))")
      #expect(try await caller.finish(within: 20) == 0, "the call was touched")
      try await carol.finish(within: 10)
      try (old + "nonsense: 1\n").write(toFile: path, atomically: true, encoding: .utf8)
      gateway.process.signal(SIGHUP)
      #expect(await eventually(within: 5) { gateway.process.text.contains("configuration refused") })
      phone.type("quit")
      try await phone.finish(within: 10)
      try await gateway.finish()
    }

    @Test func `a second gateway on the same port or store says so and ends`() async throws {
      let gateway = try await GatewayUnderTest()
      let second = try Spawned(
        "second", Surroundings.trunkline, ["serve", "--config", gateway.folder + "/gateway.yaml"], in: gateway.folder)
      #expect(try await second.finish(within: 10) == 1)
      #expect(second.text.contains("cannot bind udp 127.0.0.1:\(gateway.sip)"), "\(second.text)")
      #expect(second.text.contains("Address already in use"), "\(second.text)")
      #expect(try gateway.get("/readyz").status == 200, "the first is not disturbed")
      try await gateway.finish()
    }

    @Test func `a wrong configuration ends with 2 and names every problem`() async throws {
      let gateway = try await GatewayUnderTest()
      let path = gateway.folder + "/wrong.yaml"
      try "listen: { sip: { udp: nowhere } }\nmedia: { threads: 0 }\n".write(toFile: path, atomically: true, encoding: .utf8)
      let check = try Spawned("check", Surroundings.trunkline, ["serve", "--check", "--config", path], in: gateway.folder)
      #expect(try await check.finish(within: 10) == 2)
      #expect(check.text.split(separator: "\n").filter { $0.hasPrefix("\(path):") }.count == 3, "\(check.text)")
      #expect(check.text.contains("\n  listen: { sip: { udp: nowhere } }\n                        ^\n"), "\(check.text)")
      #expect(check.text.contains("\(path):2:19: media.threads: 0 is outside 1...64"), "\(check.text)")
      try await gateway.finish()
    }

    @Test func `metrics are valid and the admin endpoint shows and ends a call`() async throws {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      let caller = try Peers.caller(gateway, "call_until_bye")
      _ = try await phone.event("call.connected")
      #expect(try gateway.get("/healthz").status == 200)
      if FileManager.default.isExecutableFile(atPath: "/usr/bin/promtool") {
        let metrics = gateway.folder + "/metrics"
        try gateway.get("/metrics").body.write(toFile: metrics, atomically: true, encoding: .utf8)
        let promtool = try Spawned("promtool", "/bin/sh", ["-c", "promtool check metrics < \(metrics)"], in: gateway.folder)
        #expect(try await promtool.finish(within: 10) == 0, "\(promtool.text)")
      }
      func calls(_ arguments: [String]) async throws -> String {
        let command = try Spawned(
          "calls", Surroundings.trunkline, ["calls"] + arguments + ["--admin", "127.0.0.1:\(gateway.admin)"], in: gateway.folder)
        #expect(try await command.finish(within: 10) == 0, "\(command.text)")
        return command.text
      }
      let list = try await calls(["list"])
      #expect(list.contains("connected") && list.contains("alice"), "\(list)")
      let id = try #require(list.split(separator: "\n").last?.split(separator: " ").first.map(String.init))
      #expect(try await calls(["show", id]).contains("\"trunk\":\"carrier\""))
      _ = try await calls(["hangup", id])
      #expect(try await caller.finish(within: 10) == 0, "no BYE came")
      #expect(try await phone.finish(within: 10) == 0)
      try await gateway.finish()
    }
  }
}
