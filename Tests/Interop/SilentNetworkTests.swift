import Foundation
import Testing

extension Interop {
  /// Networks that change or die and send no event: the SDK, and an app of strangers, behind home routers with NAT. What each side hears is a tone
  /// without an end, so that each moment without it is seen.
  @Suite(
    .tags(.audio), .enabled(if: HomeNetwork.missing == nil || Surroundings.isRequired, "\(HomeNetwork.missing ?? "")"),
    .serialized)
  struct SilentNetworkTests {
    /// The SDK hears and is heard again within 3.5 s.
    private static let longest = 3.5

    private func connected(_ network: HomeNetwork, seconds: Int) async throws -> (
      GatewayUnderTest, phone: Spawned, trunk: Spawned
    ) {
      try await network.make()
      let gateway = try await network.gateway(HomeNetwork.address)
      try EndlessTone.write(seconds + 2, gateway.folder + "/tone.wav")
      let phone = try await network.phone(
        gateway, at: HomeNetwork.address, ["--answer", "--calls", "1", "--play", "tone.wav", "--record", "app-heard.wav"])
      let trunk = try await Peers.trunk(
        gateway, ["--call", "+15551230001", "--talk", "\(seconds)", "--play", "tone.wav", "--record", "trunk-heard.wav"])
      _ = try await phone.event("firstAudio", within: 10)
      return (gateway, phone, trunk)
    }

    /// The call ended by the trunk's word, and each side was without the tone for no longer than that.
    private func expectGaps(
      _ what: String, _ call: (GatewayUnderTest, phone: Spawned, trunk: Spawned), atLeast: Double, hearsOn: String? = nil,
      atMost: Double = longest
    ) async throws {
      let (gateway, phone, trunk) = call
      #expect(try await trunk.finish(within: 40) == 0, "\(trunk.text)\n\(phone.text)")
      _ = try await phone.finish(within: 10)
      #expect(phone.fields("reason", of: "ended") == ["remoteHangup"], "\(phone.text)")
      for side in ["app", "trunk"] {
        let gaps = try EndlessTone.gaps(gateway.folder + "/\(side)-heard.wav")
        print("\(what): \(side) heard \(gaps.seconds) s, longest gap \(gaps.longest) s")
        #expect(
          (side == hearsOn ? 0...atMost : atLeast...atMost).contains(gaps.longest), "\(what): \(side) \(gaps)\n\(phone.text)")
      }
      try await gateway.finish()
    }

    @Test func `a NAT gives the app another port in a call: both sides hear each other again on the same call`() async throws {
      let network = HomeNetwork()
      defer { withExtendedLifetime(network) {} }
      let call = try await connected(network, seconds: 10)
      try await Task.sleep(for: .seconds(2))  // the case itself: it happens in the middle of the tone
      try await network.rebind()
      // the gateway follows after a second of silence, so that less would say that nothing has happened; the trunk hears on meanwhile
      try await expectGaps("rebinding", call, atLeast: 0.5, hearsOn: "trunk")
    }

    @Test func `a router that drops all from now on, with cellular beside it: the call goes on over that to its end`()
      async throws
    {
      let network = HomeNetwork()
      defer { withExtendedLifetime(network) {} }
      let call = try await connected(network, seconds: 16)
      try await Task.sleep(for: .seconds(2))  // the case itself
      try await network.forward(false)
      #expect(
        await eventually(within: 10) { call.phone.events.count { $0["event"] as? String == "online" } == 2 }, "\(call.phone.text)"
      )
      // the end of the call comes over the session's socket: the router is dead for good
      try await expectGaps("dead Wi-Fi", call, atLeast: 0.5)
      #expect(call.phone.fields("pair", of: "media").count == 1, "media has its own paths, and no restart\n\(call.phone.text)")
    }

    @Test func `a network that is dead for 6 s and back: heard again within a second and a half`() async throws {
      let network = HomeNetwork()
      defer { withExtendedLifetime(network) {} }
      network.hasCellular = false
      let call = try await connected(network, seconds: 20)
      try await Task.sleep(for: .seconds(2))  // the case itself
      try await network.forward(false)
      try await Task.sleep(for: .seconds(6))  // the case itself
      try await network.forward(true)
      try await expectGaps("6 s dead", call, atLeast: 5, atMost: 7.5)
    }
  }
}
