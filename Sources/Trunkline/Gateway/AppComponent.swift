import AppServer
import AppSessions
import CommandSupport
import Configuration
import Control
import Foundation
import JSONWebToken
import Store
import Synchronization
import Telemetry
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklinePlatform
import TrunklineSIPTrace

/// The two HTTP servers: the app port with sessions and the web phone, and the admin port.
final class AppComponent: Sendable {
  private let settings: Settings
  private let inbox: Inbox
  private let asker: Asker
  private let logs: Logs
  private let pages: HealthHandlers
  private let readiness: Readiness
  private let registry: MetricRegistry
  private let traces: TraceCollector
  /// For the status page; notified of every record.
  let recent = RecentCalls()
  /// For the status page; gets every trunk's status once a second.
  let statusFacts: StatusFacts
  private let trunkNames: Mutex<Set<String>>
  /// Recordings that programs may play.
  private let recordings: Mutex<[String: Announcement]>
  private let servers = Mutex<(app: AppServer?, admin: AdminServer?)>((nil, nil))

  private let push: PushComponent
  private let keys: KeyComponent
  /// The last read configuration. The lock is held while the app port is given settings or keys, so that newer ones arrive later.
  private let current: Mutex<Settings>
  /// Tokens that open a session for one call.
  private let wakes: WakeTokens
  /// Nil: a node without a cluster.
  private let cluster: ClusterComponent?
  private let directory: DirectoryService
  /// The URL to which woken apps connect.
  private let gateway: Mutex<String?>

  init(
    _ settings: Settings, readiness: Readiness, registry: MetricRegistry, inbox: Inbox, asker: Asker, traces: TraceCollector,
    push: PushComponent,
    wakes: WakeTokens, cluster: ClusterComponent?, directory: DirectoryService, watch: ThreadWatch, logs: Logs
  ) {
    (self.directory, self.asker) = (directory, asker)
    (self.settings, self.inbox, self.logs, self.registry, self.traces) = (settings, inbox, logs, registry, traces)
    (self.push, self.wakes, self.cluster, self.readiness) = (push, wakes, cluster, readiness)
    gateway = Mutex(settings.push?.gateway)
    current = Mutex(settings)
    let keys = KeyComponent(settings, readiness: readiness, logger: logs.logger("keys"))
    registry.register(keys.metrics)
    self.keys = keys
    trunkNames = Mutex(Set(settings.trunks.map(\.name)))
    recordings = Mutex(settings.admin.recordings)
    statusFacts = StatusFacts(
      node: settings.cluster?.nodes?.name ?? ProcessInfo.processInfo.hostName, readiness: readiness, recent: recent,
      hung: { watch.hung })
    pages = HealthHandlers(
      registry: registry, readiness: readiness, version: Version.number, hung: { watch.hung }, isVital: VitalThreads.contains)
  }

  /// Any thread: the event journal has grown.
  func wakeStreams() { servers.withLock { $0.admin }?.wakeStreams() }

  /// Binds both ports; throws with the address if it is in use.
  func start(descriptors: DescriptorLimit) throws {
    let site = WebSite(settings.branding)
    var app = AppServer.Settings(
      address: settings.listen.app, tls: settings.listen.appTLS,
      origins: Set(settings.auth.origins), pages: Self.phone(site, pushes: settings.push?.gateway),
      sessions: try sessions(settings))
    app.connectionsPerAddress = settings.limits.sessionsPerAddress
    app.proxies = settings.listen.appProxies
    app.path = settings.listen.appPath
    app.isReady = { [readiness] in readiness.isReadyForApps }
    app.keysWanted = { [keys] in keys.want() }
    app.connections = min(app.connections, descriptors.apps)
    app.directoryVersions = directory.versions
    app.directory = { [directory] in DirectoryDownload.answer($2, $0, $1, directory, $3) }
    let server = try AppServer.start(app, logger: logs.logger("app")) { [self] event in
      if directory.handle(event, send: { [self] in post($0) }) { return true }
      return inbox.post(.app(event))
    }
    servers.withLock { $0.app = server }
    try keys.start { [weak self] in self?.keysChanged() ?? true }
    registry.register(server.metrics)
    try asker.start(logger: logs.logger("admin"))
    let wake: @Sendable () -> Void = { [self] in wakeStreams() }
    let locations = LocationHandlers(asker: asker, cluster: cluster)
    let adminPages = AdminHandlers(
      health: pages, asker: asker, site: site.status, status: StatusBoard(statusFacts, read: asker.readCalls),
      calls: CallHandlers(asker: asker, locations: locations, wake: wake) { [self] in recordings.withLock { $0 } },
      traces: TraceHandlers(collector: traces, asker: asker) { [self] name in trunkNames.withLock { $0.contains(name) } },
      devices: DeviceHandlers(asker: asker, push: push, wake: wake, gateway: { [self] in gateway.withLock { $0 } }, wakes: wakes),
      logs: LogHandlers(levels: logs.levels), recent: recent, locations: locations,
      events: EventHandlers(folder: settings.events.map { _ in settings.eventFolder }, asker: asker),
      directory: DirectoryHandlers(service: directory, asker: asker), wake: wake)
    let admin = try AdminServer.start(
      .init(
        address: settings.listen.admin, token: settings.listen.adminToken.map { Redacted(Array($0.exposed.utf8)) },
        tokens: settings.admin.tokens,
        tls: settings.listen.adminTLS), routes: adminPages.routes, logger: logs.logger("admin"))
    servers.withLock { $0.admin = admin }
    if !settings.listen.admin.ip.isLoopback, settings.listen.adminTLS == nil {
      logs.logger("admin").warning(
        "the admin port can be reached from other machines and has no TLS: its token crosses the network in the clear; set listen.admin.tls",
        metadata: ["address": "\(settings.listen.admin)"])
    }
  }

  /// Sessions with a socket, and those that can be resumed.
  var sessions: Int { servers.withLock { $0.app }?.sessions ?? 0 }

  func post(_ command: SessionCommand) { servers.withLock { $0.app }?.post(command) }

  /// With the fetched keys, if they come from a URL.
  private func sessions(_ settings: Settings) throws -> SessionSettings {
    var out = try settings.sessions(wakes, cluster?.sessions)
    keys.complete(&out, settings)
    return out
  }

  /// On the keys thread. False: the app port's queue is full.
  private func keysChanged() -> Bool {
    current.withLock { settings in
      guard let app = servers.withLock({ $0.app }), let sessions = try? sessions(settings) else { return true }
      return app.replaceKeys(sessions.verifier, fetchedAt: sessions.keysFetchedAt)
    }
  }

  /// Applies users and certificates of a new configuration.
  func reload(_ new: Settings) throws {
    trunkNames.withLock { $0 = Set(new.trunks.map(\.name)) }
    gateway.withLock { $0 = new.push?.gateway }
    try keys.replace(new)
    try current.withLock { settings in
      settings = new
      servers.withLock { $0.app }?.reconfigure(try sessions(new), origins: Set(new.auth.origins))
    }
    servers.withLock { $0.admin }?.replace(new.admin.tokens)
    recordings.withLock { $0 = new.admin.recordings }
    reloadCertificates()
  }

  /// Reads the files of both ports again; existing connections keep the old certificates.
  func reloadCertificates() {
    let (server, admin) = servers.withLock { $0 }
    let logger = logs.logger("app")
    let onProblem: @Sendable (TLSError?) -> Void = { problem in
      if let problem { logger.error("certificates are not usable: the old ones stay in use", metadata: ["why": "\(problem)"]) }
    }
    server?.reloadCertificates(onProblem)
    admin?.reloadCertificates(onProblem)
  }

  func stop() {
    let (app, admin) = servers.withLock { servers in
      defer { servers = (nil, nil) }
      return servers
    }
    keys.stop()
    app?.stop()
    admin?.stop()
    asker.stop()
  }

  var queues: [MailboxReading] { [servers.withLock { $0.app }?.queue].compactMap(\.self) + [asker.queue] }

  /// A page that a push opened, and the service worker, connect to the URL in the push: `push.gateway`. The worker may have a
  /// push of another gateway; it may connect anywhere, as it shows no page into which a script could be injected.
  private static func phone(_ site: WebSite, pushes gateway: String?) -> [String: Page] {
    let own = gateway.map(sources) ?? []
    let pages = site.phone.map { asset in
      let connects = asset.path == WebFiles.serviceWorker ? own + ["https:", "wss:"] : asset.path == "/" ? own : []
      return (asset.path, Page(contentType: asset.contentType, bytes: asset.bytes, connects: connects))
    }
    let version = Page(contentType: "text/plain; charset=utf-8", bytes: Array(WebFiles.version.utf8), connects: [])
    return Dictionary(pages + [("/version", version)]) { first, _ in first }
  }

  /// `wss://gateway.example/v1/connect` as sources of a content security policy: for the socket, and for a decline by HTTP.
  private static func sources(_ gateway: String) -> [String] {
    guard gateway.hasPrefix("ws"), let colon = gateway.firstIndex(of: ":") else { return [] }
    let scheme = gateway[..<colon]
    let authority = gateway[colon...].dropFirst("://".count).prefix { $0 != "/" && $0 != "?" && $0 != ";" && $0 != " " }
    guard !authority.isEmpty else { return [] }
    return ["\(scheme)://\(authority)", "http\(scheme.dropFirst(2))://\(authority)"]
  }
}

extension Settings {
  func sessions(_ wakes: WakeTokens?, _ cluster: SessionCluster? = nil) throws -> SessionSettings {
    var out = SessionSettings(
      verifier: TokenVerifier(keys: try auth.keys(), audience: auth.audience),
      users: anyUser == nil ? .listed(Set(users.map(\.id))) : .any,
      wakeTokens: wakes,
      webPushKey: push?.webPushKey)
    out.grants = grantRules
    out.turn = turn
    out.cluster = cluster
    out.caps += ["dir", "hist", TestCall.capability] + (cluster != nil ? ["nodes"] : [])
    return out
  }
}
