import TrunklineBytes
import TrunklineSIPDialogs

/// The addresses that may send SIP to us. Packets from all others are dropped unread and unanswered.
///
///     let list = AllowList([("carrier", [IPNetwork("192.0.2.0/24")!])])
///     list.trunk(of: source)          // "carrier" or nil
public struct AllowList: Sendable {
  /// The networks of one prefix length.
  private struct Level {
    var length: Int
    var family: IPAddress.Family
    var trunks: [IPAddress: String]
  }
  /// Longest prefixes first: a look-up costs a dictionary access for each prefix length in use.
  private var levels: [Level] = []
  private let servers: [SocketAddress: String]
  /// The trunk of all unlisted peers, if one accepts them. They must answer a challenge.
  public var anyPeer: String?
  /// Our own proxies: a message from one belongs to the trunk that it names, even if the address is also a trunk's. At most 4,096
  /// count.
  public var edges: [IPNetwork] = [] {
    didSet { edges = Array(edges.prefix(Limits.networks)) }
  }
  /// Other nodes of the cluster, which send liveness checks; at most 4,096 count.
  public var nodes: [SocketAddress] = [] {
    didSet { nodeAddresses = Set(nodes.prefix(Limits.networks).map(\.ip)) }
  }
  private var nodeAddresses: Set<IPAddress> = []
  /// The peer name of other nodes, which belong to no trunk: a configured name cannot contain a blank.
  public static let nodePeer = "other nodes"
  private let serverAddresses: [IPAddress: String]

  /// Trunks and their peers. Where networks overlap, the longest prefix wins, among equal ones the first. At most 4,096 networks
  /// count. `servers`: the targets of our own requests, whose answers must be received; an exact address and port has precedence.
  public init(_ trunks: [(name: String, peers: [IPNetwork])], servers: [(name: String, addresses: [SocketAddress])] = []) {
    var exact: [SocketAddress: String] = [:]
    var hosts: [IPAddress: String] = [:]
    for (name, addresses) in servers {
      for address in addresses.prefix(Limits.networks) {
        if exact[address] == nil { exact[address] = name }
        if hosts[address.ip] == nil { hosts[address.ip] = name }
      }
    }
    (self.servers, serverAddresses) = (exact, hosts)
    let all = trunks.flatMap { trunk in trunk.peers.map { (network: $0, trunk: trunk.name) } }
    let counted = all.enumerated().sorted {
      ($1.element.network.prefixLength, $0.offset) < ($0.element.network.prefixLength, $1.offset)
    }
    for (network, trunk) in counted.map(\.element).prefix(Limits.networks) {
      let (length, family) = (network.prefixLength, network.address.family)
      let index = levels.firstIndex { $0.length == length && $0.family == family } ?? levels.count
      if index == levels.count { levels.append(Level(length: length, family: family, trunks: [:])) }
      let start = network.address.masked(to: length)
      if levels[index].trunks[start] == nil { levels[index].trunks[start] = trunk }
    }
  }

  /// The trunk to which an address belongs; nil for an unlisted one.
  public func trunk(of address: IPAddress) -> String? {
    let address = address.unmapped
    if isEdge(address) { return Edge.peer }
    for level in levels where level.family == address.family {
      if let trunk = level.trunks[address.masked(to: level.length)] { return trunk }
    }
    return serverAddresses[address] ?? (nodeAddresses.contains(address) ? Self.nodePeer : nil)
  }

  /// The same for an address with its port, which distinguishes two trunks at one host.
  public func trunk(of source: SocketAddress) -> String? { listed(source) ?? anyPeer }

  /// The same without the trunk that accepts any peer.
  public func listed(_ source: SocketAddress) -> String? {
    if isEdge(source.ip.unmapped) { return Edge.peer }
    return servers[SocketAddress(source.ip.unmapped, source.port)] ?? trunk(of: source.ip)
  }

  private func isEdge(_ address: IPAddress) -> Bool { edges.contains { $0.contains(address) } }

  /// Whether the configuration names the address.
  public func isListed(_ source: SocketAddress) -> Bool { listed(source) != nil }
}
