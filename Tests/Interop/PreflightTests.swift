import Foundation
import Testing

extension Interop {
  /// The preflight test of both clients behind a home router: on a good network, on one that loses datagrams, and on one that drops all UDP. Its call
  /// to the gateway itself measures both ways.
  @Suite(
    .enabled(if: HomeNetwork.missing == nil || Surroundings.isRequired, "\(HomeNetwork.missing ?? "")"),
    .serialized)
  struct PreflightTests {
    /// One way of the test call.
    struct Direction: Equatable {
      var mos: Double?
      var loss: Double?
      /// Nil: the client does not say; Chromium counts no energy of what no loudspeaker plays.
      var isHeard: Bool?
    }
    struct Outcome {
      var isReady: Bool
      var hasNetwork: Bool
      var isGood: Bool?
      var sent: Direction?
      var received: Direction?
      var error: String?
      var text: String
    }

    private static func outcome(_ client: NetworkedClient, _ gateway: GatewayUnderTest, _ network: HomeNetwork) async throws
      -> Outcome
    {
      guard client == .sdk else {
        let browser = try await client.start(gateway, in: network, ["--preflight"])
        let event = try await browser.event("preflight", within: 60)
        _ = try await browser.finish(within: 20)
        let call = event["call"] as? [String: Any]
        func direction(_ name: String) -> Direction? {
          guard let row = call?[name] as? [String: Any] else { return nil }
          return Direction(mos: row["mos"] as? Double, loss: row["loss"] as? Double, isHeard: row["isHeard"] as? Bool)
        }
        return Outcome(
          isReady: event["isReady"] as? Bool ?? false,
          hasNetwork: (event["network"] as? [String: Any])?["isGood"] as? Bool ?? false,
          isGood: call?["isGood"] as? Bool, sent: direction("sent"), received: direction("received"),
          error: (call?["error"] as? [String: Any])?["code"] as? String, text: browser.text)
      }
      let phone = try await network.phone(gateway, at: HomeNetwork.address, ["--preflight"])
      _ = try await phone.event("testCall", within: 60)
      _ = try await phone.finish(within: 20)
      func field(_ name: String) -> String? { phone.fields(name, of: "testCall").first }
      func direction(_ name: String) -> Direction {
        Direction(
          mos: field(name + "MOS").flatMap(Double.init), loss: field(name + "Loss").flatMap(Double.init),
          isHeard: field(name + "Heard") == "true")
      }
      return Outcome(
        isReady: phone.fields("ready", of: "preflight") == ["true"],
        hasNetwork: phone.fields("rttMs", of: "preflight").first.flatMap(Double.init) != nil,
        isGood: field("good").flatMap(Bool.init), sent: direction("sent"), received: direction("received"),
        error: field("error").flatMap { $0.isEmpty ? nil : $0 }, text: phone.text)
    }

    private func preflight(_ client: NetworkedClient, udpLoss: Int) async throws -> Outcome {
      let network = HomeNetwork()
      defer { withExtendedLifetime(network) {} }
      network.hasCellular = false
      try await network.make()
      if udpLoss > 0 { try await network.loseDatagrams(udpLoss) }
      let gateway = try await network.gateway(HomeNetwork.address)
      try EndlessTone.write(30, gateway.folder + "/tone.wav")
      let outcome = try await Self.outcome(client, gateway, network)
      let record = try #require(try await gateway.records(1).first)
      #expect(record["trunk"] as? String == "preflight", "\(record)")
      try await gateway.finish()
      return outcome
    }

    @Test(.tags(.audio), arguments: [NetworkedClient.sdk, .chromiumPage, .firefoxPage])
    func `on a good network both ways of the test call are good`(client: NetworkedClient) async throws {
      let result = try await preflight(client, udpLoss: 0)
      #expect(result.isReady && result.hasNetwork && result.isGood == true && result.error == nil, "\(result.text)")
      for direction in [try #require(result.sent), try #require(result.received)] {
        #expect((direction.mos ?? 0) > 3.8 && direction.loss == 0 && direction.isHeard != false, "\(direction)\n\(result.text)")
      }
    }

    @Test(.tags(.audio), arguments: [NetworkedClient.sdk, .chromiumPage])
    func `a network that loses three datagrams of ten each way is not good, and both ways say so`(client: NetworkedClient)
      async throws
    {
      // In some runs the network loses the handshake so often that no audio passes within the call: that is not good either, and is said so.
      var result = try await preflight(client, udpLoss: 30)
      for _ in 0..<3 where result.sent?.loss == nil || result.received?.loss == nil {
        #expect(!result.isReady && result.isGood == false && result.error != nil, "\(result.text)")
        result = try await preflight(client, udpLoss: 30)
      }
      #expect(!result.isReady && result.hasNetwork && result.isGood == false, "\(result.text)")
      // 250 packets each way: 30 % by four standard deviations
      for direction in [try #require(result.sent), try #require(result.received)] {
        #expect((0.18...0.42).contains(direction.loss ?? 0), "\(direction)\n\(result.text)")
        #expect((direction.mos ?? 5) < 3.1, "\(direction)\n\(result.text)")
      }
    }

    @Test(arguments: [NetworkedClient.sdk, .chromiumPage])
    func `a network that lets no UDP through says that no audio passes, though the gateway answers`(client: NetworkedClient)
      async throws
    {
      let result = try await preflight(client, udpLoss: 100)
      #expect(!result.isReady && result.hasNetwork && result.isGood == false, "\(result.text)")
      #expect(result.error?.contains("noMedia") == true || result.error?.contains("no audio passed") == true, "\(result.text)")
    }
  }
}
