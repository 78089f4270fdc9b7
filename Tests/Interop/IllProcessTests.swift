import Foundation
import Testing

extension Interop {
  /// A gateway that crashes, hangs or is stopped: it reports this, ends where it must, and continues where it can.
  /// docs/design/health.md.
  @Suite(.enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct IllProcessTests {
    @Test(arguments: [("SIGSEGV", SIGSEGV), ("SIGILL", SIGILL), ("SIGABRT", SIGABRT), ("SIGQUIT", SIGQUIT)])
    func `a crash ends the process at once, and the next one is ready in 2 s with a record for the call`(
      name: String, signal: Int32
    ) async throws {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1"])
      let caller = try Peers.caller(gateway, "call", ["-d", "30000"])
      _ = try await phone.event("call.connected")
      let crashed = ContinuousClock.now
      gateway.process.signal(signal)
      // The runtime's own handler would take half a minute, or for ever.
      #expect(try await gateway.process.finish(within: 5) == -signal)
      let ended = ContinuousClock.now - crashed
      if ended > .milliseconds(200) { Issue.record("ended after \(ended)", severity: .warning) }
      if signal != SIGQUIT { #expect(gateway.process.text.contains("trunkline: \(name) in thread "), "\(gateway.process.text)") }
      #expect(gateway.records.isEmpty)

      // as a supervisor does
      let again = ContinuousClock.now
      try await gateway.restart()
      let took = ContinuousClock.now - again
      if took > .seconds(2) { Issue.record("ready after \(took)", severity: .warning) }
      print("\(name): ended after \(ended), ready \(took) later")
      _ = try await gateway.records(1)
      #expect(gateway.endReasons == ["gatewayRestart"])
      caller.signal(SIGKILL)
      try await caller.finish(within: 5)
      try await phone.finish(within: 10)
      let bob = try await Peers.phone(gateway, user: "bob", device: "d2", ["--answer-after", "0.1", "--calls", "1"])
      let next = try Peers.caller(gateway, "call", to: "+15551230002", ["-d", "300"])
      #expect(try await next.finish(within: 20) == 0, "\(next.text.suffix(6_000))")
      #expect(try await bob.finish(within: 10) == 0)
      _ = try await gateway.records(2)
      gateway.process.signal(SIGTERM)
      #expect(try await gateway.process.finish(within: 10) == 0)
      #expect(gateway.records.count == 2, "one record a call")
    }

    @Test(arguments: ["control", "media-0", "dtls-0"])
    func `a thread that calls need hangs: healthz names it, then the process ends by SIGABRT with one line`(thread: String)
      async throws
    {
      let hang = try await Hang()
      let gateway = try await GatewayUnderTest(binary: hang.program)
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1"])
      let caller = try Peers.caller(gateway, "call", ["-d", "60000"])
      _ = try await phone.event("call.connected")
      #expect(try gateway.get("/healthz").status == 200)
      #expect(try gateway.sum("trunkline_thread_heartbeat_age_seconds", "\"\(thread)\"") < 1)
      try hang.begin(thread, seconds: 600)
      #expect(await eventually(within: 5) { try gateway.get("/healthz").status == 503 })
      #expect(try gateway.get("/healthz").body.contains("\"name\":\"\(thread)\""))
      #expect(try gateway.sum("trunkline_thread_heartbeat_age_seconds", "\"\(thread)\"") > 2)
      #expect(try await gateway.process.finish(within: 8) == -SIGABRT)
      let lines = gateway.process.text.split(separator: "\n").filter { $0.hasPrefix("trunkline: ") }
      #expect(lines.count == 1 && lines[0].contains("thread \(thread) has hung for 5 s"), "\(lines)")
      try hang.end()
      try await gateway.restart()
      _ = try await gateway.records(1)
      #expect(gateway.endReasons == ["gatewayRestart"])
      for peer in [caller, phone] { peer.signal(SIGKILL) }
      for peer in [caller, phone] { try await peer.finish(within: 5) }
      gateway.process.signal(SIGTERM)
      #expect(try await gateway.process.finish(within: 10) == 0)
    }

    @Test
    func `the disk hangs for 10 s: readyz names the store, healthz does not, calls ring, run and end, and no record is lost`()
      async throws
    {
      let hang = try await Hang()
      let gateway = try await GatewayUnderTest(binary: hang.program)
      let bob = try await Peers.phone(gateway, user: "bob", device: "d2", ["--answer-after", "0.1", "--calls", "1"])
      let running = try Peers.caller(gateway, "call", to: "+15551230002", ["-d", "14000"])
      _ = try await bob.event("call.connected")
      try hang.begin("store", seconds: 10)
      let alice = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "2"])
      let first = try Peers.caller(gateway, "call", ["-d", "300"])
      #expect(try await first.finish(within: 20) == 0, "\(first.text.suffix(6_000)) \(gateway.process.text.suffix(3_000))")
      #expect(await eventually(within: 5) { try gateway.get("/readyz").status == 503 })
      #expect(try gateway.get("/readyz").body.contains("\"name\":\"thread store\""))
      #expect(try gateway.get("/healthz").status == 200, "a restart mends no disk, and would end calls")
      #expect(gateway.records.isEmpty, "the disk hangs")
      let second = try Peers.caller(gateway, "call", ["-d", "300"])
      #expect(try await second.finish(within: 20) == 0, "\(second.text.suffix(6_000))")
      #expect(try await running.finish(within: 25) == 0, "the call that ran was touched: \(running.text.suffix(6_000))")
      for phone in [bob, alice] { #expect(try await phone.finish(within: 10) == 0) }
      #expect(await eventually(within: 12) { try gateway.get("/readyz").status == 200 })
      let records = try await gateway.records(3)
      #expect(gateway.endReasons == ["remoteHangup", "remoteHangup", "remoteHangup"], "\(records)")
      #expect(gateway.process.text.contains("a thread responds again"))
      try await gateway.finish(calls: [running, first, second].map(\.callID))
    }

    @Test func `the whole process is stopped for 20 s: no thread is taken for hung, and no call is lost`() async throws {
      let gateway = try await GatewayUnderTest()
      let bob = try await Peers.phone(gateway, user: "bob", device: "d2", ["--answer-after", "0.1", "--calls", "1"])
      let audio = try await Peers.trunkAudio(gateway)
      let running = try Peers.caller(gateway, "call", to: "+15551230002", audio: audio.port, ["-d", "30000"])
      _ = try await bob.event("call.connected")
      _ = try await audio.peer.event("first_packet")
      let alice = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      gateway.process.signal(SIGSTOP)
      // Packets meanwhile wait in the sockets.
      let late = try Peers.caller(gateway, "call", ["-d", "300"])
      try await Task.sleep(for: .seconds(20))
      gateway.process.signal(SIGCONT)
      #expect(try gateway.get("/healthz").status == 200)
      #expect(
        try await late.finish(within: 20) == 0,
        "\(late.text.suffix(6_000)) \(gateway.process.text.suffix(3_000)) \(sippErrors(gateway))")
      #expect(try await running.finish(within: 30) == 0, "\(running.text.suffix(6_000)) \(gateway.process.text.suffix(3_000))")
      for phone in [bob, alice] { #expect(try await phone.finish(within: 10) == 0) }
      try await audio.peer.finish(within: 10)
      #expect(!gateway.process.text.contains("a thread hangs"))
      _ = try await gateway.records(2)
      #expect(gateway.endReasons == ["remoteHangup", "remoteHangup"])
      try await gateway.finish(calls: [running, late].map(\.callID))
    }

    private func sippErrors(_ gateway: GatewayUnderTest) -> String {
      (try? String(contentsOfFile: gateway.folder + "/sipp-errors.log", encoding: .utf8)) ?? ""
    }

    @Test(arguments: ["store", "control"])
    func `SIGTERM ends the process 2 s after the drain time, whatever hangs, and the next one has the record`(thread: String)
      async throws
    {
      let hang = try await Hang()
      let gateway = try await GatewayUnderTest(["timers: { drain: 1s }"], binary: hang.program)
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1"])
      let caller = try Peers.caller(gateway, "call_until_bye")
      _ = try await phone.event("call.connected")
      try hang.begin(thread, seconds: 600)
      let asked = ContinuousClock.now
      gateway.process.signal(SIGTERM)
      #expect(try await gateway.process.finish(within: 8) == 1)
      let took = ContinuousClock.now - asked
      if took > .milliseconds(3_500) { Issue.record("ended after \(took)", severity: .warning) }
      let lines = gateway.process.text.split(separator: "\n").filter { $0.hasPrefix("trunkline: ") }
      #expect(lines.count == 1 && lines[0].contains("hung: \(thread)"), "\(lines)")
      try hang.end()
      for peer in [caller, phone] { peer.signal(SIGKILL) }
      for peer in [caller, phone] { try await peer.finish(within: 5) }
      try await gateway.restart()
      #expect(try await gateway.records(1).count == 1)
      gateway.process.signal(SIGTERM)
      #expect(try await gateway.process.finish(within: 10) == 0)
    }
  }
}

/// A gateway whose threads hang on a test's request, by a library that is compiled and preloaded here.
final class Hang: Sendable {
  let program: String
  private let folder: String

  init() async throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("trunkline-hang-\(UUID().uuidString.prefix(8))").path
    program = folder + "/trunkline"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let made = try Spawned(
      "cc", "/usr/bin/env", ["cc", "-shared", "-fPIC", "-O1", "-o", "hang.so", Surroundings.sources + "/peers/hang.c"], in: folder
    )
    guard try await made.finish(within: 20) == 0 else { throw Spawned.Failure(description: made.text) }
    try "#!/bin/sh\nexec env LD_PRELOAD=\(folder)/hang.so HANG=\(folder)/hang \(Surroundings.trunkline) \"$@\"\n".write(
      toFile: program, atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program)
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  /// The thread hangs once in its next system call that the library covers, for so long.
  func begin(_ thread: String, seconds: Int) throws {
    try "\(thread) \(seconds)\n".write(toFile: folder + "/hang", atomically: true, encoding: .utf8)
  }

  /// Removes the request, for a process that is started later.
  func end() throws { try FileManager.default.removeItem(atPath: folder + "/hang") }
}
