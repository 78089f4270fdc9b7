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
    list.anyPeer = trunks.first(where: \.acceptsAnyPeer)?.name
    list.edges = edgePeers
    return list
  }

  var edgePeers: [IPNetwork] { cluster?.edges?.peers ?? [] }

  /// - Parameter imported: the numbers of `trunkline users import`.
  /// - Parameter own: `NetworkPlan.own`.
  func routing(_ imported: NumberTable = NumberTable(), own: Set<IPAddress> = []) -> Routing {
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

  /// Everything that peers are told instead of our own addresses.
  var advertisedHosts: [AdvertisedHost] {
    let ofMedia = media.addresses.compactMap { address in
      switch address {
      case .automatic(let host), .fixed(_, let host): host
      }
    }
    return listen.advertised.map(\.host) + ofMedia + trunks.compactMap(\.routing.rules.advertised)
  }

  func advertisedAddresses(_ plan: NetworkPlan) -> AdvertisedAddresses {
    AdvertisedAddresses(listen.advertised, localNetworks: plan.localNetworks)
  }

  /// What in-dialog requests may not be led to. `bound`: where the SIP listeners really are, should port 0 have been asked for.
  func own(_ plan: NetworkPlan, bound: [SocketAddress]) -> OwnAddresses {
    OwnAddresses(
      addresses: plan.own.union(bound.map(\.ip).filter { !$0.isUnspecified }),
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
  /// What `media:` means on this machine now.
  func mediaPlane(_ plan: NetworkPlan) -> MediaPlaneConfiguration {
    var configuration = MediaPlaneConfiguration(
      addresses: plan.media, threads: media.threads, appPort: media.appPort, trunkPorts: media.trunkPorts)
    configuration.localNetworks = plan.localNetworks
    configuration.loadLimit = Double(media.loadLimitPercent) / 100
    return configuration
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
    let isPeer = routing.peers.isEmpty && routing.peerNames.isEmpty && !acceptsAnyPeer
    return located.filter { $0.ip != address.ip } + (isPeer || peers.contains { $0.contains(address.ip) } ? [address] : [])
  }
}
