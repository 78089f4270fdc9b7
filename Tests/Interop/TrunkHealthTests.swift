import Foundation
import Synchronization
import Testing

extension Interop {
  /// What operators see of a carrier that dies and comes back.
  @Suite(.enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct TrunkHealthTests {
    private struct Status: Decodable {
      struct Server: Decodable { var up: Bool }
      struct Registration: Decodable { var registered: Bool }
      struct Refusal: Decodable { var method: String; var code: Int?; var failure: String? }
      var up: Bool
      var why: String?
      var servers: [Server]
      var registration: Registration?
      var lastRefusal: Refusal?
      var calls: Int
      var callsLimit: Int?
    }
    private func status(_ gateway: GatewayUnderTest) throws -> Status {
      try JSONDecoder().decode(Status.self, from: Data(try gateway.get("/v1/trunks/carrier").body.utf8))
    }
    private func metric(_ gateway: GatewayUnderTest, _ name: String) throws -> Double? {
      try gateway.metric("trunkline_trunk_\(name){trunk=\"carrier\"}")
    }

    /// A carrier that answers REGISTER and OPTIONS until its time is over.
    private final class Carrier: @unchecked Sendable {
      let trunk: RawTrunk
      let registers = Mutex("200 OK")
      private var thread: Thread?
      private let ended = DispatchSemaphore(value: 0)
      private let stopped = DispatchSemaphore(value: 0)

      init(toward sip: UInt16, port: UInt16 = 0) throws {
        trunk = try RawTrunk(toward: sip, port: port)
        let thread = Thread { [self] in
          while ended.wait(timeout: .now()) == .timedOut {
            guard let text = trunk.receive(within: 100) else { continue }
            if text.hasPrefix("OPTIONS ") { trunk.reply(to: text, "200 OK") }
            if text.hasPrefix("REGISTER ") { trunk.reply(to: text, registers.withLock { $0 }) }
          }
          stopped.signal()
        }
        self.thread = thread
        thread.start()
      }

      func stop() {
        ended.signal()
        stopped.wait()
        thread = nil
      }
    }

    @Test func `a carrier that is killed is seen in trunks, metrics, readyz and the log, and so is its return`() async throws {
      let ports = (sip: try FreePorts.both(), app: try FreePorts.tcp(), admin: try FreePorts.tcp())
      var carrier: Carrier? = try Carrier(toward: ports.sip)
      let port = try #require(carrier).trunk.address.port
      let gateway = try await GatewayUnderTest(
        trunk: "register: { user: gw, expires: 60s }, probe: 1s", ports: ports, carrier: port)
      #expect(await eventually(within: 10) { try gateway.get("/readyz").status == 200 })
      #expect(try status(gateway).up && status(gateway).registration?.registered == true)
      #expect(try metric(gateway, "up") == 1 && metric(gateway, "registered") == 1 && metric(gateway, "breaker_open") == 0)
      let server = "trunkline_trunk_server_up{trunk=\"carrier\",server=\"127.0.0.1:\(port)\"}"
      #expect(try gateway.metric(server) == 1)
      let good = try gateway.get("/metrics").body

      // its socket is closed with it: what the gateway sends there is refused at once
      carrier?.stop()
      carrier = nil
      #expect(await eventually(within: 30) { try gateway.metric(server) == 0 })
      #expect(await eventually(within: 90) { try metric(gateway, "up") == 0 })
      let down = try status(gateway)
      #expect(!down.up && down.why == "OPTIONS not answered" && !down.servers.contains { $0.up })
      #expect(
        down.lastRefusal?.failure == "connection refused" && down.lastRefusal?.code == nil,
        "\(String(describing: down.lastRefusal))")
      let bad = try gateway.get("/metrics").body
      let page = try gateway.get("/readyz")
      #expect(page.status == 503 && page.body.contains("down: carrier (OPTIONS not answered)"), "\(page)")
      #expect(gateway.process.text.contains("a trunk stopped answering OPTIONS"))

      carrier = try Carrier(toward: ports.sip, port: port)
      #expect(await eventually(within: 60) { try gateway.get("/readyz").status == 200 })
      #expect(await eventually(within: 90) { try metric(gateway, "up") == 1 && metric(gateway, "registered") == 1 })
      #expect(try status(gateway).up && gateway.metric(server) == 1)
      try await expectAlert("TrunkDown", after: 1, good, bad, in: gateway.folder)
      try await gateway.finish()
      carrier?.stop()
    }

    @Test func `a registration that is refused is seen, and so is the one that is granted`() async throws {
      let ports = (sip: try FreePorts.both(), app: try FreePorts.tcp(), admin: try FreePorts.tcp())
      let carrier = try Carrier(toward: ports.sip)
      carrier.registers.withLock { $0 = "503 Service Unavailable" }
      let gateway = try await GatewayUnderTest(
        trunk: "register: { user: gw, expires: 60s }", ports: ports, carrier: carrier.trunk.address.port)
      #expect(await eventually(within: 10) { try status(gateway).lastRefusal?.code == 503 })
      #expect(try status(gateway).why == "not registered" && status(gateway).lastRefusal?.method == "REGISTER")
      #expect(try metric(gateway, "registered") == 0 && metric(gateway, "up") == 0)
      #expect(try gateway.get("/readyz").body.contains("down: carrier (not registered)"))
      #expect(gateway.process.text.contains("503"), "\(gateway.process.text)")
      let bad = try gateway.get("/metrics").body
      carrier.registers.withLock { $0 = "200 OK" }
      #expect(await eventually(within: 60) { try metric(gateway, "registered") == 1 && metric(gateway, "up") == 1 })
      #expect(try gateway.get("/readyz").status == 200 && status(gateway).registration?.registered == true)
      try await expectAlert("RegistrationFailing", after: 2, try gateway.get("/metrics").body, bad, in: gateway.folder)
      try await gateway.finish()
      carrier.stop()
    }

    @Test func `a trunk whose channels are taken refuses the next call, says so, and takes calls again`() async throws {
      let gateway = try await GatewayUnderTest(trunk: "max_calls: 1")
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      let first = try Peers.caller(gateway, "call_until_bye")
      #expect(
        await eventually(within: 10) {
          try metric(gateway, "calls") == 1 && gateway.metric("trunkline_calls{state=\"connected\"}") == 1
        })
      #expect(try status(gateway).callsLimit == 1 && status(gateway).calls == 1)
      let bad = try gateway.get("/metrics").body
      let trunk = try RawTrunk(gateway)
      let second = trunk.request("INVITE", sdp: RawTrunk.offer())
      #expect(trunk.ask(second)?.code == 503)
      // the log has a thread of its own
      let isLogged = await eventually(within: 5) {
        gateway.process.text.contains("call refused") && gateway.process.text.contains(second.callID)
      }
      #expect(isLogged, "\(gateway.process.text)")
      #expect(try gateway.sum("trunkline_calls_refused_total") == 1)
      let calls =
        try JSONSerialization.jsonObject(with: Data(try gateway.get("/v1/calls").body.utf8)) as? [String: [[String: Any]]]
      let id = try #require(calls?["calls"]?.first?["call"] as? String)
      #expect(try HTTP.request("POST", "/v1/calls/\(id)/hangup", port: gateway.admin).status == 202)
      #expect(try await first.finish(within: 10) == 0)
      #expect(try await phone.finish(within: 10) == 0)
      #expect(await eventually(within: 10) { try metric(gateway, "calls") == 0 })
      try await expectAlert("TrunkCallsNearLimit", after: 5, try gateway.get("/metrics").body, bad, in: gateway.folder)
      try await gateway.finish(calls: Array(gateway.invites.withLock { $0 }), refused: [second.callID])
    }

    @Test func `a certificate that is about to expire is seen, and so is the new one`() async throws {
      let gateway = try await GatewayUnderTest()
      func certificate(days: Int) async throws {
        let command = try Spawned(
          "openssl", "/usr/bin/openssl",
          [
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "\(days)", "-subj",
            "/CN=localhost", "-keyout", "tls.key", "-out", "tls.pem",
          ], in: gateway.folder)
        #expect(try await command.finish(within: 20) == 0, "\(command.text)")
      }
      try await certificate(days: 3)
      let file = gateway.folder + "/gateway.yaml"
      let text = try String(contentsOfFile: file, encoding: .utf8)
      try text.replacing(
        "{ address: 127.0.0.1:\(gateway.app) }",
        with: "{ address: 127.0.0.1:\(gateway.app), tls: { cert: tls.pem, key: tls.key } }"
      )
      .write(toFile: file, atomically: true, encoding: .utf8)
      try await gateway.restart()
      #expect(await eventually(within: 10) { gateway.process.text.contains("a certificate expires soon") })
      let bad = try gateway.get("/metrics").body
      try await certificate(days: 90)
      gateway.process.signal(SIGHUP)
      let name = "trunkline_certificate_expires_seconds"
      let soon = Date().timeIntervalSince1970 + 14 * 86_400
      #expect(await eventually(within: 10) { try gateway.sum(name) > soon }, "\(gateway.process.text)")
      try await expectAlert("CertificateExpires", after: 60, try gateway.get("/metrics").body, bad, in: gateway.folder)
      try await gateway.finish()
    }

    /// Of Deploy/alerts.yml, on series that the gateway gave: silent while they are good, firing from `after` minutes of bad ones on, and
    /// silent again. `good` and `bad` are texts of `/metrics`.
    private func expectAlert(_ name: String, after: Int, _ good: String, _ bad: String, in folder: String) async throws {
      func samples(_ text: String) -> [String: Double] {
        let rows = text.split(separator: "\n").filter { !$0.hasPrefix("#") && !$0.contains("_bucket{") }
        return rows.reduce(into: [:]) { out, row in
          guard let space = row.lastIndex(of: " "), let value = Double(row[row.index(after: space)...]) else { return }
          // promtool's clock begins at 0
          let isTime = row.hasPrefix("trunkline_certificate_expires_seconds")
          out[String(row[..<space])] = isTime ? (value - Date().timeIntervalSince1970).rounded() : value
        }
      }
      let (good, bad) = (samples(good), samples(bad))
      let (start, end) = (10, 10 + after + 20)
      let series = good.keys.filter { bad[$0] != nil }.sorted().map { key in
        "      - series: '\(key)'\n        values: '\(good[key] ?? 0)x\(start - 1) \(bad[key] ?? 0)x\(end - start - 1) \(good[key] ?? 0)x30'"
      }
      func expectation(_ minute: Int, _ isFiring: Bool) -> String {
        let text = "      - expr: count(ALERTS{alertname=\"\(name)\",alertstate=\"firing\"})\n        eval_time: \(minute)m\n"
        return text + (isFiring ? "        exp_samples: [ { labels: '{}', value: 1 } ]" : "        exp_samples: []")
      }
      let rules = Surroundings.sources + "/../../Deploy/alerts.yml"
      let test = """
        rule_files: [ \(rules) ]
        evaluation_interval: 1m
        tests:
          - interval: 1m
            input_series:
        \(series.joined(separator: "\n"))
            promql_expr_test:
        \([expectation(start - 1, false), expectation(start + after - 1, false), expectation(start + after + 1, true), expectation(end + 2, false)].joined(separator: "\n"))

        """
      try test.write(toFile: folder + "/alert.test.yml", atomically: true, encoding: .utf8)
      let promtool = try Spawned("promtool", "/usr/bin/promtool", ["test", "rules", "alert.test.yml"], in: folder)
      #expect(try await promtool.finish(within: 30) == 0, "\(promtool.text)")
    }

    @Test func `a disabled trunk refuses calls until it is enabled, by the command`() async throws {
      let gateway = try await GatewayUnderTest()
      func trunks(_ words: String...) async throws -> (status: Int32, text: String) {
        let command = try Spawned(
          "trunks", Surroundings.trunkline, ["trunks"] + words + ["--config", gateway.folder + "/gateway.yaml"],
          in: gateway.folder)
        return (try await command.finish(within: 10), command.text)
      }
      #expect(try await trunks("list").text.contains("carrier  up"))
      #expect(try await trunks("disable", "nobody").status == 1)
      #expect(try await trunks("disable", "carrier").status == 0)
      #expect(await eventually(within: 5) { try gateway.get("/readyz").body.contains("down: carrier (disabled)") })
      #expect(try await trunks("show", "carrier").text.contains("down (disabled)"))
      #expect(gateway.process.text.contains("trunk disabled by an operator"))
      let trunk = try RawTrunk(gateway)
      let refused = trunk.request("INVITE", sdp: RawTrunk.offer())
      #expect(trunk.ask(refused)?.code == 503)
      #expect(try await trunks("enable", "carrier").status == 0)
      #expect(await eventually(within: 5) { try gateway.get("/readyz").status == 200 })
      try await gateway.finish(calls: [], refused: [refused.callID])
    }
  }
}
