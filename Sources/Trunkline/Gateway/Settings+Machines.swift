import CallFlow
import CallModel
import CommandSupport
import Configuration
import MediaThreads
import Trunking
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIPDialogs
import TrunklineSIPTransport

/// The operator's settings, converted to those of the machines.
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

  /// All hosts that are advertised to peers instead of our own addresses.
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

  /// Addresses to which in-dialog requests must not be directed. `bound`: the real addresses of the SIP listeners, in case port 0
  /// was requested.
  func own(_ plan: NetworkPlan, bound: [SocketAddress]) -> OwnAddresses {
    OwnAddresses(
      addresses: plan.own.union(bound.map(\.ip).filter { !$0.isUnspecified }),
      ports: Set((bound + [listen.app, listen.admin]).map(\.port) + listen.advertised.compactMap(\.host.port)).subtracting([0]))
  }

  /// The transports and address families of the SIP listeners; `flow` finds the listener and the local address toward a server.
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
  /// `media:` applied to this machine's current addresses.
  func mediaPlane(_ plan: NetworkPlan) -> MediaPlaneConfiguration {
    var configuration = MediaPlaneConfiguration(
      addresses: plan.media, threads: media.threads, appPort: media.appPort, trunkPorts: media.trunkPorts)
    configuration.localNetworks = plan.localNetworks
    configuration.loadLimit = Double(media.loadLimitPercent) / 100
    return configuration
  }
}

/// Why a gateway cannot start; states what an operator can do.
struct GatewayFailure: Error, CustomStringConvertible {
  var description: String
  init(_ description: String) { self.description = description }
}

extension Settings.Trunk {
  /// The servers that may send to us besides `peers`: those found by names. An address in the URI is accepted only if `peers`
  /// lists it, or if there are no peers; a name's servers cannot be listed beforehand.
  func servers(located: [SocketAddress]) -> [SocketAddress] {
    guard let address = serverAddress else { return located }
    let isPeer = routing.peers.isEmpty && routing.peerNames.isEmpty && !acceptsAnyPeer
    return located.filter { $0.ip != address.ip } + (isPeer || peers.contains { $0.contains(address.ip) } ? [address] : [])
  }
}
