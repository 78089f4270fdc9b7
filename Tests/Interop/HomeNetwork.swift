import Foundation
import Glibc
import Testing

/// A client behind a home router with NAT, which is its default route, and behind a cellular one that it reaches by its address there.
final class HomeNetwork: PhoneNetwork {
  /// Known by this on both.
  static let address = "10.93.9.1"
  /// The client itself, at home.
  static let inside = "10.93.1.2"
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
    try await router(home, "tlhome", lan: "home0", network: 1)
    try await run("ip -n \(namespace) route add default via 10.93.1.1")
    guard hasCellular else { return }
    // Chromium prefers the first of several networks of one kind, by their names: the home's.
    try await router(mobile, "tlmobile", lan: "mobile0", network: 2)
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

  /// - Parameters:
  ///   - forwards: false: the router drops every packet and sends no error.
  ///   - udpLoss: percent of the datagrams, each way.
  private func rules(_ name: String, ports: String, forwards: Bool = true, udpLoss: Int = 0) async throws {
    try await run(
      """
      ip netns exec \(name) nft -f - <<'END'
      flush ruleset
      table ip home {
        chain out { type nat hook postrouting priority 100; oifname wan meta l4proto { tcp, udp } masquerade to :\(ports); }
        chain through {
          type filter hook forward priority 0;
          \(udpLoss >= 100 ? "meta l4proto udp drop" : udpLoss > 0 ? "meta l4proto udp numgen random mod 100 < \(udpLoss) drop" : "")
          \(forwards ? "accept" : "drop")
        }
      }
      END
      """)
  }

  /// In the client's network.
  func spawn(_ name: String, _ program: String, _ arguments: [String], _ gateway: GatewayUnderTest) throws -> Spawned {
    try Spawned(
      name, "/sbin/ip", ["netns", "exec", namespace, program] + arguments, in: gateway.folder,
      environment: ["PYTHONUNBUFFERED": "1", "OPENBLAS_NUM_THREADS": "1"])
  }

  /// The router forgets what it had given, and gives other ports.
  func rebind() async throws {
    try await rules(home, ports: "50000-54999")
    try await run("ip netns exec \(home) conntrack -D -p udp")
  }

  /// New connections go over cellular, as where a system no longer believes in its Wi-Fi; those that are stay where they are. No event says so.
  func connectOverCellular() async throws {
    try await run(
      """
      set -e
      ip -n \(namespace) route add default via 10.93.1.1 table 1
      ip -n \(namespace) rule add from 10.93.1.2 table 1 priority 100
      ip -n \(namespace) rule add ipproto tcp table 2 priority 200
      """)
  }

  /// The way over the home router, without a change of any link.
  func forward(_ isOn: Bool) async throws { try await rules(home, ports: "40000-44999", forwards: isOn) }

  /// Packets that the home router has sent to and received from its provider.
  func homePackets() async throws -> Int {
    let text = try await run("ip netns exec \(home) sh -c 'cat /sys/class/net/wan/statistics/?x_packets'")
    return text.split(separator: "\n").compactMap { Int($0) }.reduce(0, +)
  }

  /// The home router loses so many percent of all datagrams, each way; TCP passes.
  func loseDatagrams(_ percent: Int) async throws { try await rules(home, ports: "40000-44999", udpLoss: percent) }

  deinit {
    runAtEnd(["/sbin/ip", "netns", "del", home])
    if hasCellular { runAtEnd(["/sbin/ip", "netns", "del", mobile]) }
  }
}
