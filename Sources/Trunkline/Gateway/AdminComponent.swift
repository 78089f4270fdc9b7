import AppServer
import AppSessions
import CommandSupport
import Configuration
import Control
import Foundation
import Logging
import Store
import Synchronization
import Telemetry
import TrunklineBytes
import TrunklineMediaSession
import TrunklinePlatform
import TrunklineSIPTrace
import WebServer

/// The admin port, and the thread `pages` that builds its answers.
final class AdminComponent: Sendable {
  private let settings: Settings
  private let logs: Logs
  private let asker: Asker
  private let pages: HealthHandlers
  private let traces: TraceCollector
  private let recent: RecentCalls
  /// For the status page; gets every trunk's status once a second.
  let statusFacts: StatusFacts
  private let trunkNames: Mutex<Set<String>>
  /// Recordings that programs may play.
  private let recordings: Mutex<[String: Announcement]>
  /// The URL to which woken apps connect.
  private let gateway: Mutex<String?>
  private let server = Mutex<AdminServer?>(nil)

  init(
    _ settings: Settings, readiness: Readiness, registry: MetricRegistry, asker: Asker, traces: TraceCollector,
    recent: RecentCalls,
    watch: ThreadWatch, logs: Logs
  ) {
    (self.settings, self.logs, self.asker, self.traces, self.recent) = (settings, logs, asker, traces, recent)
    gateway = Mutex(settings.push?.gateway)
    trunkNames = Mutex(Set(settings.trunks.map(\.name)))
    recordings = Mutex(settings.admin.recordings)
    statusFacts = StatusFacts(
      node: settings.cluster?.nodes?.name ?? ProcessInfo.processInfo.hostName, readiness: readiness, recent: recent,
      hung: { watch.hung })
    pages = HealthHandlers(
      registry: registry, readiness: readiness, version: Version.number, hung: { watch.hung }, isVital: VitalThreads.contains)
  }

  /// Binds the port; throws with the address if it is in use.
  func start(
    _ site: WebSite, push: PushComponent, wakes: WakeTokens, cluster: ClusterComponent?, directory: DirectoryService
  ) throws {
    try asker.start(logger: logs.logger("admin"))
    let wake: @Sendable () -> Void = { [self] in wakeStreams() }
    let locations = LocationHandlers(asker: asker, cluster: cluster)
    let handlers = AdminHandlers(
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
        tls: settings.listen.adminTLS), routes: handlers.routes, logger: logs.logger("admin"))
    server.withLock { $0 = admin }
    if !settings.listen.admin.ip.isLoopback, settings.listen.adminTLS == nil {
      logs.logger("admin").warning(
        "the admin port can be reached from other machines and has no TLS: its token crosses the network in the clear; set listen.admin.tls",
        metadata: ["address": "\(settings.listen.admin)"])
    }
  }

  /// Any thread: the event journal has grown.
  func wakeStreams() { server.withLock { $0 }?.wakeStreams() }

  /// Applies trunks, recordings, tokens and certificates of a new configuration.
  func reload(_ new: Settings) {
    trunkNames.withLock { $0 = Set(new.trunks.map(\.name)) }
    gateway.withLock { $0 = new.push?.gateway }
    server.withLock { $0 }?.replace(new.admin.tokens)
    recordings.withLock { $0 = new.admin.recordings }
    reloadCertificates()
  }

  /// Reads the port's files again; existing connections keep the old certificates.
  func reloadCertificates() { server.withLock { $0 }?.reloadCertificates(logs.certificateProblem) }

  /// After the app port.
  func stop() {
    let admin = server.withLock { server in
      defer { server = nil }
      return server
    }
    admin?.stop()
    asker.stop()
  }

  var queue: MailboxReading { asker.queue }
}

extension Logs {
  /// The answer of a port to a request to read its certificates again.
  var certificateProblem: @Sendable (TLSFailure?) -> Void {
    let logger = logger("app")
    return { problem in
      if let problem { logger.error("certificates are not usable: the old ones stay in use", metadata: ["why": "\(problem)"]) }
    }
  }
}
