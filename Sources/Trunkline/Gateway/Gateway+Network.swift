import Control
import Logging
import MediaThreads
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIPDialogs
import TrunklineSIPTransport

/// Consequences of changes of our own addresses and of the trunks' servers. On the control thread.
extension Gateway {
  /// DNS has new servers for a trunk. The earlier ones are kept: calls may use them.
  func located(_ trunk: String, _ addresses: [SocketAddress]) {
    var all = located[trunk] ?? []
    for address in addresses where !all.contains(address) { all.append(address) }
    located[trunk] = Array(all.suffix(Self.locatedAddresses))
    admit()
    logPeersView()
  }
  private static let locatedAddresses = 256

  /// Admits the listed peers of every trunk, and the servers found by its name, whose answers must be received.
  func admit() {
    var list = AllowList(
      retired.admitted.map { ($0.name, $0.peers) },
      servers: retired.admitted.map { ($0.name, $0.servers(located: located[$0.name] ?? [])) })
    list.anyPeer = retired.admitted.first(where: \.acceptsAnyPeer)?.name
    list.edges = current.edgePeers
    list.nodes = otherNodes
    sockets.replaceTrunks(list)
  }

  /// The machine's addresses or routes may have changed.
  func moved(_ plan: NetworkPlan) {
    sockets.networkChanged(absent: plan.absent)
    control.moved(
      own: settings.own(plan, bound: sockets.udpAddresses + sockets.tcpAddresses + sockets.tlsAddresses),
      advertised: settings.advertisedAddresses(plan),
      sip: settings.nodeAddress(udp: sockets.udpAddresses, tcp: sockets.tcpAddresses, plan),
      appCandidates: media.appCandidates)
    awaitStableAddresses(plan)
    logPeersView()
  }

  /// Calls under way move once the addresses are stable: an address that is removed and added again, or replaced by another, is
  /// one change. An unchanged state does not restart the wait.
  private func awaitStableAddresses(_ plan: NetworkPlan) {
    let timer = stableTimer ?? loop.addTimer("addresses") { [weak self] in self?.moveCalls() }
    guard changedMachine != plan.machine else { return }
    (stableTimer, changedMachine) = (timer, plan.machine)
    loop.setTimer(timer, at: loop.now + Self.stableTime)
  }
  private static let stableTime = Duration.seconds(2)

  private func moveCalls() {
    changedMachine = nil
    let plan = network.plan
    control.moveCalls { [sockets] flow, hasMoved in
      if !hasMoved, plan.isHere(flow.local.ip) { return nil }
      return sockets.flow(flow.transport, toward: flow.remote).flatMap { $0.local == flow.local ? nil : $0 }
    }
  }

  /// Logs the addresses that peers see, if they have changed since the last line.
  func logPeersView() {
    let logger = logs.logger("sip")
    for view in peersViews() {
      guard loggedViews["\(view.kind) \(view.of)", default: StateNews(said: nil)].line(of: view, at: loop.now) != nil else {
        continue
      }
      var metadata: Logger.Metadata = [view.kind: "\(view.of)", "signalling": "\(view.signalling)"]
      if !view.media.isEmpty { metadata["media"] = "\(view.media)" }
      logger.notice("peers see", metadata: metadata)
    }
  }

  private func peersViews() -> [PeersView] {
    let listeners = settings.views(udp: sockets.udpAddresses, tcp: sockets.tcpAddresses, tls: sockets.tlsAddresses)
    let advertised = settings.advertisedAddresses(network.plan)
    return listeners
      + current.trunks.compactMap { trunk in
        guard let (transport, remote) = trunk.example(located[trunk.name]), let flow = sockets.flow(transport, toward: remote)
        else { return nil }
        let host = trunk.routing.rules.advertised
        guard let media = host?.address ?? self.media.address(advertisedTo: remote.ip) else { return nil }
        return PeersView(
          kind: "trunk", of: trunk.name, signalling: advertised.hostPort(flow, trunk: host), media: "\(media)")
      }
  }
}
