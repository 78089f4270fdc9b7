import AppServer
import AppSessions
import CallFlow
import Cluster
import CommandSupport
import Configuration
import Control
import Logging
import MediaThreads
import PushSender
import Store
import Synchronization
import Telemetry
import Trunking
import TrunklineBytes
import TrunklineDTLS
import TrunklinePlatform
import TrunklineResolver
import TrunklineSIPDialogs
import TrunklineSIPTrace
import TrunklineSIPTransport

/// The assembled gateway: only this type makes and connects Runtime types.
///
///     trunks ⇄ SIPSockets ⇄ Control ⇄ AppServer ⇄ apps
///                             ⇅  ↓
///                       MediaPlane  CallStore
final class Gateway: @unchecked Sendable {
  // Everything is made in `init` and only used through thread-safe entry points afterwards; state of the control thread is used
  // by closures posted to its loop.
  let settings: Settings
  let logs: Logs
  private let descriptors: DescriptorLimit
  let loop: EventLoop
  private let readiness = Readiness()
  private let registry = MetricRegistry()
  private let inbox: Inbox
  private let store: CallStore
  let media: MediaPlane
  private let app: AppComponent
  private let push: PushComponent
  private let hooks: Webhooks
  private let directory: DirectoryService
  /// Nil: no events are kept.
  private let events: EventSender?
  private let audio: AudioComponent
  private let wakes: WakeTokens
  /// Nil: a gateway without a cluster.
  private let cluster: ClusterComponent?
  var otherNodes: [SocketAddress] = []
  let sockets: SIPSockets
  private let resolver: Resolver
  private let verifier: CallerVerifier?
  let control: Control
  private var thread: NamedThread?
  var retired: RetiredTrunks
  private var retirement: EventLoop.TimerID?
  /// The last configuration that SIGHUP applied; its `listen` is not used: that of the start stays in force.
  var current: Settings
  private let certificates: CertificateWatch
  private let hep: HEPOutlet?
  let network: NetworkComponent
  /// The last lines of `logPeersView`, so that none is repeated, and each view gets only a few lines however fast the network
  /// changes.
  var loggedViews: [String: StateNews<PeersView?>] = [:]
  var located: [String: [SocketAddress]] = [:]
  /// The addresses to which calls under way move once they are stable; nil: no change is pending.
  var changedMachine: MachineAddresses?
  var stableTimer: EventLoop.TimerID?
  private let state = Mutex((drained: false, ending: false))
  /// Called when the last call has ended, and when the registrars have answered.
  private let waiting = Mutex<(drained: (@Sendable () -> Void)?, left: (@Sendable () -> Void)?)>((nil, nil))

  /// Opens every file and socket and starts the threads of store, media and apps; throws with the address or file that failed.
  init(_ settings: Settings, watch: ThreadWatch, logs: Logs) throws {
    self.settings = settings
    self.logs = logs
    logs.watch(readiness)
    registry.register(watch.metrics)
    retired = RetiredTrunks(settings.trunks)
    current = settings
    certificates = try CertificateWatch(settings)
    descriptors = Self.descriptors(settings, logs.logger("trunkline"))
    EventLoop.reportStuckTimers { [logger = logs.logger("trunkline")] loop, timer in
      logger.error(
        "a timer's deadline makes no progress; the timer continues at a bounded rate. Please report this fault",
        metadata: ["loop": "\(loop)", "timer": "\(timer)"])
    }
    let network = try NetworkComponent(settings, readiness: readiness, logger: logs.logger("network"))
    self.network = network
    loop = try EventLoop(name: "control")
    let inbox = try Inbox()
    self.inbox = inbox
    let asker = try Asker(inbox: inbox)
    let reference = ControlReference()
    let sockets = try SIPSockets(
      loop: loop, udp: settings.listen.sipUDP, tcp: settings.listen.sipTCP, tls: settings.listen.sipTLS,
      trunks: settings.allowList, logger: logs.logger("sip")
    ) { [reference] input in reference.control?.handle(input) }
    self.sockets = sockets
    sockets.setTLS(server: settings.listen.sipServer, trunks: settings.clientTLS)
    sockets.networkChanged(absent: network.plan.absent)
    let traces = TraceCollector(application: Version.text)
    let outlet = try settings.hep.map {
      try HEPOutlet(to: $0.address, captureID: $0.captureID, key: $0.key?.exposed ?? [], logger: logs.logger("hep"))
    }
    hep = outlet
    sockets.tap = {
      traces.saw($0, $1, isOurs: $2, trunk: $3)
      outlet?.saw($0, $1, isOurs: $2, trunk: $3)
    }
    let cluster = try ClusterComponent.make(
      settings, sip: settings.nodeAddress(udp: sockets.udpAddresses, tcp: sockets.tcpAddresses, network.plan), inbox: inbox,
      readiness: readiness,
      logs: logs)
    self.cluster = cluster
    // A key for this process: no call for which a device is woken outlives it.
    guard let wakes = cluster?.sessions.wakeTokens ?? WakeTokens(random: .system) else {
      throw GatewayFailure("no random bytes for wake tokens")
    }
    self.wakes = wakes
    push = try PushComponent(settings, inbox: inbox, logger: logs.logger("push"))
    hooks = try Webhooks(tls: TLSFiles(authorities: settings.routes.webhookAuthorities), logger: logs.logger("webhook")) {
      [inbox] call, answer in
      inbox.post(.routed(call, answer))
    } user: { [inbox] question, answer in
      inbox.post(.userKnown(question, answer))
    }
    let directory = try Self.directory(settings, cluster, logs)
    self.directory = directory
    app = AppComponent(
      settings, readiness: readiness, registry: registry, inbox: inbox, asker: asker, traces: traces, push: push, wakes: wakes,
      cluster: cluster, directory: directory, watch: watch, logs: logs)
    store = try CallStore(
      sqlite: settings.store, records: settings.records,
      events: settings.events.map { _ in EventSettings(folder: settings.eventFolder, source: settings.eventSource) },
      keepsOrphans: cluster != nil, readiness: readiness,
      logger: logs.logger("store"), written: { [directory] in directory.written($0) })
    events = try settings.events.map {
      try EventSender(
        folder: settings.eventFolder, webhooks: $0.webhooks, tls: TLSFiles(authorities: $0.authorities), random: .system,
        logger: logs.logger("events"))
    }
    store.onEvents { [events, app] in
      events?.wake()
      app.wakeStreams()
    }
    audio = try AudioComponent(settings, inbox: inbox, logs: logs)
    let identity = try DTLSIdentity()
    media = try MediaPlane(configuration: settings.mediaPlane(network.plan), identity: identity, logger: logs.logger("media")) {
      [inbox] event in
      inbox.post(.media(event))
    }
    let (app, media, store, push, hooks) = (app, media, store, push, hooks)
    let resolver = try Resolver(loop: loop, servers: settings.dns.servers, logger: logs.logger("dns")) {
      [reference] question, answer in
      reference.control?.resolved(question, answer)
    }
    self.resolver = resolver
    var outputs = ControlOutputs(
      sendSIP: { sockets.send($0) },
      sendApp: { app.post($0) },
      sendMedia: { command in
        // `send` is also false for a session that has ended, which is no loss. Only control sends, so the count shows a loss.
        let lost = media.metrics.undelivered.value
        return media.send(command, gathers: true) || media.metrics.undelivered.value == lost
      },
      reserveMedia: { request in
        do {
          return try media.reserve(
            session: request.session, user: request.user, others: request.others, toward: request.toward,
            asked: request.asked.map { ($0.local.ip, $0.remote.ip) }, gathers: true)
        } catch MediaReservationError.overloaded {
          throw MediaOverload("\(MediaReservationError.overloaded)")
        }
      },
      journal: { line, confirm in
        traces.began(line.call, callID: line.sipCallId)
        store.start(line, gathers: true, confirm: confirm)
      },
      record: { record in
        app.recent.note(record)
        store.end(record)
      })
    let memoryLimit =
      settings.limits.memoryMebibytes > 0 ? Int64(settings.limits.memoryMebibytes) << 20 : ProcessMemory.limitBytes()
    outputs.moveMedia = { [network] request in
      guard let trunk = request.toward else { return nil }
      let plan = network.plan
      return try media.move(session: request.session, toward: trunk) { plan.isHere($0) }
    }
    outputs.endStep = {
      media.wake()
      store.wake()
    }
    outputs.authenticated = { sockets.authenticated($0) }
    outputs.silent = { sockets.wasSilent($0, since: $1) }
    outputs.backlog = { sockets.backlog }
    outputs.memory = { (ProcessMemory.residentBytes(), memoryLimit) }
    outputs.mediaShortage = {
      switch media.shortage {
      case .overloaded: .cpu
      case .portsExhausted: .ports
      default: nil
      }
    }
    outputs.overloaded = { [readiness] reason in
      readiness.set("load", ready: reason == nil, why: "overloaded (\(reason?.rawValue ?? "")): new calls get 503")
    }
    outputs.trunkStatuses = { [readiness] in
      readiness.set(trunks: $0)
      app.statusFacts.note($0)
    }
    outputs.lookUp = { resolver.ask($0) }
    outputs.trunkNews = { [reference] news in
      guard case .located(let trunk, let addresses) = news else { return }
      reference.gateway?.located(trunk, addresses)
    }
    let verifier = try settings.verifier.map {
      try CallerVerifier(url: $0.url, authorities: $0.authorities, logger: logs.logger("verify"))
    }
    self.verifier = verifier
    outputs.verify = { [inbox] call, question in
      verifier?.ask(
        CallerQuestion(identities: question.identities, from: question.from, to: question.to, date: question.date)
      ) { inbox.post(.verified(call, attestation: $0)) }
    }
    outputs.push = { push.push($0, $1, $2, $3, since: $4) }
    outputs.pushCallOver = { push.callOver($0) }
    outputs.askRoute = { hooks.ask($0, $1) }
    outputs.askUser = { [inbox] question, hook in
      if !hooks.ask(question, hook) { inbox.post(.userKnown(question, nil)) }
    }
    outputs.devices = { store.change($0) }
    outputs.grants = { store.change($0) }
    outputs.event = { store.append($0) }
    outputs.answered = { asker.answered($0, $1) }
    outputs.drained = { [reference] in reference.gateway?.drained() }
    outputs.left = { [reference] in reference.gateway?.left() }
    audio.join(&outputs)
    cluster?.join(&outputs, store: store, sockets: sockets)
    if settings.streamsRecords { cluster?.stream(settings.records, of: store) }
    outputs.sessions = { app.sessions }
    outputs.nodesSeen = { [reference] in reference.gateway?.saw($0) }
    var configuration = settings.calls
    configuration.push = settings.pushSettings(wakes)
    configuration.events = settings.eventRules
    configuration.isClustered = cluster != nil
    configuration.bounds.calls = min(configuration.bounds.calls, descriptors.calls / Self.descriptorsPerCall)
    var machine = CallMachine(
      configuration: configuration, routing: settings.routing(try Self.imported(settings, logs), own: network.plan.own),
      random: .system,
      network: settings.network { sockets.flow($0, toward: $1) })
    // The devices that can be woken must be known before the first INVITE.
    var nothing = CallMachine.Output()
    machine.handle(.devices(.loaded(store.devices)), at: loop.now, into: &nothing)
    var stale = CallMachine.Output()
    machine.handle(.grants(store.grants, at: WallClock.nowMilliseconds()), at: loop.now, into: &stale)
    for case .grants(let changes) in stale.actions { store.change(changes) }
    machine.handle(.devices(.defaults(settings.registrationDefaults)), at: loop.now, into: &nothing)
    for (scope, numbers) in try directory.blocked() {
      machine.handle(.blocked(scope: scope, numbers), at: loop.now, into: &nothing)
    }
    let begun = loop.now
    control = try Control(
      loop: loop,
      userAgent: UserAgent(
        configuration: .init(
          product: "Trunkline/\(Version.number)",
          own: settings.own(network.plan, bound: sockets.udpAddresses + sockets.tcpAddresses + sockets.tlsAddresses),
          advertised: settings.advertisedAddresses(network.plan), nonceSecret: settings.cluster?.nodes?.key), random: .system),
      machine: machine, cluster: cluster.map { ClusterMachine($0.machine, random: .system, at: begun) }, outputs: outputs,
      metrics: ControlMetrics(steps: loop.steps, hasCluster: cluster != nil), inbox: inbox, logger: logs.logger("control"),
      masksNumbers: settings.log.numbers == .masked)
    // Posted to the inbox, so that immediate outputs of the machine (a first REGISTER, a look-up) are sent.
    resolver.serversChanged = { [inbox] in inbox.post(.trunking(.nameServers($0))) }
    inbox.post(.trunking(.nameServers(resolver.serverNames)))
    reference.control = control
    reference.gateway = self
    registerMetrics()
  }

  /// Certificates that were replaced on disk are used without a signal.
  private func watchCertificates() throws {
    try certificates.start(logger: logs.logger("certificates")) { [weak self, loop] in
      guard let self else { return }
      app.reloadCertificates()
      loop.post { [self] in
        logs.logger("sip").notice("certificates changed on disk: read again")
        sockets.setTLS(server: settings.listen.sipServer, trunks: clientTLS)
      }
    } daily: { [push] in
      push.look()
    }
  }

  /// The metrics of `/metrics`; complete after `start`.
  var metrics: [MetricFamily] { registry.declared }

  private func registerMetrics() {
    registry.register(LongestSteps.process.metrics)
    registry.register(control.metrics.families)
    registry.register(sockets.metrics)
    registry.register(resolver.metrics)
    registry.register(media.metrics.families)
    registry.register(network.metrics)
    if let verifier { registry.register(verifier.metrics) }
    if let hep { registry.register(hep.metrics) }
    registry.register(store.metrics)
    if let cluster { registry.register(cluster.metrics) }
    registry.register(push.metrics)
    registry.register(hooks.metrics)
    registry.register(directory.metrics)
    if let events { registry.register(events.metrics) }
    registry.register(audio.metrics)
    registry.register(logs.metrics)
    registry.register(certificates.metrics)
    registry.register(ProcessMetrics.families(version: Version.number))
    registry.register([
      .counters(
        "trunkline_loop_stuck_timers_total", "Firings of a timer whose deadline made no progress: a fault of the gateway.",
        EventLoop.stuckTimers)
    ])
  }

  /// Notifies the cluster of the trunks that nodes share: one node sends REGISTER and OPTIONS for all, and calls are counted over
  /// all.
  private func notifyTrunks(_ settings: Settings) {
    guard cluster != nil else { return }
    let routed = settings.trunks.map(\.routing)
    inbox.post(
      .trunks(
        single: routed.filter { $0.settings?.registration != nil || $0.settings?.probe != nil }.map(\.name),
        limited: routed.filter { $0.maximumCalls != nil }.map(\.name)))
  }

  /// Starts the control thread and the ports: from here on calls are accepted.
  func start() throws {
    let loop = loop
    thread = try NamedThread.start(name: "control", nice: -5, logger: logs.logger("control")) { loop.run() }
    try app.start(descriptors: descriptors)
    try directory.start(send: { [app] in app.post($0) }, block: { [inbox] in inbox.post(.blocked(scope: $0, $1)) })
    try watchCertificates()
    try network.start(media: media) { [weak self] plan in
      guard let self else { return }
      if !loop.post({ [self] in moved(plan) }) { network.lookAgain() }
    }
    loop.post { [self] in
      logPeersView()
      control.close(store.orphanedLegs)
    }
    notifyTrunks(settings)
    if let cluster, !store.orphanedLines.isEmpty {
      // another node may have closed them: the cluster is queried first
      let entries = store.orphanedLines.map { CallEntry($0, users: $0.user.map { [$0] } ?? []) }
      inbox.post(.inherited(entries, of: cluster.machine.predecessor ?? cluster.machine.incarnation))
    }
    registry.register(
      MailboxReading.families(
        inbox.queues + [loop.posted, store.queue, push.queue, hooks.queue] + (events.map { [$0.queue] } ?? [])
          + audio.queues + media.mailboxes
          + app.queues + [directory.queue]
          + (cluster.map { [$0.queue] } ?? [])))
    readiness.set("calls", ready: true)
  }

  /// Applies trunks, users, routes and certificates of a new configuration; calls continue.
  func reload(_ new: Settings) throws {
    // Read here, on the caller's thread: a million numbers take a second. The store stays that of the start.
    let imported = try Self.imported(settings, logs)
    let routing = new.routing(imported, own: network.plan.own)
    try app.reload(new)
    try push.reload(new)
    certificates.replace(certified(new))
    audio.reload(new)
    network.replace(new)
    hooks.replace(TLSFiles(authorities: new.routes.webhookAuthorities))
    directory.reconfigure(new.historySettings)
    if let events, let next = new.events {
      events.replace(next.webhooks, tls: TLSFiles(authorities: next.authorities))
      inbox.post(.events(new.eventRules))
    }
    inbox.post(.devices(.defaults(new.registrationDefaults)))
    inbox.post(.push(new.pushSettings(wakes)))
    loop.post { [self] in
      do { try resolver.restart(servers: new.dns.servers) } catch { logs.logger("dns").error("\(error)") }
      current = new
      inbox.post(.routing(routing))
      notifyTrunks(new)
      retired.replace(with: new.trunks, at: loop.now)
      sockets.setTLS(server: settings.listen.sipServer, trunks: clientTLS)
      // A trunk that was removed from the file is admitted until its last call has ended, so that its BYE is accepted.
      admitTrunks()
      logPeersView()
    }
  }

  /// A new configuration with the `listen` of the start, which stays in force.
  private func certified(_ new: Settings) -> Settings {
    var out = new
    out.listen = settings.listen
    return out
  }

  /// On the control thread: TLS settings of connections to trunks, also to retired ones: their BYE may need a new connection.
  private var clientTLS: [String: TLSClientSettings] {
    var all = current
    all.trunks = retired.admitted
    return all.clientTLS
  }

  /// On the control thread: updates the allow-list, and checks the calls of retired trunks while there are any.
  private func admitTrunks() {
    admit()
    guard retired.hasRetired else { return }
    dropRetired(except: control.trunksWithCalls)
  }

  /// On the control thread, once a second: the other nodes, for sessions that are redirected there, and their OPTIONS.
  func saw(_ nodes: [SeenNode]) {
    guard let cluster else { return }
    let others = nodes.filter { $0.lease.incarnation != cluster.machine.incarnation && $0.liveness != .dead }
    app.post(
      .nodes(
        others.map {
          SessionNode(
            $0.lease.incarnation.description, url: $0.lease.url, isOpen: $0.liveness == .living && !$0.lease.refuses,
            sessions: $0.lease.sessions)
        }))
    cluster.checkURL(nodes)
    guard let addresses = cluster.changedAddresses(nodes) else { return }
    otherNodes = addresses.sorted { $0.description < $1.description }
    admit()
  }

  /// The process ends with status 2; see `ClusterComponent.isNameInUse`.
  var isNameInUse: Bool { cluster?.isNameInUse ?? false }

  private func dropRetired(except live: Set<String>) {
    if retired.drop(except: live, at: loop.now) { admit() }
    guard retired.hasRetired else { return }
    if retirement == nil { retirement = loop.addTimer("retired trunks") { [weak self] in self?.admitTrunks() } }
    if let retirement { loop.setTimer(retirement, at: loop.now + RetiredTrunks.interval) }
  }

  /// Refuses new calls; `whenDone` runs on the control thread once the last call has ended.
  func drain(_ whenDone: @escaping @Sendable () -> Void) {
    readiness.set("calls", ready: false, why: "draining: no new calls, the process ends with the last one")
    waiting.withLock { $0.drained = whenDone }
    inbox.drain()
  }

  private func drained() {
    state.withLock { $0.drained = true }
    waiting.withLock { $0.drained }?()
  }

  private func left() { waiting.withLock { $0.left }?() }

  var isDrained: Bool { state.withLock { $0.drained } }
  var isEnding: Bool { state.withLock { $0.ending } }

  /// Ends every call; their records follow within a second.
  func endCalls() {
    state.withLock { $0.ending = true }
    inbox.hangUpAll()
  }

  /// Unregisters, so that registrars send no calls to an ended process.
  private func unregister(within time: Duration) {
    guard thread != nil, let done = try? EventDescriptor() else { return }
    waiting.withLock { $0.left = { done.signal() } }
    if inbox.leave() { _ = done.wait(milliseconds: Int32(time.nanoseconds / 1_000_000)) }
  }

  /// Ends all threads in the order of their dependencies: the store after the threads that write to it, so that every record is
  /// written, and before the shared store, which receives the last ones. Registrars have `unregisterTime` to answer.
  func stop(unregisterTime: Duration) {
    unregister(within: unregisterTime)
    network.stop()
    app.stop()
    inbox.post(.stopping)
    loop.post { [sockets, resolver] in
      resolver.close()
      sockets.close()
    }
    loop.stop()
    thread?.join()
    push.stop()
    hooks.stop()
    verifier?.stop()
    media.stop()
    audio.stop()
    store.stop()
    directory.stop()
    events?.stop()
    cluster?.stop()
    certificates.stop()
    hep?.stop()
  }
}
