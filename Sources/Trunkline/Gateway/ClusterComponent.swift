import AppSessions
import CallFlow
import Cluster
import CommandSupport
import Configuration
import Control
import Foundation
import Glibc
import Logging
import SharedStore
import Store
import Synchronization
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIPDialogs
import TrunklineSIPTransport

/// A gateway's part in a cluster: its incarnation, the tokens that all nodes share, the shared store's thread, and control's
/// reports about other nodes.
final class ClusterComponent: Sendable {
  let machine: ClusterMachine.Settings
  let sessions: SessionCluster
  private let sharedStore: RedisSharedStore
  private let inbox: Inbox
  private let questions: SharedStoreQuestions
  private let logger: Logger
  private let reported = Mutex<SharedStoreState?>(nil)
  private let isEnding = Mutex(false)
  private let seen = Mutex<Set<SocketAddress>>([])
  private let twins = Mutex<Set<String>>([])
  /// Receives other nodes' messages about directories and histories.
  private let directory = Mutex<DirectoryService?>(nil)

  /// Nil: the gateway has no cluster. Throws if the file of the last incarnation cannot be written, or certificates are
  /// unreadable.
  static func make(
    _ settings: Settings, sip: String, inbox: Inbox, readiness: Readiness, logs: Logs
  ) throws -> ClusterComponent? {
    guard let nodes = settings.cluster?.nodes else { return nil }
    return try ClusterComponent(nodes, settings, sip: sip, inbox: inbox, readiness: readiness, logs: logs)
  }

  private init(
    _ nodes: Settings.Nodes, _ settings: Settings, sip: String, inbox: Inbox, readiness: Readiness, logs: Logs
  ) throws {
    let incarnation = Incarnation(node: nodes.name, started: WallClock.nowMilliseconds())
    guard let sessions = SessionCluster(incarnation: incarnation.description, url: nodes.url, key: nodes.key.exposed) else {
      throw GatewayFailure("cluster.key_file is empty, or cluster.node is not a name")
    }
    var machine = ClusterMachine.Settings(
      incarnation, url: nodes.url, sip: sip, version: Version.number, configuration: settings.sharedConfiguration)
    machine.admin = nodes.admin
    machine.predecessor = try Self.replaceIncarnation(in: settings.store + ".node", by: incarnation)
    (machine.lease, machine.renewal, machine.lostAfter) = (nodes.lease, nodes.lease / 3, nodes.lostAfter)
    machine.movesRinging = min(machine.movesRinging, nodes.lostAfter / 2)
    (self.machine, self.sessions, self.inbox) = (machine, sessions, inbox)
    logger = logs.logger("cluster")
    let questions = SharedStoreQuestions()
    self.questions = questions
    var storeSettings = nodes.sharedStore
    storeSettings.key = nodes.key
    sharedStore = try RedisSharedStore(
      storeSettings, node: incarnation, readiness: readiness, logger: logs.logger("shared-store")
    ) {
      [inbox, questions] event in
      if !questions.accepts(event) { inbox.post(.sharedStore(event)) }
    }
  }

  /// Returns the last incarnation from the file beside the journal, and writes the new one.
  private static func replaceIncarnation(in path: String, by new: Incarnation) throws -> Incarnation? {
    let before = FileManager.default.contents(atPath: path).flatMap {
      Incarnation(String(decoding: $0, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines))
    }
    do {
      try Data("\(new)\n".utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
    } catch {
      throw GatewayFailure("cannot write \(path), which names this process for the next one: \(error.localizedDescription)")
    }
    return before?.node == new.node ? before : nil
  }

  /// Connects control with the cluster; on the control thread.
  func join(_ outputs: inout ControlOutputs, store: CallStore, sockets: SIPSockets) {
    outputs.sharedStore = { [sharedStore, inbox] id, request in
      if !sharedStore.post(id, request, gathers: true) { inbox.post(.sharedStore(.reply(id, .failure(.full)))) }
    }
    outputs.disowned = { store.disown($0) }
    outputs.flow = { sockets.flow($0, toward: $1) }
    outputs.clusterNews = { [self] in handle($0, store) }
    let endStep = outputs.endStep
    outputs.endStep = { [sharedStore] in
      endStep()
      sharedStore.wake()
    }
  }

  private func handle(_ action: ClusterMachine.Action, _ store: CallStore) {
    switch action {
    case .state(let state): handle(state)
    case .lead(let task, let isOurs):
      logger.notice(isOurs ? "this node leads a cluster task" : "another node leads a task now", metadata: ["task": "\(task)"])
    case .reapedBefore(let call): store.disown(call)
    case .news(let message): directory.withLock { $0 }?.received(message)
    case .forgotten(let node, let outcome):
      logger.notice("a node was forgotten by an operator", metadata: ["node": "\(node)", "outcome": "\(outcome.rawValue)"])
    case .nameInUse(let lease, let atStart): nameInUse(lease, atStart)
    case .incompatible(let lease): refuseToShare(with: lease)
    default: break
    }
  }

  private func handle(_ state: SharedStoreState) {
    let before = reported.withLock { reported in
      defer { reported = state }
      return reported
    }
    guard before != state else { return }
    switch state {
    case .up:
      logger.notice("this node is part of the cluster", metadata: ["node": "\(machine.incarnation.node)"])
      directory.withLock { $0 }?.reconnected()
    case .isolated: logger.warning("this node has no lease: other nodes send it no calls; its own calls continue")
    case .away:
      logger.warning("the shared store is unavailable: devices of other nodes are woken by push; calls continue")
    }
  }

  /// Another live process has this node's name.
  private func nameInUse(_ lease: NodeLease, _ atStart: Bool) {
    logger.critical(
      "another process has this node's name: give one of them another cluster.node; this one ends",
      metadata: [
        "node": "\(lease.incarnation.node)", "its_sip": "\(lease.sip)", "its_url": "\(lease.url)",
        "its_start": "\(lease.incarnation.started)", "at_start": "\(atStart)",
      ])
    end()
  }

  private func refuseToShare(with lease: NodeLease) {
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
    end()
  }

  private func end() {
    isEnding.withLock { $0 = true }
    _ = kill(getpid(), SIGTERM)
  }

  /// The process ends with status 2: its name is in use, or a node's version does not share with this one.
  var isNameInUse: Bool { isEnding.withLock { $0 } }

  /// The SIP addresses of other nodes, whose OPTIONS are answered; nil if they have not changed.
  func changedAddresses(_ nodes: [SeenNode]) -> Set<SocketAddress>? {
    let now = Set(
      nodes.filter { $0.lease.incarnation != machine.incarnation }.compactMap { NodeAddress($0.lease.sip)?.address })
    return seen.withLock { seen in
      if seen == now { return nil }
      seen = now
      return now
    }
  }

  /// Logs each other node with this one's URL once: only one of them is reached there.
  func checkURL(_ nodes: [SeenNode]) {
    let living = nodes.filter { [.living, .draining].contains($0.liveness) }.map(\.lease)
    let now = Set(NodeLease.sharing(machine.url, among: living, but: machine.incarnation))
    let new = twins.withLock { twins in
      defer { twins = now }
      return now.subtracting(twins)
    }
    for node in new.sorted() {
      logger.error(
        "another node has the same url as this one: devices that are woken for a call may connect to the wrong node; give each node its own cluster.url",
        metadata: ["node": "\(node)", "url": "\(machine.url)"])
    }
  }

  /// Call it before the first message is received.
  func attach(_ service: DirectoryService) { directory.withLock { $0 = service } }

  /// Records of `file` also go to the cluster's stream.
  func stream(_ file: String, of store: CallStore) {
    store.stream(file) { [questions, sharedStore] call, line, answer in
      questions.ask(.append(call, record: line), of: sharedStore) { answer(RecordAnswer($0)) }
    }
  }

  /// Any thread; `answer` is called once, on the shared store's thread or at once.
  func ask(_ request: SharedStoreRequest, _ answer: @escaping SharedStoreQuestions.Answer) {
    questions.ask(request, of: sharedStore, answer)
  }

  /// Call it after control's loop and the store's thread have ended: their last requests are still sent.
  func stop() {
    questions.stop()
    sharedStore.stop()
    directory.withLock { $0 = nil }
  }

  var metrics: [MetricFamily] { sharedStore.metrics }
  var queue: MailboxReading { sharedStore.queue }
}

extension Settings {
  /// The settings that nodes must have in common, in a few characters: nodes that differ are shown.
  var sharedConfiguration: String {
    var text = trunks.map { "\($0.name) \($0.routing.maximumCalls ?? -1) \($0.routing.callsPerSecond ?? -1)" }.joined(
      separator: "\n")
    text += users.map(\.id).joined(separator: " ") + "\(auth.audience) \(calls.bounds.callsPerUser)"
    return String(FNV1a(text.utf8).value, radix: 36)
  }

  /// The SIP address in the lease, for edges and other nodes: with the transport of `edges.sip`, else TCP if we listen on it.
  func nodeAddress(udp: [SocketAddress], tcp: [SocketAddress], _ plan: NetworkPlan) -> String {
    let wanted = cluster?.edges?.sip?.server.transport
    let isTCP = wanted == .tcp || (wanted == nil && !tcp.isEmpty)
    let bound = (isTCP ? tcp : udp).first ?? udp.first ?? tcp.first ?? SocketAddress(.loopback, 5_060)
    let transport: TransportProtocol = isTCP ? .tcp : .udp
    let advertised = listen.advertised.first { $0.transport == transport }?.host
    var (host, port) = (bound.ip, bound.port)
    if let address = advertised?.address { (host, port) = (address, advertised?.port ?? bound.port) }
    if host.isUnspecified { host = plan.outside.first { $0.family == bound.ip.family } ?? .loopback }
    return "sip:\(SocketAddress(host, port))\(transport.uriParameter)"
  }
}

extension NodeLease {
  /// Names of other nodes with the same URL.
  static func sharing(_ url: String, among leases: [NodeLease], but own: Incarnation) -> [String] {
    leases.filter { $0.incarnation.node != own.node && $0.url == url }.map(\.incarnation.node)
  }
}
