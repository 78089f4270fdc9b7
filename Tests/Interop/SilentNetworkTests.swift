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
      _ what: String, _ call: (GatewayUnderTest, phone: Spawned, trunk: Spawned), atLeast: Double, atMost: Double = longest
    ) async throws {
      let (gateway, phone, trunk) = call
      #expect(try await trunk.finish(within: 40) == 0, "\(trunk.text)\n\(phone.text)")
      _ = try await phone.finish(within: 10)
      #expect(phone.fields("reason", of: "ended") == ["remoteHangup"], "\(phone.text)")
      for side in ["app", "trunk"] {
        let gaps = try EndlessTone.gaps(gateway.folder + "/\(side)-heard.wav")
        print("\(what): \(side) heard \(gaps.seconds) s, longest gap \(gaps.longest) s")
        #expect((atLeast...atMost).contains(gaps.longest), "\(what): \(side) \(gaps)\n\(phone.text)")
      }
      try await gateway.finish()
    }

    @Test func `a NAT gives the app another port in a call: both sides hear each other again on the same call`() async throws {
      let network = HomeNetwork()
      defer { withExtendedLifetime(network) {} }
      let call = try await connected(network, seconds: 10)
      try await Task.sleep(for: .seconds(2))  // the case itself: it happens in the middle of the tone
      try await network.rebind()
      // the gateway follows after a second of silence, so that less would say that nothing has happened
      try await expectGaps("rebinding", call, atLeast: 0.5)
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

/// A telephone behind a home router with NAT, which is its default route, and behind a cellular one that it reaches by its address there.
private final class HomeNetwork: PhoneNetwork {
  /// Known by this on both.
  static let address = "10.93.9.1"
  override var cables: [String] { ["tlhome"] + (hasCellular ? ["tlmobile"] : []) }
  var hasCellular = true
  private var home: String { namespace + "h" }
  private var mobile: String { namespace + "m" }

  override class var missing: String? {
    PhoneNetwork.missing
      ?? ["/usr/sbin/conntrack", "/usr/sbin/nft"].first { !FileManager.default.isExecutableFile(atPath: $0) }.map {
        "no \($0): run Scripts/install test"
      }
  }

  func make() async throws {
    try await run(
      "set -e\nip netns add \(namespace)\nip -n \(namespace) link set lo up\nip addr replace \(Self.address)/32 dev lo")
    try await router(home, "tlhome", lan: "wifi", network: 1)
    try await run("ip -n \(namespace) route add default via 10.93.1.1")
    guard hasCellular else { return }
    try await router(mobile, "tlmobile", lan: "cell", network: 2)
    // by its own address it goes its own way, as on a telephone that has both
    try await run(
      "set -e\nip -n \(namespace) route add default via 10.93.2.1 table 2\nip -n \(namespace) rule add from 10.93.2.2 table 2")
  }

  private func router(_ name: String, _ cable: String, lan: String, network: Int) async throws {
    try await run(
      """
      set -e
      ip netns add \(name); ip -n \(name) link set lo up
      ip link add \(cable) type veth peer name wan netns \(name); ip addr add 10.93.10\(network).1/24 dev \(cable); ip link set \(cable) up
      ip -n \(name) addr add 10.93.10\(network).2/24 dev wan; ip -n \(name) link set wan up
      ip -n \(name) route add default via 10.93.10\(network).1
      ip -n \(name) link add lan type veth peer name \(lan) netns \(namespace)
      ip -n \(name) addr add 10.93.\(network).1/24 dev lan; ip -n \(name) link set lan up
      ip -n \(namespace) addr add 10.93.\(network).2/24 dev \(lan); ip -n \(namespace) link set \(lan) up
      ip netns exec \(name) sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
      """)
    try await rules(name, ports: "40000-44999")
  }

  /// `forwards: false`: what comes is dropped, and nobody is told.
  private func rules(_ name: String, ports: String, forwards: Bool = true) async throws {
    try await run(
      """
      ip netns exec \(name) nft -f - <<'END'
      flush ruleset
      table ip home {
        chain out { type nat hook postrouting priority 100; oifname wan meta l4proto { tcp, udp } masquerade to :\(ports); }
        chain through { type filter hook forward priority 0; \(forwards ? "accept" : "drop"); }
      }
      END
      """)
  }

  /// The router forgets what it had given, and gives other ports.
  func rebind() async throws {
    try await rules(home, ports: "50000-54999")
    try await run("ip netns exec \(home) conntrack -D -p udp")
  }

  /// The way over the home router, without a change of any link.
  func forward(_ isOn: Bool) async throws { try await rules(home, ports: "40000-44999", forwards: isOn) }

  deinit {
    runAtEnd(["/sbin/ip", "netns", "del", home])
    if hasCellular { runAtEnd(["/sbin/ip", "netns", "del", mobile]) }
  }
}
