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
    return list
  }

  var routing: Routing {
    let own = ownAddresses
    let trunks = trunks.map { trunk in
      var out = trunk.routing
      out.ownAddresses = own
      return out
    }
    return Routing(
      trunks: trunks, users: users, inbound: routes.inbound, outbound: routes.outbound, emergencyNumbers: routes.emergencyNumbers)
  }

  /// The addresses that our listeners and media are at; of this machine all, where one of them listens on all.
  var ownAddresses: Set<IPAddress> {
    var all = (listen.sipUDP + listen.sipTCP + listen.sipTLS + [listen.app, listen.admin]).map(\.ip)
    for address in media.addresses { if case .fixed(let bind, let advertise) = address { all += [bind, advertise] } }
    let listensEverywhere =
      all.contains(where: \.isUnspecified) || media.addresses.contains { if case .automatic = $0 { true } else { false } }
    if listensEverywhere, let found = try? localAddresses(loopback: true) { all += found }
    return Set(all.filter { !$0.isUnspecified }.map(\.unmapped))
  }

  /// What in-dialog requests may not be led to. `bound`: where the SIP listeners really are, should port 0 have been asked for.
  func own(bound: [SocketAddress]) -> OwnAddresses {
    OwnAddresses(
      addresses: ownAddresses.union(bound.map(\.ip).filter { !$0.isUnspecified }),
      ports: Set((bound + [listen.app, listen.admin]).map(\.port)).subtracting([0]))
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
      case .automatic: found += try automaticAddresses().map { .init(bind: $0) }
      case .fixed(let bind, let advertise): found.append(.init(bind: bind, advertise: advertise))
      }
    }
    var seen: Set<IPAddress> = []
    found = found.filter { seen.insert($0.advertise).inserted }
    guard !found.isEmpty else { throw GatewayFailure("media.addresses: auto found no address on this machine; name one") }
    var configuration = MediaPlaneConfiguration(
      addresses: found, threads: media.threads, appPort: media.appPort, trunkPorts: media.trunkPorts)
    configuration.loadLimit = Double(media.loadLimitPercent) / 100
    return configuration
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
  /// The servers that may talk to us besides `peers`: those a name has led to. An address in the URI is heard only if `peers`
  /// lists it; a name's servers cannot be listed beforehand.
  func servers(located: [SocketAddress]) -> [SocketAddress] {
    guard let address = serverAddress else { return located }
    return peers.contains { $0.contains(address.ip) } ? [address] : []
  }
}
