public import TrunklineBytes

/// The addresses in Via and Contact where peers do not reach us at the address that we listen on: behind NAT, in a container.
///
/// RFC 3261 §18.1.1 and §8.1.1.8 require an address at which the peer reaches us. A name is not resolved: some carriers require
/// one that our certificate has.
public struct AdvertisedAddresses: Sendable, Equatable {
  /// The listener, which may be a wildcard, and the host that peers get instead.
  public struct Listener: Sendable, Equatable {
    public var transport: TransportProtocol
    public var address: SocketAddress
    public var host: AdvertisedHost
    public init(_ transport: TransportProtocol, _ address: SocketAddress, as host: AdvertisedHost) {
      (self.transport, self.address, self.host) = (transport, address, host)
    }
  }

  public var listeners: [Listener]
  /// Peers in these networks reach the listeners themselves, and get the listeners' addresses.
  public var localNetworks: LocalNetworks

  public init(_ listeners: [Listener] = [], localNetworks: LocalNetworks = LocalNetworks()) {
    (self.listeners, self.localNetworks) = (listeners, localNetworks)
  }

  /// `host:port` for Via and Contact of a message on `flow`. `trunk`: the host of the trunk's configuration, instead of the
  /// listener's.
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
