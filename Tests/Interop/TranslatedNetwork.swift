import Foundation
import Glibc

/// A network behind an address translator: a namespace `inside`, where the gateway is 10.9.0.5, a router, and the test's own
/// network as the internet, where peers are 203.0.113.1 and the gateway is known as 203.0.113.5.
final class TranslatedNetwork {
  /// The address of peers.
  static let world = "203.0.113.1"
  /// The router's public address, which the gateway must advertise.
  static let outside = "203.0.113.5"
  /// The router's address in the gateway's network, which a PBX has.
  static let pbx = "10.9.0.1"
  /// The gateway's own address.
  static let gateway = "10.9.0.5"

  /// The token of the gateway's admin port, which another machine uses.
  static let token = "admin-token"

  enum Kind {
    /// Each address has a public one, as with cloud providers.
    case oneToOne
    /// Only these ports lead in; outgoing packets have the router's address and any free port: a container's bridge.
    case publishedPorts([ClosedRange<UInt16>])
    /// As published ports, and the router rewrites SIP of these UDP ports, as nf_nat_sip does in many a router ("SIP ALG").
    case rewritten([ClosedRange<UInt16>], signalling: [UInt16])
  }

  let inside: String
  let router: String
  private let folder: String

  /// Nil if such a network can be made here; else why not.
  static let missing: String? =
    getuid() != 0
    ? "no network namespaces: not root"
    : ["/sbin/ip", "/usr/sbin/nft"].first { !FileManager.default.isExecutableFile(atPath: $0) }.map {
      "no \($0): run Scripts/install test"
    }

  init(_ kind: Kind) async throws {
    let id = "tl\(getpid())"
    (inside, router) = (id + "in", id + "nat")
    folder = NSTemporaryDirectory() + "trunkline-\(id)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let translation =
      switch kind {
      case .oneToOne:
        """
        chain in { type nat hook prerouting priority dstnat; ip daddr \(Self.outside) dnat to \(Self.gateway); }
        chain out { type nat hook postrouting priority srcnat; oif "world" ip saddr \(Self.gateway) snat to \(Self.outside); }
        """
      case .publishedPorts(let ports), .rewritten(let ports, _):
        """
        chain in { type nat hook prerouting priority dstnat; ip daddr \(Self.outside) meta l4proto { tcp, udp } th dport \
        { \(ports.map { "\($0.lowerBound)-\($0.upperBound)" }.joined(separator: ", ")) } dnat to \(Self.gateway); }
        chain out { type nat hook postrouting priority srcnat; oif "world" masquerade random; }
        """
      }
    var rules = "table ip nat {\n\(translation)\n}\n"
    if case .rewritten(_, let signalling) = kind {
      rules += """
        table ip alg {
          ct helper sip { type "sip" protocol udp; }
          chain in { type filter hook prerouting priority 0; udp dport { \(signalling.map(String.init).joined(separator: ", ")) } ct helper set "sip"; }
        }

        """
    }
    try rules.write(toFile: folder + "/rules", atomically: true, encoding: .utf8)
    let script = """
      set -e
      ip netns add \(router); ip netns add \(inside)
      ip link add net2 type veth peer name world netns \(router)
      ip addr add \(Self.world)/24 dev net2; ip link set net2 up
      ip -n \(router) addr add \(Self.outside)/24 dev world; ip -n \(router) link set world up
      ip -n \(router) link add lan type veth peer name eth0 netns \(inside)
      ip -n \(router) addr add 10.9.0.1/24 dev lan; ip -n \(router) link set lan up
      ip -n \(inside) link set lo up
      ip -n \(inside) addr add \(Self.gateway)/24 dev eth0; ip -n \(inside) link set eth0 up
      ip -n \(inside) route add default via 10.9.0.1
      ip netns exec \(router) sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
      ip netns exec \(router) nft -f \(folder)/rules
      """
    let made = try Spawned("network", "/bin/sh", ["-c", script], in: folder)
    guard try await made.finish(within: 20) == 0 else { throw Spawned.Failure(description: made.text) }
  }

  /// The interfaces go with their namespaces.
  deinit {
    for namespace in [router, inside] { Self.delete(namespace) }
    try? FileManager.default.removeItem(atPath: folder)
  }

  /// Waits until the namespace is deleted, a few milliseconds: the next network has the same names.
  static func delete(_ namespace: String) {
    var (status, pid): (Int32, pid_t) = (0, 0)
    let command: [String] = ["/sbin/ip", "netns", "del", namespace]
    let words = command.map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    if posix_spawn(&pid, "/sbin/ip", nil, nil, words, environ) == 0 { waitpid(pid, &status, 0) }
  }
}
