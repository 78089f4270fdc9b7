import Foundation
import Glibc
import Testing

extension Interop {
  /// A real Prometheus with `Deploy/alerts.yml` watches a gateway that is killed. Its `for:` times are shortened, and nothing else.
  @Suite(.enabled(if: Surroundings.prometheus != nil, "needs Debian's package prometheus"), .serialized) struct GatewayDownTests {
    /// Where the project's files are, from this one.
    private static let project = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()

    private static func start(_ gateway: GatewayUnderTest, port: UInt16) throws -> Spawned {
      let rules = try String(contentsOf: project.appendingPathComponent("Deploy/alerts.yml"), encoding: .utf8)
      let short = rules.replacing(/for: [0-9]+[mh]/, with: "for: 1s")
      try short.write(toFile: gateway.folder + "/alerts.yml", atomically: true, encoding: .utf8)
      let settings = """
        global: { scrape_interval: 500ms, scrape_timeout: 400ms, evaluation_interval: 500ms }
        rule_files: [ alerts.yml ]
        scrape_configs:
          - job_name: trunkline
            static_configs: [ { targets: [ "127.0.0.1:\(gateway.admin)" ] } ]
        """
      try settings.write(toFile: gateway.folder + "/prometheus.yml", atomically: true, encoding: .utf8)
      return try Spawned(
        "prometheus", try #require(Surroundings.prometheus),
        [
          "--config.file=prometheus.yml", "--storage.tsdb.path=\(gateway.folder)/prometheus",
          "--web.listen-address=127.0.0.1:\(port)",
        ], in: gateway.folder)
    }

    /// The alerts that fire now, by name, with their instances.
    private static func firing(_ port: UInt16) throws -> [String: String] {
      let page = try HTTP.request("GET", "/api/v1/alerts", port: port)
      let json = try JSONSerialization.jsonObject(with: Data(page.body.utf8)) as? [String: Any]
      let alerts = (json?["data"] as? [String: Any])?["alerts"] as? [[String: Any]] ?? []
      var out: [String: String] = [:]
      for alert in alerts where alert["state"] as? String == "firing" {
        let labels = alert["labels"] as? [String: String] ?? [:]
        if let name = labels["alertname"] { out[name] = labels["instance"] ?? "" }
      }
      return out
    }

    @Test func `a gateway that is killed raises GatewayDown, as the alert of its trunk goes with it, and recovers`() async throws
    {
      // nothing answers at the carrier's port
      let gateway = try await GatewayUnderTest(trunk: "probe: 1s")
      let port = try FreePorts.tcp()
      let prometheus = try Self.start(gateway, port: port)
      let instance = "127.0.0.1:\(gateway.admin)"
      #expect(await eventually(within: 60) { try Self.firing(port) == ["TrunkDown": instance] }, "\(prometheus.text)")

      gateway.process.signal(SIGKILL)
      #expect(await eventually(within: 30) { try Self.firing(port) == ["GatewayDown": instance] }, "\(prometheus.text)")
      #expect(try await gateway.process.finish(within: 10) != 0)

      try await gateway.restart()
      #expect(await eventually(within: 60) { try Self.firing(port) == ["TrunkDown": instance] }, "\(prometheus.text)")
      prometheus.signal(SIGTERM)
      try await prometheus.finish(within: 20)
      try await gateway.finish()
    }
  }
}
