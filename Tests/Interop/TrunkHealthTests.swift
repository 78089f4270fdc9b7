import Foundation
import Testing

extension Interop {
  /// What operators see of a carrier that dies and comes back.
  @Suite(.enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct TrunkHealthTests {
    private struct Status: Decodable {
      struct Server: Decodable { var up: Bool }
      struct Registration: Decodable { var registered: Bool }
      struct Refusal: Decodable { var method: String; var code: Int }
      var up: Bool
      var why: String?
      var servers: [Server]
      var registration: Registration?
      var lastRefusal: Refusal?
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
      private var thread: Thread?
      private let ended = DispatchSemaphore(value: 0)
      private let stopped = DispatchSemaphore(value: 0)

      init(toward sip: UInt16, port: UInt16 = 0) throws {
        trunk = try RawTrunk(toward: sip, port: port)
        let thread = Thread { [self] in
          while ended.wait(timeout: .now()) == .timedOut {
            guard let text = trunk.receive(within: 100) else { continue }
            if text.hasPrefix("REGISTER ") || text.hasPrefix("OPTIONS ") { trunk.reply(to: text, "200 OK") }
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

      // its socket is closed with it: what the gateway sends there is refused at once
      carrier?.stop()
      carrier = nil
      #expect(await eventually(within: 30) { try gateway.metric(server) == 0 })
      #expect(await eventually(within: 90) { try metric(gateway, "up") == 0 })
      let down = try status(gateway)
      #expect(!down.up && down.why == "OPTIONS not answered" && !down.servers.contains { $0.up })
      #expect(down.lastRefusal != nil)
      let page = try gateway.get("/readyz")
      #expect(page.status == 503 && page.body.contains("down: carrier (OPTIONS not answered)"), "\(page)")
      #expect(gateway.process.text.contains("trunk no longer answers OPTIONS"))

      carrier = try Carrier(toward: ports.sip, port: port)
      #expect(await eventually(within: 60) { try gateway.get("/readyz").status == 200 })
      #expect(await eventually(within: 90) { try metric(gateway, "up") == 1 && metric(gateway, "registered") == 1 })
      #expect(try status(gateway).up && gateway.metric(server) == 1)
      try await gateway.finish()
      carrier?.stop()
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
