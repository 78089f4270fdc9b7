import Foundation
import Glibc

/// The network of an office whose firewall lets no UDP through, in or out: a namespace `inside` at 10.8.0.2, and the test's own network as the
/// world, at 10.8.0.1.
final class OfficeNetwork {
  static let world = "10.8.0.1"
  let inside: String
  private let link: String

  init(in folder: String) async throws {
    let id = "tl\(getpid())"
    (inside, link) = (id + "of", id + "w")
    let rules = """
      table ip office {
        chain out { type filter hook output priority 0; oif "eth0" meta l4proto udp counter drop; }
        chain in { type filter hook input priority 0; iif "eth0" meta l4proto udp counter drop; }
      }

      """
    try rules.write(toFile: folder + "/office.nft", atomically: true, encoding: .utf8)
    let script = """
      set -e
      ip netns add \(inside)
      ip link add \(link) type veth peer name eth0 netns \(inside)
      ip addr add \(Self.world)/24 dev \(link); ip link set \(link) up
      ip -n \(inside) link set lo up
      ip -n \(inside) addr add 10.8.0.2/24 dev eth0; ip -n \(inside) link set eth0 up
      ip -n \(inside) route add default via \(Self.world)
      ip netns exec \(inside) nft -f \(folder)/office.nft
      """
    let made = try Spawned("office", "/bin/sh", ["-c", script], in: folder)
    guard try await made.finish(within: 20) == 0 else { throw Spawned.Failure(description: made.text) }
  }

  /// The SDK inside, which trusts the certificate of `turn.pem` alone; the gateway's app port is at 8080 of its loopback.
  func swiftPhone(_ gateway: GatewayUnderTest, _ arguments: [String]) async throws -> Spawned {
    let token = try await gateway.token("alice", "office")
    let phone = try Spawned(
      "phone", "/sbin/ip",
      [
        "netns", "exec", inside, Surroundings.lab, "phone", "--url", "ws://127.0.0.1:8080/v1/connect", "--token", token,
        "--device",
        "office", "--events",
      ] + arguments, in: gateway.folder, environment: ["SSL_CERT_FILE": gateway.folder + "/turn.pem"])
    _ = try await phone.event("online", within: 15)
    return phone
  }

  /// Packets that the firewall has dropped.
  func dropped(in folder: String) async throws -> Int {
    let list = try Spawned(
      "nft", "/sbin/ip", ["netns", "exec", inside, "/usr/sbin/nft", "list", "table", "ip", "office"], in: folder)
    guard try await list.finish(within: 10) == 0 else { throw Spawned.Failure(description: list.text) }
    return list.text.matches(of: /packets ([0-9]+)/).compactMap { Int($0.1) }.reduce(0, +)
  }

  /// The link goes with its namespace.
  deinit { TranslatedNetwork.delete(inside) }
}
