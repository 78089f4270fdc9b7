import AppSessions
import CallFlow
import CallModel
import Cluster
import CommandSupport
import Configuration
import Control
import Logging
import Store
import Synchronization
import Telemetry
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIPTrace

/// The assembled gateway: only this type makes its components and connects them.
///
///     trunks ⇄ SIPComponent ⇄ Control ⇄ AppComponent ⇄ apps
///                               ⇅  ↓
///                  MediaComponent  StoreComponent
///
/// Each component builds one side, and its `init` states what it needs. `Control` gets them as `ControlOutputs`; they post to its
/// inbox.
final class Gateway: Sendable {
  private let settings: Settings
  private let logs: Logs
  private let descriptors: DescriptorLimit
  private let loop: EventLoop
  private let readiness = Readiness()
  private let registry = MetricRegistry()
  private let inbox: Inbox
  private let network: NetworkComponent
  private let media: MediaComponent
  private let store: StoreComponent
  private let app: AppComponent
  private let admin: AdminComponent
  private let push: PushComponent
  private let webhooks: WebhookComponent
  private let audio: AudioComponent
  private let wakes: WakeTokens
  /// Nil: a gateway without a cluster.
  private let cluster: ClusterComponent?
  private let certificates: CertificateWatch
  private let ending = Drain()
  private let onControl: LoopBound<ControlThread>
  private let thread = Mutex<NamedThread?>(nil)

  /// Opens every file and socket and starts the threads of store, media and apps; throws with the address or file that failed.
  init(_ settings: Settings, watch: ThreadWatch, logs: Logs) throws {
    (self.settings, self.logs) = (settings, logs)
    logs.watch(readiness)
    registry.register(watch.metrics)
    certificates = try CertificateWatch(settings)
    descriptors = .raise(for: settings, logs.logger("trunkline"))
    Self.reportStuckTimers(logs.logger("trunkline"))
    network = try NetworkComponent(settings, readiness: readiness, logger: logs.logger("network"))
    loop = try EventLoop(name: "control")
    inbox = try Inbox()
    let asker = try Asker(inbox: inbox)
    let reference = ControlReference()
    let (traces, recent) = (TraceCollector(application: Version.text), RecentCalls())
    let sip = try SIPComponent(
      settings, loop: loop, absent: network.plan.absent, traces: traces, control: reference, logs: logs)
    cluster = try ClusterComponent.make(
      settings, sip: sip.nodeAddress(network.plan), inbox: inbox, readiness: readiness, logs: logs)
    wakes = try Self.wakeTokens(cluster)
    push = try PushComponent(settings, inbox: inbox, logger: logs.logger("push"))
    webhooks = try WebhookComponent(settings, inbox: inbox, logs: logs)
    store = try StoreComponent(settings, cluster: cluster, traces: traces, recent: recent, readiness: readiness, logs: logs)
    app = AppComponent(
      settings, readiness: readiness, registry: registry, inbox: inbox, wakes: wakes, cluster: cluster,
      directory: store.directory, logs: logs)
    admin = AdminComponent(
      settings, readiness: readiness, registry: registry, asker: asker, traces: traces, recent: recent, watch: watch, logs: logs)
    store.onEvents { [admin] in admin.wakeStreams() }
    audio = try AudioComponent(settings, inbox: inbox, logs: logs)
    media = try MediaComponent(settings, network: network, inbox: inbox, logger: logs.logger("media"))
    let views = PeersLog(settings, sip: sip, network: network, media: media, loop: loop, logger: logs.logger("sip"))
    let peers = TrunkPeers(settings, sip: sip, views: views, control: reference, loop: loop)
    let outputs = ControlOutputs(
      sip: sip.sockets, names: sip.resolver, media: media, apps: app, push: push, webhooks: webhooks, store: store, audio: audio,
      answers: asker,
      state: ControlReports(settings, readiness: readiness, facts: admin.statusFacts, peers: peers, drain: ending),
      cluster: cluster.map { [app, store] in
        ClusterReports($0, app: app, directory: store.directory, peers: peers, logger: logs.logger("cluster"))
      })
    let control = try Control(
      settings, loop: loop, inbox: inbox, sip: sip, plan: network.plan, store: store, cluster: cluster, wakes: wakes,
      outputs: outputs, mostCalls: descriptors.mostCalls, logs: logs)
    reference.control = control
    let addresses = AddressChanges(settings, control: control, sip: sip, network: network, media: media, loop: loop)
    onControl = LoopBound(ControlThread(control: control, sip: sip, peers: peers, addresses: addresses), to: loop)
    registerMetrics()
  }

  private static func reportStuckTimers(_ logger: Logger) {
    EventLoop.reportStuckTimers { loop, timer in
      logger.error(
        "a timer's deadline makes no progress; the timer continues at a bounded rate. Please report this fault",
        metadata: ["loop": "\(loop)", "timer": "\(timer)"])
    }
  }

  /// A key for this process: no call for which a device is woken outlives it.
  private static func wakeTokens(_ cluster: ClusterComponent?) throws -> WakeTokens {
    guard let wakes = cluster?.sessions.wakeTokens ?? WakeTokens(random: .system) else {
      throw GatewayFailure("no random bytes for wake tokens")
    }
    return wakes
  }

  /// The metrics of `/metrics`; complete after `start`.
  var metrics: [MetricFamily] { registry.declared }

  private func registerMetrics() {
    let control = onControl.value
    registry.register(LongestSteps.process.metrics)
    registry.register(control.control.metrics.families)
    registry.register(control.sip.metrics)
    registry.register(media.plane.metrics.families)
    for families in [
      network.metrics, store.metrics, cluster?.metrics ?? [], push.metrics, webhooks.metrics, audio.metrics, logs.metrics,
      certificates.metrics, ProcessMetrics.families(version: Version.number),
    ] { registry.register(families) }
    registry.register([
      .counters(
        "trunkline_loop_stuck_timers_total", help: "Firings of a timer whose deadline made no progress: a fault of the gateway.",
        EventLoop.stuckTimers)
    ])
  }

  private func registerQueues() {
    registry.register(
      MailboxReading.families(
        inbox.queues + [loop.posted, push.queue, webhooks.queue] + store.queues + audio.queues + media.plane.mailboxes
          + app.queues + [admin.queue] + (cluster.map { [$0.queue] } ?? [])))
  }

  /// Starts the control thread and the ports: from here on calls are accepted.
  func start() throws {
    let loop = loop
    let running = try NamedThread.start(name: "control", nice: -5, logger: logs.logger("control")) { loop.run() }
    thread.withLock { $0 = running }
    let site = WebSite(settings.branding)
    try app.start(site, descriptors: descriptors)
    try admin.start(site, push: push, wakes: wakes, cluster: cluster, directory: store.directory)
    try store.directory.start(send: { [app] in app.post($0) }, block: { [inbox] in inbox.post(.blocked(scope: $0, $1)) })
    try watchCertificates()
    try network.start(media: media.plane) { [network, onControl] plan in
      let isPosted = onControl.post { control in
        control.addresses.moved(plan)
        control.peers.logViews()
      }
      if !isPosted { network.lookAgain() }
    }
    closeOrphans()
    registerQueues()
    readiness.set("calls", ready: true)
  }

  /// Calls of a killed process: their legs are closed, their records written.
  private func closeOrphans() {
    onControl.post { [store] control in
      control.peers.logViews()
      control.control.close(store.calls.orphanedLegs)
    }
    notifyTrunks(settings)
    let lines = store.calls.orphanedLines
    guard let cluster, !lines.isEmpty else { return }
    // another node may have closed them: the cluster is queried first
    let entries = lines.map { CallEntry($0, users: $0.user.map { [$0] } ?? []) }
    inbox.post(.inherited(entries, of: cluster.machine.predecessor ?? cluster.machine.incarnation))
  }

  /// Certificates that were replaced on disk are used without a signal.
  private func watchCertificates() throws {
    try certificates.start(logger: logs.logger("certificates")) { [app, admin, onControl, logs] in
      app.reloadCertificates()
      admin.reloadCertificates()
      onControl.post { control in
        logs.logger("sip").notice("certificates changed on disk: read again")
        control.peers.readTLS()
      }
    } daily: { [push] in
      push.look()
    }
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

  /// Applies trunks, users, routes and certificates of a new configuration; calls continue.
  func reload(_ new: Settings) throws {
    // Read here, on the caller's thread: a million numbers take a second. The store stays that of the start.
    let imported = try NumberTable.imported(settings, logs)
    let routing = new.routing(imported, own: network.plan.own)
    try app.reload(new)
    admin.reload(new)
    try push.reload(new)
    certificates.replace(certified(new))
    audio.reload(new)
    network.replace(new)
    webhooks.reload(new)
    store.reload(new, inbox: inbox)
    inbox.post(.devices(.defaults(new.registrationDefaults)))
    inbox.post(.push(new.pushSettings(wakes)))
    onControl.post { [self] control in
      control.sip.useNameServers(new.dns.servers)
      inbox.post(.routing(routing))
      notifyTrunks(new)
      control.peers.replace(with: new)
    }
  }

  /// A new configuration with the `listen` of the start, which stays in force.
  private func certified(_ new: Settings) -> Settings {
    var out = new
    out.listen = settings.listen
    return out
  }

  // MARK: the end

  /// The process ends with status 2; see `ClusterComponent.isNameInUse`.
  var isNameInUse: Bool { cluster?.isNameInUse ?? false }
  var isDrained: Bool { ending.isDrained }
  var isEnding: Bool { ending.isEnding }

  /// Refuses new calls; `whenDone` runs on the control thread once the last call has ended.
  func drain(_ whenDone: @escaping @Sendable () -> Void) {
    readiness.set("calls", ready: false, why: "draining: no new calls, the process ends with the last one")
    ending.begin(whenDone)
    inbox.drain()
  }

  /// Ends every call; their records follow within a second.
  func endCalls() {
    ending.end()
    inbox.hangUpAll()
  }

  /// Unregisters, so that registrars send no calls to an ended process.
  private func unregister(within time: Duration) {
    guard thread.withLock({ $0 }) != nil, let done = try? EventDescriptor() else { return }
    ending.leave { done.signal() }
    if inbox.leave() { _ = done.wait(milliseconds: Int32(time.nanoseconds / 1_000_000)) }
  }

  /// Ends all threads in the order of their dependencies: the store after the threads that write to it, so that every record is
  /// written, and before the shared store, which receives the last ones. Registrars have `unregisterTime` to answer.
  func stop(unregisterTime: Duration) {
    unregister(within: unregisterTime)
    network.stop()
    app.stop()
    admin.stop()
    inbox.post(.stopping)
    onControl.post { $0.sip.close() }
    loop.stop()
    thread.withLock { $0 }?.join()
    push.stop()
    webhooks.stop()
    media.plane.stop()
    audio.stop()
    store.stop()
    cluster?.stop()
    certificates.stop()
    onControl.value.sip.stop()
  }
}
