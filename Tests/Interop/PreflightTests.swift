import Foundation
import Testing

extension Interop {
  /// The test call of a preflight, of Chromium to the release binary: what both ways are worth, with and without loss.
  @Suite(
    .tags(.audio),
    .enabled(
      if: Surroundings.isRequired
        || (Surroundings.missing == nil && Surroundings.chromium != nil && TranslatedNetwork.missing == nil),
      "no chromium, or no root or no nft"), .serialized)
  struct PreflightTests {
    private struct Result {
      var isReady: Bool?
      var call: [String: Any]
      init(_ page: BarePage) async throws {
        let text = try await page.evaluate(
          "phone.preflight().then((all) => JSON.stringify({ ...all, error: all.call?.error?.message }))")
        let all = try JSONSerialization.jsonObject(with: Data((text as? String ?? "").utf8)) as? [String: Any]
        isReady = all?["isReady"] as? Bool
        call = all?["call"] as? [String: Any] ?? [:]
      }
      func number(_ key: String, of direction: String) -> Double? { (call[direction] as? [String: Any])?[key] as? Double }
      func isHeard(_ direction: String) -> Bool? { (call[direction] as? [String: Any])?["isHeard"] as? Bool }
      var score: Double? { call["score"] as? Double }
    }

    private func drop(_ gateway: GatewayUnderTest, _ match: String) async throws {
      let ports = "{ \(gateway.trunkPorts + 58), \(gateway.trunkPorts + 59) }"
      let rules = """
        add table ip preflight
        delete table ip preflight
        table ip preflight { chain out { type filter hook output priority 0;
          udp \(match) \(ports) numgen random mod 10 < 1 drop; } }
        """
      try rules.write(toFile: gateway.folder + "/loss.nft", atomically: true, encoding: .utf8)
      let nft = try Spawned("nft", "/usr/sbin/nft", ["-f", gateway.folder + "/loss.nft"], in: gateway.folder)
      #expect(try await nft.finish(within: 10) == 0, "\(nft.text)")
    }
    private func heal(_ gateway: GatewayUnderTest) async throws {
      let nft = try Spawned("nft", "/usr/sbin/nft", ["delete", "table", "ip", "preflight"], in: gateway.folder)
      try await nft.finish(within: 10)
    }

    @Test func `a good network has a good score both ways; ten percent of loss in either is seen in that one, and is poor`()
      async throws
    {
      let gateway = try await GatewayUnderTest(["recording: { folder: audio, when: on, minimum_free_mib: 0 }"], media: "[ auto ]")
      let page = try await BarePage(gateway)
      try await page.open(gateway, token: try await gateway.token("alice", "web"))
      let good = try await Result(page)
      #expect(good.call["isGood"] as? Bool == true && good.isReady == true, "\(good)")
      #expect(good.isHeard("sent") == true && good.isHeard("received") != false, "\(good)")
      #expect(try #require(good.score) > 4, "\(good)")
      for (match, lossy, whole) in [("dport", "sent", "received"), ("sport", "received", "sent")] {
        try await drop(gateway, match)
        let bad = try await Result(page)
        try await heal(gateway)
        // 10 % of some 250 packets: 4 standard deviations are 7.6 %
        #expect(try (0.02...0.2).contains(#require(bad.number("loss", of: lossy))), "\(match): \(bad)")
        #expect(bad.number("loss", of: whole) == 0 && bad.isHeard(lossy) == true, "\(match): \(bad)")
        let scores = (try #require(bad.number("mos", of: lossy)), try #require(bad.number("mos", of: whole)))
        #expect(scores.0 < 3.6 && scores.1 > 4 && bad.score == scores.0, "\(match): \(bad)")
      }
      let records = try await gateway.records(3)
      #expect(records.allSatisfy { $0["trunk"] as? String == "preflight" && $0["to"] as? String == "trunkline:echo" })
      #expect(records.allSatisfy { ($0["end"] as? [String: Any])?["reason"] as? String == "remoteHangup" })
      // nothing of it is recorded, though all calls are, and no history has it
      #expect(records.allSatisfy { $0["recordings"] == nil })
      #expect((try? FileManager.default.contentsOfDirectory(atPath: gateway.folder + "/audio")) ?? [] == [])
      #expect(try gateway.sum("trunkline_calls_started_total", "trunk=\"preflight\"") == 3)
      try await gateway.finish()
    }
  }
}
