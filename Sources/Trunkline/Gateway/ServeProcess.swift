import ArgumentParser
import CommandSupport
import Configuration
import Glibc
import Logging
import Telemetry
import TrunklinePlatform

/// The life of a `serve` process: start, signals, drain, end. The main thread only waits for signals.
enum ServeProcess {
  /// Time from the end of the drain time to the end of the process, even if a thread hangs.
  static let ending = Duration.seconds(2)
  /// The part of it for BYEs and records of the remaining calls, in seconds; and the part for the registrars after that.
  static let lastRecordsSeconds: UInt32 = 1
  static let unregisterTimeAfterDrain = Duration.milliseconds(500)
  /// Time for the registrars if the gateway has no calls before its drain time is over.
  static let unregisterTimeIdle = Duration.seconds(2)
  /// Time for its threads to end after that. Some wait for the disk: one that is busy with others' writes takes seconds.
  static let endingIdle = Duration.seconds(8)

  static func run(_ settings: Settings, config: String?) throws {
    if settings.limits.dumpsCore { ProcessMemory.isDumpable = true }
    ProcessSignals.ignoreBrokenPipes()
    ProcessSignals.reapOrphans()
    // Every thread started from here on inherits this: only `wait` below receives signals.
    ProcessSignals.blockAsynchronous()
    let logs = try Logs(settings.log)
    defer { logs.stop() }
    let logger = logs.logger("trunkline")
    let supervisor = Supervisor()
    let watch = try ThreadWatch(logger: logs.logger("health"), supervisor: supervisor, isVital: VitalThreads.contains)
    defer { watch.stop() }
    let gateway = try Gateway(settings, watch: watch, logs: logs)
    do {
      try gateway.start()
    } catch {
      gateway.stop(unregisterTime: .zero)
      throw error
    }
    watch.allowSignalsToWait(settings.drain + ending)
    logger.notice(
      "ready",
      metadata: [
        "version": "\(Version.number)", "app": "\(settings.listen.app)", "admin": "\(settings.listen.admin)",
        "sip": "\(settings.listen.sipText)",
      ])
    warn(settings, logger)
    supervisor.write("READY=1")
    if config == nil { logger.notice("embedded defaults: state is kept in the working directory; see trunkline config example") }
    let isEarly = serve(settings, config: config, gateway: gateway, watch: watch, supervisor: supervisor, logger: logger)
    supervisor.write("STOPPING=1")
    if isEarly { watch.end(within: unregisterTimeIdle + endingIdle) }
    gateway.stop(unregisterTime: isEarly ? unregisterTimeIdle : unregisterTimeAfterDrain)
    if gateway.isNameInUse { throw ExitCode(2) }
  }

  private static func warn(_ settings: Settings, _ logger: Logger) {
    for warning in settings.warnings {
      logger.warning("the configuration probably has a mistake", metadata: ["problem": "\(warning)"])
    }
  }

  /// Handles signals until the gateway is to be stopped. Returns true if the drain time is not over then.
  private static func serve(
    _ settings: Settings, config: String?, gateway: Gateway, watch: ThreadWatch, supervisor: Supervisor, logger: Logger
  ) -> Bool {
    var running = settings
    var draining = false
    while true {
      switch ProcessSignals.wait(for: [SIGHUP, SIGTERM, SIGINT, SIGUSR1, SIGALRM]) {
      case SIGHUP:
        supervisor.write("RELOADING=1\nMONOTONIC_USEC=\(MonotonicClock.now().nanoseconds / 1_000)")
        running = reload(running, config: config, gateway: gateway, logger: logger)
        supervisor.write("READY=1")
      case SIGUSR1:
        guard gateway.isDrained else { continue }
        logger.notice("drained: the last call has ended")
        return !gateway.isEnding
      case SIGALRM:
        guard draining else { continue }
        if gateway.isEnding { return false }
        logger.warning("the drain time is over: ending the remaining calls")
        gateway.endCalls()
        alarm(lastRecordsSeconds)
      default:
        if draining {
          logger.notice("second signal: ending all calls")
          watch.end(within: ending)
          gateway.endCalls()
          alarm(lastRecordsSeconds)
        } else {
          draining = true
          logger.notice("draining: no new calls; a second signal ends the live ones")
          supervisor.write("STATUS=draining: no new calls, the process ends with the last one")
          let seconds = max(1, settings.drain.components.seconds)
          watch.end(within: .seconds(seconds) + ending)
          alarm(UInt32(clamping: seconds))
          gateway.drain { kill(getpid(), SIGUSR1) }
        }
      }
    }
  }

  private static func reload(_ running: Settings, config: String?, gateway: Gateway, logger: Logger) -> Settings {
    guard let config else {
      logger.notice("nothing to read again: the embedded defaults are in use")
      return running
    }
    do {
      let new = try ConfigurationFile.load(config)
      try gateway.reload(new)
      logger.notice("configuration read again", metadata: ["trunks": "\(new.trunks.count)", "users": "\(new.users.count)"])
      warn(new, logger)
      for part in new.partsThatNeedRestart(comparedWith: running) {
        logger.warning("a changed setting waits for a restart", metadata: ["setting": "\(part)"])
      }
      return running.reloaded(from: new)
    } catch let problems as ConfigurationProblems {
      for problem in problems.problems {
        logger.error("configuration refused, the old one stays", metadata: ["problem": "\(problem)"])
      }
    } catch {
      logger.error("configuration refused, the old one stays", metadata: ["problem": "\(error)"])
    }
    return running
  }
}

extension Settings.Listen {
  fileprivate var sipText: String {
    (sipUDP.map { "udp \($0)" } + sipTCP.map { "tcp \($0)" } + sipTLS.map { "tls \($0)" }).joined(separator: ", ")
  }
}

extension Settings {
  /// These settings with the parts of `new` that SIGHUP applies.
  func reloaded(from new: Settings) -> Settings {
    var out = self
    out.users = new.users
    out.anyUser = new.anyUser
    out.grantRules = new.grantRules
    out.userSource = new.userSource
    out.trunks = new.trunks
    out.routes = new.routes
    out.dns = new.dns
    out.push = new.push
    out.turn = new.turn
    out.auth = new.auth
    out.admin = new.admin
    out.history = new.history
    if events != nil, let next = new.events { out.events = next }
    out.cluster = cluster
    if new.cluster?.edges != nil || cluster?.edges != nil {
      out.cluster = cluster ?? Cluster()
      let http = cluster?.edges?.http ?? []
      out.cluster?.edges = new.cluster?.edges ?? (http.isEmpty ? nil : Edges())
      out.cluster?.edges?.http = http
    }
    return out
  }

  func partsThatNeedRestart(comparedWith old: Settings) -> [String] {
    var out: [String] = []
    if listen != old.listen { out.append("listen") }
    if localNetworks != old.localNetworks { out.append("local_networks") }
    let bitrates = (calls.opusBitrate, calls.opusBitrateWide)
    if media != old.media || bitrates != (old.calls.opusBitrate, old.calls.opusBitrateWide) { out.append("media") }
    if cluster?.nodes != old.cluster?.nodes { out.append("cluster") }
    if cluster?.edges?.http ?? [] != old.cluster?.edges?.http ?? [] { out.append("cluster.edges.http") }
    if verifier != old.verifier { out.append("verifier") }
    if calls.timers != old.calls.timers || drain != old.drain { out.append("timers") }
    if limits != old.limits || calls.bounds != old.calls.bounds { out.append("limits") }
    if calls.declineCode != old.calls.declineCode { out.append("routes.decline_code") }
    if recording != old.recording { out.append("recording") }
    if (events == nil) != (old.events == nil) { out.append("events") }
    if store != old.store { out.append("store") }
    if records != old.records || streamsRecords != old.streamsRecords { out.append("records") }
    if log != old.log { out.append("log") }
    if branding != old.branding { out.append("branding") }
    if hep != old.hep { out.append("hep") }
    return out
  }
}
