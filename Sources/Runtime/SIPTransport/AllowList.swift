import Bytes

/// The addresses that may talk SIP to us: everything else gets silence, before a byte of it is looked at.
///
///     let list = AllowList([("carrier", [IPNetwork("192.0.2.0/24")!])])
///     list.trunk(of: source)          // "carrier" or nil
public struct AllowList: Sendable {
  private let entries: [(network: IPNetwork, trunk: String)]

  /// Trunks and their peers. Where networks overlap the longer prefix wins, among equals the first. At most 4,096 networks count.
  public init(_ trunks: [(name: String, peers: [IPNetwork])]) {
    let all = trunks.flatMap { trunk in trunk.peers.map { (network: $0, trunk: trunk.name) } }
    entries = Array(
      all.enumerated().sorted {
        ($1.element.network.prefixLength, $0.offset) < ($0.element.network.prefixLength, $1.offset)
      }.map(\.element).prefix(Limits.networks))
  }

  /// The trunk to which an address belongs; nil for a stranger.
  public func trunk(of address: IPAddress) -> String? {
    let address = address.unmapped
    return entries.first { $0.network.contains(address) }?.trunk
  }
}
