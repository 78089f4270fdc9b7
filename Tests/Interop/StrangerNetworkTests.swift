import Foundation
import Testing

extension Interop {
  /// Foreign stacks and browsers behind a home router whose NAT rebinds, or which dies without an event. How long each side is
  /// without the other's tone is read from both recordings, whose time is that of the media.
  @Suite(
    .enabled(
      if: Surroundings.isRequired
        || (Surroundings.missing == nil && HomeNetwork.missing == nil && Pion.isInstalled && GStreamer.isInstalled
          && Firefox.isInstalled),
      "\(HomeNetwork.missing ?? "a peer is missing: run Scripts/install test")"), .serialized)
  struct StrangerNetworkTests {
    /// Seconds that the best client of today needs, and a margin.
    private static let longest = 3.5

    private func expect(_ client: NetworkedClient, _ fault: NetworkFault, seconds: Int, atMost: Double) async throws {
      let call = try await FaultedCall(client, fault, seconds: seconds)
      #expect(call.reason == "remoteHangup", "\(call.text)")
      for (side, silence) in call.silence {
        print("\(client) \(fault): \(side) heard nothing for \(silence) s more than the network was away")
        #expect(silence <= atMost, "\(client) \(fault): \(side)\n\(call.text)")
      }
      // If no check nominates the new port (Chromium's do), the gateway follows to it after a second at the earliest: less would
      // mean that nothing has happened.
      if fault == .rebinding, client != .chromiumPage { #expect(call.silence["app", default: 0] >= 0.5, "\(call.text)") }
    }

    @Test(.tags(.audio), arguments: [NetworkedClient.aiortc, .pion, .gstreamer, .chromiumPage, .firefoxPhone])
    func `a NAT rebinds: both sides hear each other again on the same call`(client: NetworkedClient) async throws {
      try await expect(client, .rebinding, seconds: 6, atMost: Self.longest)
    }

    @Test(.tags(.audio), arguments: [NetworkedClient.gstreamer, .chromiumPhone, .firefoxPage])
    func `a network that is dead for 6 s and back: both sides hear each other again`(client: NetworkedClient) async throws {
      try await expect(client, .sixSeconds, seconds: 11, atMost: Self.longest)
    }

    @Test(.tags(.audio), arguments: [NetworkedClient.firefoxPhone, .chromiumPhone])
    func `a router that drops all for good, with cellular beside it: a browser continues over cellular`(client: NetworkedClient)
      async throws
    {
      // Browsers took 3.8 s at most on a busy machine: docs/operate/nat.md has the table.
      try await expect(client, .dead, seconds: 9, atMost: 5)
    }
  }

  /// The table of docs/operate/nat.md: Scripts/network-table.
  @Suite(.tags(.audio), .enabled(if: NetworkFault.tries > 0, "TRUNKLINE_NETWORK_TRIES says how often"), .serialized)
  struct StrangerNetworkTable {
    private static let clients = NetworkedClient.allCases.filter { client in
      let only = ProcessInfo.processInfo.environment["TRUNKLINE_NETWORK_CLIENTS"]
      return only?.split(separator: ",").contains { $0 == client.rawValue } ?? true
    }

    private static let faults = NetworkFault.allCases.filter { fault in
      let only = ProcessInfo.processInfo.environment["TRUNKLINE_NETWORK_FAULTS"]
      return only?.split(separator: ",").contains { $0 == fault.rawValue } ?? true
    }

    @Test(arguments: clients, faults)
    func `how long each side hears nothing`(client: NetworkedClient, fault: NetworkFault) async throws {
      // a client that cannot restart has no second path
      guard client.restarts || fault != .dead else { return }
      for _ in 0..<NetworkFault.tries {
        let start = Canary.now
        let call = try await FaultedCall(client, fault, seconds: fault == .sixSeconds ? 14 : 12)
        let late = Canary.lateness(since: start).worstMilliseconds
        for side in ["app", "trunk"] {
          print("silence\t\(client)\t\(fault)\t\(side)\t\(call.silence[side, default: .infinity])\t\(late)\t\(call.reason ?? "")")
        }
      }
    }
  }

  /// A network that is dead for good ends the call of a client that cannot restart, with a cause, on both sides.
  @Suite(
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && HomeNetwork.missing == nil && Pion.isInstalled),
      "\(HomeNetwork.missing ?? "a peer is missing: run Scripts/install test")"), .serialized)
  struct DeadNetworkTests {
    @Test func `the network of a stranger that restarts no ICE dies for good: networkLost after 45 s of silence`() async throws {
      let network = HomeNetwork()
      defer { withExtendedLifetime(network) {} }
      network.hasCellular = false
      try await network.make()
      let gateway = try await network.gateway(HomeNetwork.address)
      try EndlessTone.write(8, gateway.folder + "/tone.wav")
      let pion = try await NetworkedClient.pion.start(gateway, in: network)
      let trunk = try await Peers.trunk(gateway, ["--call", "+15551230001", "--talk", "100", "--play", "tone.wav"])
      _ = try await NetworkedClient.pion.recordingStart(pion)
      let died = ContinuousClock.now
      try await network.forward(false)
      #expect(try await trunk.finish(within: 70) == 0, "\(trunk.text)\n\(pion.text)")
      let took = (ContinuousClock.now - died) / .seconds(1)
      #expect((40...50).contains(took), "\(took) s")
      let record = try #require(try await gateway.records(1).first)
      #expect((record["end"] as? [String: Any])?["reason"] as? String == "networkLost", "\(record)")
      try await gateway.finish()
    }
  }
}
