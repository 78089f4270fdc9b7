/// Networks whose hosts reach us at the addresses that we listen on, without a translator between.
public struct LocalNetworks: Sendable, Equatable {
  public var networks: [IPNetwork]
  public init(_ networks: [IPNetwork] = []) { self.networks = networks }

  /// Also true for this machine's own hosts, on loopback.
  public func contains(_ peer: IPAddress) -> Bool {
    let peer = peer.unmapped
    return peer.isLoopback || networks.contains { $0.contains(peer) }
  }
}
