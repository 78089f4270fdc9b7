import Bytes
import CallFlow
import CommandSupport
import Configuration
import MediaThreads
import Platform
import SIPDialogs
import SIPTransport
import Trunking

/// What the machines are told, from what the operator wrote.
extension Settings {
  var allowList: AllowList {
    var list = AllowList(trunks.map { ($0.name, $0.peers) }, servers: trunks.map { ($0.name, $0.servers(located: [])) })
    list.anyPeer = trunks.first(where: \.takesAnyPeer)?.name
    list.edges = edgePeers
    return list
  }

  var edgePeers: [IPNetwork] { cluster?.edges?.peers ?? [] }

  /// - Parameter imported: the numbers of `trunkline users import`.
  func routing(_ imported: NumberTable = NumberTable()) -> Routing {
    let own = ownAddresses
    let trunks = trunks.map { trunk in
      var out = trunk.routing
      out.ownAddresses = own
      return out
    }
    var out = Routing(
      trunks: trunks, inbound: routes.inbound, outbound: routes.outbound, emergencyNumbers: routes.emergencyNumbers)
    (out.connectsUsers, out.userSource, out.streamHosts) = (routes.connectsUsers, userSource, routes.streamHosts)
    out.directory = UserDirectory(users, anyone: anyUser, imported: imported, grantRules: grantRules)
    return out
  }

  /// The addresses that our listeners and media are at; of this machine all, where one of them listens on all.
  var ownAddresses: Set<IPAddress> {
    var all = (listen.sipUDP + listen.sipTCP + listen.sipTLS + [listen.app, listen.admin]).map(\.ip)
    for address in media.addresses { if case .fixed(let bind, _) = address { all.append(bind) } }
    all += advertisedHosts.compactMap(\.address)
    let listensEverywhere =
      all.contains(where: \.isUnspecified) || media.addresses.contains { if case .automatic = $0 { true } else { false } }
    if listensEverywhere, let found = try? localAddresses(loopback: true) { all += found }
    return Set(all.filter { !$0.isUnspecified }.map(\.unmapped))
  }

  /// Everything that peers are told instead of our own addresses.
  var advertisedHosts: [AdvertisedHost] {
    let ofMedia = media.addresses.compactMap { address in
      switch address {
      case .automatic(let host), .fixed(_, let host): host
      }
    }
    return listen.advertised.map(\.host) + ofMedia + trunks.compactMap(\.routing.rules.advertised)
  }

  var advertisedAddresses: AdvertisedAddresses { AdvertisedAddresses(listen.advertised, localNetworks: networksAround) }

  /// `local_networks` on this machine as it is now.
  var networksAround: LocalNetworks {
    LocalNetworks(
      localNetworks.flatMap { network in
        switch network {
        case .interfaces: (try? interfaceNetworks()) ?? []
        case .network(let network): [network]
        }
      })
  }

  /// What in-dialog requests may not be led to. `bound`: where the SIP listeners really are, should port 0 have been asked for.
  func own(bound: [SocketAddress]) -> OwnAddresses {
    OwnAddresses(
      addresses: ownAddresses.union(bound.map(\.ip).filter { !$0.isUnspecified }),
      ports: Set((bound + [listen.app, listen.admin]).map(\.port) + listen.advertised.compactMap(\.host.port)).subtracting([0]))
  }

  /// What the SIP listeners can carry; `flow` finds the listener and the local address toward a server.
  func network(_ flow: @escaping @Sendable (TransportProtocol, SocketAddress) -> Flow?) -> TrunkMachine.Network {
    var transports: Set<TransportProtocol> = []
    if !listen.sipUDP.isEmpty { transports.insert(.udp) }
    if !listen.sipTCP.isEmpty { transports.insert(.tcp) }
    if !listen.sipTLS.isEmpty { transports.insert(.tls) }
    let families = Set((listen.sipUDP + listen.sipTCP + listen.sipTLS).map(\.ip.family))
    return TrunkMachine.Network(transports: transports, families: families, flow: flow)
  }
}

extension Settings {
  /// What `media:` means on this machine, with at least one address.
  func mediaPlane() throws -> MediaPlaneConfiguration {
    var found: [MediaPlaneConfiguration.Address] = []
    for address in media.addresses {
      switch address {
      case .automatic(let host):
        var own = try automaticAddresses().map { MediaPlaneConfiguration.Address(bind: $0) }
        if let host { try advertise(host, &own) }
        found += own
      case .fixed(let bind, let host):
        found.append(.init(bind: bind, advertise: try host.map { try resolved($0, bind.family) }, name: host.flatMap(name)))
      }
    }
    var seen: Set<IPAddress> = []
    found = found.filter { seen.insert($0.advertise).inserted }
    guard !found.isEmpty else { throw GatewayFailure("media.addresses: auto found no address on this machine; name one") }
    var configuration = MediaPlaneConfiguration(
      addresses: found, threads: media.threads, appPort: media.appPort, trunkPorts: media.trunkPorts)
    configuration.localNetworks = networksAround
    configuration.loadLimit = Double(media.loadLimitPercent) / 100
    return configuration
  }

  /// `host` stands for the one of our addresses that is on the route to it.
  private func advertise(_ host: AdvertisedHost, _ own: inout [MediaPlaneConfiguration.Address]) throws {
    let families = Set(own.map(\.bind.family))
    let address = try host.address ?? resolved(host, families.contains(.v4) ? .v4 : .v6)
    let route = routeAddress(toward: SocketAddress(address, 0))
    let index = own.firstIndex { $0.bind == route } ?? own.firstIndex { $0.bind.family == address.family && !$0.bind.isLoopback }
    guard let index else {
      throw GatewayFailure("media.addresses: advertise \(host): no address of this machine is of its family")
    }
    (own[index].advertise, own[index].name) = (address, name(host))
  }

  private func name(_ host: AdvertisedHost) -> String? { host.address == nil ? host.host : nil }

  private func resolved(_ host: AdvertisedHost, _ family: IPAddress.Family) throws -> IPAddress {
    guard let address = host.address ?? lookUp(host.host, family) else {
      throw GatewayFailure(
        "media.addresses: advertise: \(host) has no \(family == .v4 ? "IPv4" : "IPv6") address in DNS; write the address, or mend the name"
      )
    }
    return address
  }

  /// The machine's own addresses. Loopback comes last, and only for trunks on this very machine: apps never use it for ICE.
  private func automaticAddresses() throws -> [IPAddress] {
    let loopbackTrunk = trunks.contains { trunk in trunk.peers.contains { $0.address.isLoopback } }
    return try localAddresses(loopback: loopbackTrunk ? true : nil)
  }
}

/// Why a gateway cannot start; says what an operator can do.
struct GatewayFailure: Error, CustomStringConvertible {
  var description: String
  init(_ description: String) { self.description = description }
}

extension Settings.Trunk {
  /// The servers that may talk to us besides `peers`: those that names have led to. An address in the URI is heard only if `peers`
  /// lists it, or is not there; a name's servers cannot be listed beforehand.
  func servers(located: [SocketAddress]) -> [SocketAddress] {
    guard let address = serverAddress else { return located }
    let isPeer = routing.peers.isEmpty && routing.peerNames.isEmpty && !takesAnyPeer
    return located.filter { $0.ip != address.ip } + (isPeer || peers.contains { $0.contains(address.ip) } ? [address] : [])
  }
}
