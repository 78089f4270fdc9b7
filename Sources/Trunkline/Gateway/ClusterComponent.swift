import AppSessions
import CallFlow
import CallModel
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

/// A gateway's part in a cluster: its incarnation, the tokens that all nodes share, and the shared store's thread.
final class ClusterComponent: Sendable {
  let machine: ClusterMachine.Settings
  let sessions: SessionCluster
  private let sharedStore: RedisSharedStore
  private let inbox: Inbox
  private let questions: SharedStoreQuestions
  private let isEnding = Mutex(false)

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
    let questions = SharedStoreQuestions()
    self.questions = questions
    var storeSettings = SharedStoreSettings(nodes.sharedStore)
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

  /// A request of control; the answer is posted to its inbox.
  func post(_ id: SharedStoreRequestID, _ request: SharedStoreRequest) {
    if !sharedStore.post(id, request, gathers: true) { inbox.post(.sharedStore(.reply(id, .failure(.full)))) }
  }

  /// Wakes the shared store's thread if it has requests of `post`.
  func wake() { sharedStore.wake() }

  /// This process must not take part: it ends with status 2.
  func end() {
    isEnding.withLock { $0 = true }
    _ = kill(getpid(), SIGTERM)
  }

  /// The process ends with status 2: its name is in use, or a node's version does not share with this one.
  var isNameInUse: Bool { isEnding.withLock { $0 } }

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

extension SharedStoreSettings {
  /// What the file says; nothing is signed.
  init(_ settings: Settings.SharedStore) {
    self.init(settings.servers, prefix: settings.prefix)
    (username, password, tls) = (settings.username, settings.password, settings.tls)
  }
}
