import TrunklineBytes
import TrunklinePlatform
import TrunklineSIPDialogs

/// Checks for addresses at which peers cannot reach us.
extension ConfigurationParser {
  /// `serve --check`: finds addresses that the machine does not have. `serve` waits for them, and calls with it.
  func checkOwnAddresses(_ configuration: Settings) {
    let listen = configuration.listen
    let listeners =
      listen.sipUDP.map { ("listen.sip.udp", $0.ip) } + listen.sipTCP.map { ("listen.sip.tcp", $0.ip) }
      + listen.sipTLS.map { ("listen.sip.tls", $0.ip) } + [("listen.app", listen.app.ip), ("listen.admin", listen.admin.ip)]
    let media = configuration.media.addresses.enumerated().compactMap { index, address -> (String, IPAddress)? in
      if case .fixed(let bind, _) = address { ("media.addresses[\(index)]", bind) } else { nil }
    }
    for (path, ip) in listeners + media where !ip.isUnspecified && !isBindable(ip) {
      let own = (try? localAddresses(loopback: true)) ?? []
      problem(
        at: path,
        "\(ip) is not an address of this machine, which has \(own.map(\.description).joined(separator: ", ")): serve starts and waits for it; "
          + "an address that peers reach us at from outside goes into advertise", .warning)
    }
  }

  /// `serve --check`: trunks that are down permanently, since no listener has their transport and address family. `serve` starts
  /// nevertheless, for the other trunks.
  func checkReach(_ configuration: Settings) {
    guard configuration.cluster?.edges == nil else { return }
    let listen = configuration.listen
    func name(_ family: IPAddress.Family) -> String { family == .v4 ? "IPv4" : "IPv6" }
    for (index, trunk) in configuration.trunks.enumerated() {
      let path = "trunks[\(index)]"
      if let uri = trunk.uri, let address = trunk.serverAddress?.ip {
        let transport: TransportProtocol = uri.isSecure ? .tls : uri.transport ?? .udp
        let listeners = listen.sip(transport)
        guard !listeners.contains(where: { $0.ip.family == address.family }) else { continue }
        // a named transport without a listener was reported before
        guard !listeners.isEmpty || (uri.transport == nil && !uri.isSecure) else { continue }
        let missing = listeners.isEmpty ? transport.rawValue.uppercased() : name(address.family)
        let section = uri.transport == nil ? "listen.sip" : "listen.sip.\(transport.rawValue)"
        problem(at: path + ".uri", "no \(missing) listener of \(section) reaches \(address): add one, or leave the trunk out")
      } else if trunk.uri == nil, !trunk.peers.isEmpty, trunk.routing.peerNames.isEmpty {
        let families = Set((listen.sipUDP + listen.sipTCP + listen.sipTLS).map(\.ip.family))
        guard trunk.peers.allSatisfy({ !families.contains($0.address.unmapped.family) }) else { continue }
        problem(
          at: path + ".peers", "none of its peers reaches a listener: they are of another address family than all of listen.sip")
      }
    }
  }

  /// A private address that is advertised to a peer on the internet: the peer's answers would be lost.
  func checkAdvertised(_ configuration: Settings) {
    let around = LocalNetworks(
      configuration.localNetworks.flatMap { network in
        switch network {
        case .interfaces: triesFiles ? (try? interfaceNetworks()) ?? [] : []
        case .network(let network): [network]
        }
      })
    for (index, trunk) in configuration.trunks.enumerated() {
      let peers = ([trunk.serverAddress?.ip].compactMap(\.self) + trunk.peers.map(\.address)).map(\.unmapped)
      let isOutside = { (ip: IPAddress) in !ip.isUnspecified && !ip.isPrivate && !around.contains(ip) }
      guard let peer = peers.first(where: isOutside) else { continue }
      let own = trunk.routing.rules.advertised
      let advertised = [
        ("SIP", own.map { $0.address } ?? signalling(advertisedTo: peer, trunk, configuration.listen)),
        ("media", own?.address ?? media(advertisedTo: peer, configuration.media)),
      ]
      for (what, address) in advertised {
        guard let address, address.isPrivate else { continue }
        problem(
          at: "trunks[\(index)]",
          "\(peer) is outside local_networks and would get \(address) for \(what), which is reachable only in this network: give \(what == "SIP" ? "the listener" : "media.addresses")"
            + " advertise: with the address outside, or name the peer's network in local_networks", .warning)
      }
    }
  }

  /// Nil if the file does not state an address, or a name is advertised.
  private func signalling(advertisedTo peer: IPAddress, _ trunk: Settings.Trunk, _ listen: Settings.Listen) -> IPAddress? {
    let transport: TransportProtocol = trunk.uri?.isSecure == true ? .tls : trunk.uri?.transport ?? .udp
    guard let listener = listen.sip(transport).first(where: { $0.ip.family == peer.family && !$0.ip.isLoopback }) else {
      return nil
    }
    if let advertised = listen.advertised.first(where: { $0.transport == transport && $0.address == listener }) {
      return advertised.host.address
    }
    return listener.ip.isUnspecified ? routed(toward: peer) : listener.ip
  }

  private func media(advertisedTo peer: IPAddress, _ media: Settings.Media) -> IPAddress? {
    let advertised = media.addresses.compactMap { address -> IPAddress? in
      switch address {
      case .automatic(let host): host.map { $0.address } ?? routed(toward: peer)
      case .fixed(let bind, let host): host.map { $0.address } ?? bind
      }
    }
    let fitting = advertised.filter { $0.family == peer.family && !$0.isLoopback }
    return fitting.first { !$0.isPrivate } ?? fitting.first
  }

  private func routed(toward peer: IPAddress) -> IPAddress? { triesFiles ? routeAddress(toward: SocketAddress(peer, 5060)) : nil }
}

extension Settings.Listen {
  /// The SIP listeners of one transport.
  func sip(_ transport: TransportProtocol) -> [SocketAddress] {
    switch transport {
    case .udp: sipUDP
    case .tcp: sipTCP
    case .tls: sipTLS
    }
  }
}
