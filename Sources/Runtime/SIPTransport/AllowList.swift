import Bytes

/// The addresses that may talk SIP to us: everything else gets silence, before a byte of it is looked at.
///
///     let list = AllowList([("carrier", [IPNetwork("192.0.2.0/24")!])])
///     list.trunk(of: source)          // "carrier" or nil
public struct AllowList: Sendable {
  private let entries: [(network: IPNetwork, trunk: String)]
  private let servers: [SocketAddress: String]
  /// The trunk of everybody else, if one takes peers that no list names. They must answer a challenge.
  public var anyPeer: String?
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
    entries = Array(
      all.enumerated().sorted {
        ($1.element.network.prefixLength, $0.offset) < ($0.element.network.prefixLength, $1.offset)
      }.map(\.element).prefix(Limits.networks))
  }

  /// The trunk to which an address belongs; nil for a stranger.
  public func trunk(of address: IPAddress) -> String? {
    let address = address.unmapped
    return entries.first { $0.network.contains(address) }?.trunk ?? serverAddresses[address]
  }

  /// The same for an address with its port, by which two trunks at one host are told apart.
  public func trunk(of source: SocketAddress) -> String? {
    servers[SocketAddress(source.ip.unmapped, source.port)] ?? trunk(of: source.ip) ?? anyPeer
  }

  /// Whether an address is somebody's that the configuration names.
  public func isListed(_ source: SocketAddress) -> Bool {
    servers[SocketAddress(source.ip.unmapped, source.port)] != nil || trunk(of: source.ip) != nil
  }
}
