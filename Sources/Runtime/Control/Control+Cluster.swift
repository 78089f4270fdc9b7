import CallModel
import Cluster
import GatewayCore
import Logging
public import TrunklineBytes
import TrunklinePlatform
public import TrunklineSIPDialogs

/// The cluster machine's requests: to the shared store, probes of silent nodes, legs of dead ones.
extension Control {
  func perform(_ action: ClusterMachine.Action) {
    guard let cluster = outputs.cluster else { return }  // without a cluster machine there is no action
    switch action {
    case .sharedStore(let id, let request): cluster.post(id, request)
    case .probe(let incarnation, let sip): probe(incarnation, sip)
    case .close(_, let legs): close(legs.compactMap(ours))
    case .reapedBefore(let call): outputs.store.disown(call)
    case .state(let state): cluster.stateChanged(state)
    case .lead(let task, let isOurs): cluster.leads(task, isOurs: isOurs)
    case .nameInUse(let lease, let atStart): cluster.nameInUse(by: lease, atStart: atStart)
    case .incompatible(let lease): cluster.incompatible(with: lease)
    case .forgotten(let node, let outcome): cluster.forgot(node: node, outcome)
    case .news(let message): cluster.received(message)
    case .located, .claimed, .admitted, .tombstone, .troubles, .nodes, .grants, .grantsRestored, .grantsUncertain, .welcome,
      .sessionState, .wakeHere,
      .remote, .replaced, .revoked, .revokedBefore, .orphan, .reaped, .recordsDue, .clock:
      break  // the core's
    }
  }

  /// The leg in the form that we can close: its process's address is not ours.
  private func ours(_ leg: OrphanedLeg) -> OrphanedLeg? {
    guard let flow = leg.flow, let own = outputs.sip.flow(flow.transport, toward: flow.remote) else { return nil }
    return leg.moved(to: own)
  }

  /// SIP OPTIONS to a node; it is silent if it has not answered within `Limits.probe`.
  private func probe(_ incarnation: Incarnation, _ sip: String) {
    guard let uri = NodeAddress(sip), let flow = outputs.sip.flow(uri.transport, toward: uri.address) else {
      return run(.cluster(.probed(incarnation, .silent)))
    }
    probes.append((loop.now + Limits.probe, incarnation))
    if probeTimer == nil { probeTimer = loop.addTimer("probes") { [unowned self] in probesDue() } }
    if let probeTimer, let first = probes.first { loop.setTimer(probeTimer, at: first.at) }
    run(.probe(incarnation, uri: sip, flow))
  }

  /// An earlier answer counts; this one is then ignored.
  private func probesDue() {
    while let first = probes.first, first.at <= loop.now {
      probes.removeFirst()
      run(.cluster(.probed(first.node, .silent)))
    }
    if let probeTimer { loop.setTimer(probeTimer, at: probes.first?.at) }
  }

  /// For the lease and the metrics, once a second.
  func reportLoad() {
    guard core.cluster != nil else { return }
    run(.cluster(.load(calls: Int(metrics.liveCalls), sessions: outputs.apps.sessions, refuses: overload != nil)))
    guard let cluster = core.cluster else { return }
    // Before the first read no node is known, which proves nothing about any.
    let nodes = cluster.nodes
    seenNodes = nodes
    if cluster.state == .up || nodes.count > 1 { outputs.cluster?.nodesSeen(nodes) }
    metrics.cluster.publish(cluster, nodes: nodes, calls: core.machine, at: loop.now)
  }
}

/// `sip:10.0.0.5:5060;transport=tcp`: an address with a port, as leases contain it.
public struct NodeAddress {
  public var transport: TransportProtocol
  public var address: SocketAddress

  public init?(_ uri: String) {
    guard uri.hasPrefix("sip:") else { return nil }
    let parts = uri.dropFirst("sip:".count).split(separator: ";")
    guard let host = parts.first, let address = SocketAddress(String(host)) else { return nil }
    self.address = address
    transport = .udp
    for part in parts.dropFirst() where part.lowercased().hasPrefix("transport=") {
      guard let named = TransportProtocol(rawValue: part.dropFirst("transport=".count).lowercased()) else { return nil }
      transport = named
    }
  }
}
