import Bytes
import CallFlow
import Configuration
import MediaSession
import MediaThreads
import Platform
import SIPDialogs
import SIPTransport

/// What the machines are told, from what the operator wrote.
extension Settings {
  var callConfiguration: CallFlow.Configuration {
    var out = CallFlow.Configuration()
    out.timers.ring = timers.ring
    out.timers.early180 = timers.early180
    out.timers.mediaGateWarm = timers.mediaGateWarm
    out.timers.mediaGateCold = timers.mediaGateCold
    out.timers.mediaGateOutgoing = timers.mediaGateOutgoing
    out.timers.longestCall = timers.longestCall
    out.timers.appLegGrace = timers.appGrace
    out.bounds.calls = limits.calls
    out.bounds.callsPerUser = limits.callsPerUser
    out.declineCode = routes.declineCode
    return out
  }

  var allowList: AllowList { AllowList(trunks.map { ($0.name, $0.peers) }) }

  /// `flow` finds the listener and the local address toward a trunk.
  func routing(_ flow: (TransportProtocol, SocketAddress) -> Flow?) -> Routing {
    let rows = routes.inbound.map { row in
      let target: Routing.InboundRule.Target =
        switch row.target {
        case .users: .users
        case .user(let id): .user(id)
        }
      return Routing.InboundRule(trunk: row.trunk, target: target)
    }
    var out = Routing(
      trunks: trunks.map { $0.routed(flow) }, users: users.map { .init(id: $0.id, numbers: $0.numbers) }, inbound: rows,
      outbound: routes.outbound.map { .init(prefix: $0.prefix, trunk: $0.trunk) })
    if let emergency = routes.emergencyNumbers { out.emergencyNumbers = Set(emergency) }
    return out
  }
}

extension Settings.Trunk {
  fileprivate func routed(_ flow: (TransportProtocol, SocketAddress) -> Flow?) -> Routing.Trunk {
    let policy: SourcePolicy =
      switch rtpSource {
      case .signalledIP: .signalledIP
      case .symmetric: .symmetric
      case .strict: .strict
      }
    return Routing.Trunk(
      name: name, peer: peer(flow), codecs: codecs.map { $0 == .PCMU ? .pcmu : .pcma }, sourcePolicy: policy,
      mediaPeers: mediaPeers, prefersRelay: prefersRelay, maximumCalls: maximumCalls, rules: rules, signalsHold: calls.hold == .signal,
      sendsDigitsByInfo: calls.digits == .info, offersLate: calls.offersLate)
  }

  private var rules: TrunkRules {
    let reliability: TrunkRules.Reliability =
      switch calls.reliability {
      case .off: .off
      case .supported: .supported
      case .required: .required
      }
    return TrunkRules(
      reliability: reliability,
      sessionTimer: calls.sessionSeconds.map { .init(seconds: $0, minimumSeconds: calls.sessionMinimum) },
      redirects: calls.redirects == .follow ? .follow(hosts: Set(calls.redirectHosts)) : .refuse,
      trustsIdentity: calls.trustsIdentity, allowsTransfer: calls.allowsTransfer)
  }

  private func peer(_ flow: (TransportProtocol, SocketAddress) -> Flow?) -> TrunkPeer? {
    guard let uri else { return nil }
    guard let flow = flow(uri.transport == .udp ? .udp : .tcp, uri.address) else { return nil }
    var credentials: Credentials?
    if let username, let password { credentials = Credentials(username: username, password: password.exposed) }
    return TrunkPeer(name: name, domain: uri.domain, flow: flow, credentials: credentials)
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
    return MediaPlaneConfiguration(addresses: found, threads: media.threads, appPort: media.appPort, trunkPorts: media.trunkPorts)
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
