import AppSessions
import Cluster
import CommandSupport
import Control
import Logging
import Store
import TrunklineBytes

/// Control's requests to the shared store, and its reports about this node and the others: for the log, the sessions of apps, the
/// directories and the allow-list of SIP. On the control thread.
final class ClusterReports: ClusterOutput {
  private let cluster: ClusterComponent
  private let app: AppComponent
  private let directory: DirectoryService
  private let peers: TrunkPeers
  private let logger: Logger
  private var reported: SharedStoreState?
  /// SIP addresses of other nodes.
  private var addresses: Set<SocketAddress> = []
  /// Names of nodes with this one's URL, which were logged.
  private var twins: Set<String> = []

  init(_ cluster: ClusterComponent, app: AppComponent, directory: DirectoryService, peers: TrunkPeers, logger: Logger) {
    (self.cluster, self.app, self.directory, self.peers, self.logger) = (cluster, app, directory, peers, logger)
  }

  func post(_ id: SharedStoreRequestID, _ request: SharedStoreRequest) { cluster.post(id, request) }
  func wake() { cluster.wake() }
  func received(_ message: ClusterMessage) { directory.received(message) }

  func leads(_ task: SingleTask, isOurs: Bool) {
    logger.notice(isOurs ? "this node leads a cluster task" : "another node leads a task now", metadata: ["task": "\(task)"])
  }

  func forgot(node: String, _ outcome: ForgetOutcome) {
    logger.notice("a node was forgotten by an operator", metadata: ["node": "\(node)", "outcome": "\(outcome.rawValue)"])
  }

  func stateChanged(_ state: SharedStoreState) {
    guard reported != state else { return }
    reported = state
    switch state {
    case .up:
      logger.notice("this node is part of the cluster", metadata: ["node": "\(cluster.machine.incarnation.node)"])
      directory.reconnected()
    case .isolated: logger.warning("this node has no lease: other nodes send it no calls; its own calls continue")
    case .away:
      logger.warning("the shared store is unavailable: devices of other nodes are woken by push; calls continue")
    }
  }

  func nameInUse(by lease: NodeLease, atStart: Bool) {
    logger.critical(
      "another process has this node's name: give one of them another cluster.node; this one ends",
      metadata: [
        "node": "\(lease.incarnation.node)", "its_sip": "\(lease.sip)", "its_url": "\(lease.url)",
        "its_start": "\(lease.incarnation.started)", "at_start": "\(atStart)",
      ])
    cluster.end()
  }

  func incompatible(with lease: NodeLease) {
    let isOlder = lease.format < Cluster.Limits.format
    logger.critical(
      isOlder
        ? "a node of an older version shares nothing with this one: upgrade it first; this one ends"
        : "a node of a newer version shares nothing with this one: install that version here, or one between; this one ends",
      metadata: [
        "node": "\(lease.incarnation.node)", "its_version": "\(lease.version)", "its_sip": "\(lease.sip)",
        "it_writes": "\(lease.format)", "it_reads": "\(lease.reads)", "this_version": "\(Version.number)",
        "this_writes": "\(Cluster.Limits.format)", "this_reads": "\(Cluster.Limits.oldestFormat...Cluster.Limits.format)",
      ])
    cluster.end()
  }

  // MARK: other nodes, once a second

  /// Sessions are redirected to other nodes, whose OPTIONS are answered.
  func nodesSeen(_ nodes: [SeenNode]) {
    let others = nodes.filter { $0.lease.incarnation != cluster.machine.incarnation && $0.liveness != .dead }
    app.post(
      .nodes(
        others.map {
          SessionNode(
            $0.lease.incarnation.description, url: $0.lease.url, isOpen: $0.liveness == .living && !$0.lease.refuses,
            sessions: $0.lease.sessions)
        }))
    checkURL(nodes)
    let now = Set(
      nodes.filter { $0.lease.incarnation != cluster.machine.incarnation }.compactMap { NodeAddress($0.lease.sip)?.address })
    guard addresses != now else { return }
    addresses = now
    peers.replaceNodes(now)
  }

  /// Logs each other node with this one's URL once: only one of them is reached there.
  private func checkURL(_ nodes: [SeenNode]) {
    let (url, own) = (cluster.machine.url, cluster.machine.incarnation)
    let living = nodes.filter { [.living, .draining].contains($0.liveness) }.map(\.lease)
    let now = Set(NodeLease.sharing(url, among: living, but: own))
    let new = now.subtracting(twins)
    twins = now
    for node in new.sorted() {
      logger.error(
        "another node has the same url as this one: devices that are woken for a call may connect to the wrong node; give each node its own cluster.url",
        metadata: ["node": "\(node)", "url": "\(url)"])
    }
  }
}

extension NodeLease {
  /// Names of other nodes with the same URL.
  static func sharing(_ url: String, among leases: [NodeLease], but own: Incarnation) -> [String] {
    leases.filter { $0.incarnation.node != own.node && $0.url == url }.map(\.incarnation.node)
  }
}
