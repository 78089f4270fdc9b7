import Foundation
import Testing

extension Interop {
  /// Many calls at once through a release build, measured by `trunkline-lab load` (Scripts/test runs this alone on the machine).
  @Suite(.tags(.audio), .serialized) struct SoakTests {
    static let calls = 50
    /// A debug build transcodes too slowly for 50 calls: Scripts/test names the gateway of its build here.
    static let binary = ProcessInfo.processInfo.environment["TRUNKLINE_BINARY"]
    static let lab = binary.map { URL(fileURLWithPath: $0).deletingLastPathComponent().path + "/trunkline-lab" }

    /// At 8 kHz between PCMU and Opus, and half as many at 16 kHz between G.722 and Opus.
    @Test(
      .enabled(if: binary != nil, "TRUNKLINE_BINARY names no gateway that carries 50 calls; Scripts/test does"),
      arguments: [(false, Self.calls, "60"), (true, Self.calls / 2, "20")])
    func `concurrent bridged calls in either band: no packet lost by us, flat memory, every gauge back to zero`(
      isWide: Bool, calls: Int, seconds usual: String
    ) async throws {
      let users = Dictionary(uniqueKeysWithValues: (0..<calls).map { ("user\($0)", "+1555\(2_000_000 + $0)") })
      let ports = try FreePorts.row(UInt16(4 * calls + 2))
      let trunkPorts = "\(ports + 2)-\(ports + UInt16(4 * calls) + 1)"
      let gateway = try await GatewayUnderTest(
        [
          "media: { addresses: [ 127.0.0.1 ], threads: 2, app_port: \(ports), trunk_ports: \(trunkPorts) }",
          "log: { level: notice }",
        ], users: users, trunk: isWide ? "codecs: [ G722, PCMU ]" : "", binary: try #require(Self.binary))
      let seconds = ProcessInfo.processInfo.environment["TRUNKLINE_SOAK_SECONDS"] ?? usual
      let load = try Spawned(
        "load", try #require(Self.lab),
        [
          "load", "--config", gateway.folder + "/gateway.yaml", "--calls", "\(calls)", "--seconds", seconds, "--pid",
          "\(gateway.process.pid)",
        ] + (isWide ? ["--wide"] : []),
        in: gateway.folder)
      let status = try await load.finish(within: 240)
      print(load.text)
      #expect(status == 0, "\(load.text)\n\(gateway.process.text.suffix(4_000))")
      // Loss, records and gauges count on a busy machine too; delays and speech do not.
      if load.text.contains("VOID") { Issue.record("the machine was too busy for the figures of time", severity: .warning) }
      try await gateway.finish()
    }

    @Test(.enabled(if: binary != nil, "TRUNKLINE_BINARY names no gateway that carries 50 calls; Scripts/test does"))
    func `a load that is told to end takes its gateway and its folder with it`() async throws {
      let folder = NSTemporaryDirectory() + "stopped-\(UUID().uuidString.prefix(8))"
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(atPath: folder) }
      let files = FileManager.default
      /// Processes that run in the folder of the load's gateway.
      func gateways() -> Int {
        ((try? files.contentsOfDirectory(atPath: "/proc")) ?? []).count {
          (try? files.destinationOfSymbolicLink(atPath: "/proc/\($0)/cwd"))?.contains(folder + "/trunkline-load-") ?? false
        }
      }
      let load = try Spawned(
        "load", try #require(Self.lab), ["load", "--steps", "2,3", "--seconds", "120"], in: folder,
        environment: ["TMPDIR": folder])
      #expect(await eventually(within: 15) { gateways() == 1 }, "\(load.text)")
      load.signal(SIGTERM)
      #expect(try await load.finish(within: 30) == 130, "\(load.text)")
      #expect(gateways() == 0)
      #expect(try !files.contentsOfDirectory(atPath: folder).contains { $0.hasPrefix("trunkline-load-") }, "\(load.text)")
    }

    @Test(.enabled(if: binary != nil, "TRUNKLINE_BINARY names no gateway that carries 50 calls; Scripts/test does"))
    func `1,000 sessions are cut at once and come back; each takes less than 16 KB, and one is answered all the time`()
      async throws
    {
      let load = try Spawned(
        "sessions", try #require(Self.lab),
        ["load", "--sessions", "1000", "--rate", "500", "--seconds", "1", "--reconnect-within", "2", "--json"],
        in: NSTemporaryDirectory())
      let status = try await load.finish(within: 100)
      #expect(status == 0, "\(load.text)")
      let report = try #require(load.events.last { $0["run"] != nil }, "\(load.text)")
      let run = try #require(report["run"] as? [String: Any])
      #expect(run["online"] as? Int == 1_000 && run["onlineAtEnd"] as? Int == 1_000)
      #expect((run["answerInStorm"] as? [String: Any])?["count"] as? Int ?? 0 > 10)
      let before = try #require(report["residentBeforeMegabytes"] as? Double)
      let atRest = try #require(report["residentAtRestMegabytes"] as? Double)
      #expect(before > 0 && (atRest - before) * 1_024 / 1_000 < 16)
    }
  }
}
