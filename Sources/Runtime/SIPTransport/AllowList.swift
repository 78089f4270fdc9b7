import Bytes
import SIPDialogs

/// The addresses that may talk SIP to us: everything else gets silence, before a byte of it is looked at.
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
  /// Longest prefixes first: a look-up costs a dictionary access for each length that is used.
  private var levels: [Level] = []
  private let servers: [SocketAddress: String]
  /// The trunk of all other peers, if one accepts peers that no list names. They must answer a challenge.
  public var anyPeer: String?
  /// Proxies of ours: their requests belong to the trunk that they name, whatever other trunk has their address. At most 4,096 count.
  public var edges: [IPNetwork] = [] {
    didSet { edges = Array(edges.prefix(Limits.networks)) }
  }
  /// Other nodes of the cluster, which ask for a sign of life; at most 4,096 count.
  public var nodes: [SocketAddress] = [] {
    didSet { nodeAddresses = Set(nodes.prefix(Limits.networks).map(\.ip)) }
  }
  private var nodeAddresses: Set<IPAddress> = []
  /// What comes from them belongs to no trunk: no configuration can hold a blank in a name.
  public static let nodePeer = "other nodes"
  private let serverAddresses: [IPAddress: String]

  /// Trunks and their peers. Where networks overlap the longer prefix wins, among equals the first. At most 4,096 networks count.
  /// `servers`: where our own requests go, whose answers must be heard; an exact address and port says most of all.
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

  /// The trunk to which an address belongs; nil for a stranger.
  public func trunk(of address: IPAddress) -> String? {
    let address = address.unmapped
    if isEdge(address) { return Edge.peer }
    for level in levels where level.family == address.family {
      if let trunk = level.trunks[address.masked(to: level.length)] { return trunk }
    }
    return serverAddresses[address] ?? (nodeAddresses.contains(address) ? Self.nodePeer : nil)
  }

  /// The same for an address with its port, by which two trunks at one host are told apart.
  public func trunk(of source: SocketAddress) -> String? { listed(source) ?? anyPeer }

  /// The same without the trunk that takes anybody.
  public func listed(_ source: SocketAddress) -> String? {
    if isEdge(source.ip.unmapped) { return Edge.peer }
    return servers[SocketAddress(source.ip.unmapped, source.port)] ?? trunk(of: source.ip)
  }

  private func isEdge(_ address: IPAddress) -> Bool { edges.contains { $0.contains(address) } }

  /// Whether the configuration names a peer with this address.
  public func isListed(_ source: SocketAddress) -> Bool { listed(source) != nil }
}
