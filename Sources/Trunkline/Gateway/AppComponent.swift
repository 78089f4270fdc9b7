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
import TrunklinePlatform

/// The app port, with the sessions of apps and the web phone, and the keys of login tokens.
final class AppComponent: AppOutput, Sendable {
  private let settings: Settings
  private let inbox: Inbox
  private let logs: Logs
  private let readiness: Readiness
  private let registry: MetricRegistry
  private let server = Mutex<AppServer?>(nil)
  private let keys: KeyComponent
  /// The last read configuration. The lock is held while the app port is given settings or keys, so that newer ones arrive later.
  private let current: Mutex<Settings>
  /// Tokens that open a session for one call.
  private let wakes: WakeTokens
  /// Nil: a node without a cluster.
  private let cluster: ClusterComponent?
  private let directory: DirectoryService

  init(
    _ settings: Settings, readiness: Readiness, registry: MetricRegistry, inbox: Inbox, wakes: WakeTokens,
    cluster: ClusterComponent?, directory: DirectoryService, logs: Logs
  ) {
    (self.settings, self.inbox, self.logs, self.registry) = (settings, inbox, logs, registry)
    (self.wakes, self.cluster, self.readiness, self.directory) = (wakes, cluster, readiness, directory)
    current = Mutex(settings)
    keys = KeyComponent(settings, readiness: readiness, logger: logs.logger("keys"))
    registry.register(keys.metrics)
  }

  /// Binds the port; throws with the address if it is in use.
  func start(_ site: WebSite, descriptors: DescriptorLimit) throws {
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
    app.directory = { [directory] in DirectoryDownload.answer($2, of: $0, accounts: $1, by: directory, $3) }
    let started = try AppServer.start(app, logger: logs.logger("app")) { [self] event in
      if directory.handle(event, send: { [self] in post($0) }) { return true }
      return inbox.post(.app(event))
    }
    server.withLock { $0 = started }
    try keys.start { [weak self] in self?.keysChanged() ?? true }
    registry.register(started.metrics)
  }

  /// Sessions with a socket, and those that can be resumed.
  var sessions: Int { server.withLock { $0 }?.sessions ?? 0 }

  func post(_ command: SessionCommand) { server.withLock { $0 }?.post(command) }

  /// With the fetched keys, if they come from a URL.
  private func sessions(_ settings: Settings) throws -> SessionSettings {
    var out = try settings.sessions(wakes, cluster?.sessions)
    keys.complete(&out, settings)
    return out
  }

  /// On the keys thread. False: the app port's queue is full.
  private func keysChanged() -> Bool {
    current.withLock { settings in
      guard let app = server.withLock({ $0 }), let sessions = try? sessions(settings) else { return true }
      return app.replaceKeys(sessions.verifier, fetchedAt: sessions.keysFetchedAt)
    }
  }

  /// Applies users and certificates of a new configuration.
  func reload(_ new: Settings) throws {
    try keys.replace(new)
    try current.withLock { settings in
      settings = new
      server.withLock { $0 }?.reconfigure(try sessions(new), origins: Set(new.auth.origins))
    }
    reloadCertificates()
  }

  /// Reads the port's files again; existing connections keep the old certificates.
  func reloadCertificates() { server.withLock { $0 }?.reloadCertificates(logs.certificateProblem) }

  func stop() {
    let app = server.withLock { server in
      defer { server = nil }
      return server
    }
    keys.stop()
    app?.stop()
  }

  var queues: [MailboxReading] { [server.withLock { $0 }?.queue].compactMap(\.self) }

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
