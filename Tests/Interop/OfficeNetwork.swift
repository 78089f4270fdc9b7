import Foundation
import Glibc

/// The network of an office whose firewall lets no UDP through, in or out, or to one port alone: a namespace `inside` at 10.8.0.2, and the test's own network as the
/// world, at 10.8.0.1.
final class OfficeNetwork {
  static let world = "10.8.0.1"
  let inside: String
  private let link: String

  /// - Parameter port: of a server in the world that UDP may go to.
  init(in folder: String, lettingThrough port: UInt16? = nil) async throws {
    let id = "tl\(getpid())"
    (inside, link) = (id + "of", id + "w")
    let (out, back) = (port.map { "udp dport != \($0) " } ?? "", port.map { "udp sport != \($0) " } ?? "")
    let rules = """
      table ip office {
        chain out { type filter hook output priority 0; oif "eth0" meta l4proto udp \(out)counter drop; }
        chain in { type filter hook input priority 0; iif "eth0" meta l4proto udp \(back)counter drop; }
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
