import Foundation
import Testing

extension Interop {
  /// A push service that is down, silent, lies or is wrong, while another call runs.
  @Suite(.enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct PushFaultTests {
    /// What the service does, chosen by the device's token, and what the caller gets.
    private struct Fault {
      var name: String
      var token: String
      /// Causes in the 480's Reason: 20, no device could be reached; 19, it rang out, a second try under way.
      var causes: [Int]
      var outcome: String
    }
    private static let faults = [
      Fault(name: "never answers", token: "888", causes: [19], outcome: "failed"),
      Fault(name: "takes it with nonsense for an answer, and nobody comes", token: "777", causes: [19], outcome: "accepted"),
      Fault(name: "says 410 of a fresh token, with an old time", token: "410", causes: [20], outcome: "unregistered"),
      Fault(name: "breaks the connection at each push", token: "999", causes: [19, 20], outcome: "failed"),
    ]

    @Test
    func `EXC-4, TOK-4: the push service fails: calls end with their cause, devices are kept, a running call is not touched`()
      async throws
    {
      let service = try await PushServiceUnderTest(.h2)
      let numbers = Self.faults.indices.map { "{ id: u\($0), numbers: [ \"+1555124000\($0)\" ] }" }.joined(separator: ", ")
      let gateway = try await service.gateway([
        "timers: { ring: 3s, early180: 300ms }", "users: [ { id: bob, numbers: [ \"+15551230002\" ] }, \(numbers) ]",
      ])
      var apps: [Spawned] = []
      for (index, fault) in Self.faults.enumerated() {
        apps.append(
          try await service.killedApp(
            gateway, user: "u\(index)", ["--push-token", fault.token + String(repeating: "ab", count: 30) + "\(index)"]))
      }
      let bob = try await Peers.ownPhone(gateway, user: "bob", ["--answer", "--calls", "1"])
      let running = try Peers.caller(gateway, "call", to: "+15551230002", ["-d", "8000"])
      #expect(await eventually(within: 10) { try gateway.sum("trunkline_calls", "connected") == 1 })
      let trunk = try RawTrunk(gateway)
      var calls = [running.callID]
      for (index, fault) in Self.faults.enumerated() {
        func count() throws -> Double { try gateway.sum("trunkline_pushes_total", "outcome=\"\(fault.outcome)\"") }
        let before = try count()
        let request = trunk.request("INVITE", to: "+1555124000\(index)", sdp: RawTrunk.offer())
        let answer = trunk.ask(request, within: 8)
        #expect(answer?.code == 480, "\(fault.name): \(answer?.text ?? "silence")")
        #expect(
          fault.causes.contains { answer?.header("Reason")?.contains("cause=\($0)") == true },
          "\(fault.name): \(answer?.text ?? "")")
        #expect(await eventually(within: 8) { try count() == before + 1 }, "\(fault.name)")
        calls.append(request.callID)
      }
      let devices = try Spawned(
        "devices", Surroundings.trunkline, ["devices", "list", "--config", gateway.folder + "/gateway.yaml"], in: gateway.folder)
      #expect(try await devices.finish(within: 10) == 0)
      for index in Self.faults.indices { #expect(devices.text.contains("u\(index) "), "\(devices.text)") }
      #expect(try await running.finish(within: 20) == 0, "the call that ran was touched: \(running.text.suffix(6_000))")
      #expect(try await bob.finish(within: 10) == 0)
      _ = try await gateway.records(5)
      #expect(gateway.endReasons.sorted() == ["remoteHangup"] + Array(repeating: "unanswered", count: 4))
      for app in apps {
        app.signal(SIGTERM)
        _ = try? await app.finish(within: 10)
      }
      try await gateway.finish(calls: calls)
      try await service.stop()
    }

    @Test func `the push service is gone: every call ends with its cause, and the alarm is up in the metrics`() async throws {
      let service = try await PushServiceUnderTest(.h2)
      let gateway = try await service.gateway()
      let app = try await service.killedApp(gateway, [])
      try await service.stop()
      let trunk = try RawTrunk(gateway)
      var calls: [String] = []
      for _ in 0..<6 {
        let request = trunk.request("INVITE", sdp: RawTrunk.offer())
        let answer = trunk.ask(request, within: 8)
        #expect(answer?.code == 480 && answer?.header("Reason")?.contains("cause=20") == true, "\(answer?.text ?? "silence")")
        calls.append(request.callID)
      }
      #expect(try gateway.sum("trunkline_push_circuit_open", "apns") == 1)
      #expect(try gateway.sum("trunkline_push_failures_total") >= 5)
      let records = try await gateway.records(6)
      let details = records.compactMap { ($0["end"] as? [String: Any])?["detail"] as? String }
      #expect(details.count == 6 && details.allSatisfy { $0.contains("no push accepted") }, "\(details)")
      #expect(try gateway.get("/healthz").status == 200)
      app.signal(SIGTERM)
      _ = try? await app.finish(within: 10)
      try await gateway.finish(calls: calls)
    }
  }
}
