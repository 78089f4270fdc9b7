public import Bytes

/// What Via and Contact say of where we are, where peers do not reach us at the address that we listen on: behind NAT, in a container.
///
/// RFC 3261 §18.1.1 and §8.1.1.8 want an address at which the peer reaches us. A name stays a name: some carriers ask for one that
/// our certificate has.
public struct AdvertisedAddresses: Sendable, Equatable {
  /// The listener, which may be a wildcard, and what peers are told instead.
  public struct Listener: Sendable, Equatable {
    public var transport: TransportProtocol
    public var address: SocketAddress
    public var host: AdvertisedHost
    public init(_ transport: TransportProtocol, _ address: SocketAddress, as host: AdvertisedHost) {
      (self.transport, self.address, self.host) = (transport, address, host)
    }
  }

  public var listeners: [Listener]
  /// Peers in these reach the listeners themselves, and are told so.
  public var localNetworks: LocalNetworks

  public init(_ listeners: [Listener] = [], localNetworks: LocalNetworks = LocalNetworks()) {
    (self.listeners, self.localNetworks) = (listeners, localNetworks)
  }

  /// `host:port` for Via and Contact of a message on `flow`. `trunk`: what its configuration says instead of the listeners'.
  public func hostPort(_ flow: Flow, trunk: AdvertisedHost? = nil) -> String {
    guard let host = trunk ?? listener(flow)?.host else { return "\(flow.local)" }
    return "\(host.host):\(host.port ?? flow.local.port)"
  }

  private func listener(_ flow: Flow) -> Listener? {
    guard !listeners.isEmpty, !localNetworks.contains(flow.remote.ip) else { return nil }
    return listeners.first { row in
      row.transport == flow.transport && row.address.port == flow.local.port
        && (row.address.ip == flow.local.ip || (row.address.ip.isUnspecified && row.address.ip.family == flow.local.ip.family))
    }
  }
}
