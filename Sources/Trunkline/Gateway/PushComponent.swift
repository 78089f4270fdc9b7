import AppSessions
import CallFlow
import CallModel
import Configuration
import Control
import Devices
import Foundation
import Glibc
import JSONWebToken
import Logging
import OutgoingHTTP
import PushPolicy
import Synchronization
import TrunklineBytes
import TrunklinePlatform

/// Connects control with the push thread: pushes of calls, and those of `trunkline push test`.
final class PushComponent: PushOutput, Sendable {
  typealias Answer = @Sendable (PushReport) -> Void
  private let sender: PushSender
  private let inbox: Inbox
  private let tests: Tests
  private let logger: Logger
  private let expires = Gauge()
  private let current: Mutex<Settings>

  /// Test pushes, which belong to no call.
  private final class Tests: Sendable {
    private let waiting = Mutex<[PushKey: Answer]>([:])
    func add(_ key: PushKey, _ answer: @escaping Answer) { waiting.withLock { $0[key] = answer } }
    func remove(_ key: PushKey) -> Answer? { waiting.withLock { $0.removeValue(forKey: key) } }
  }

  init(_ settings: Settings, inbox: Inbox, logger: Logger) throws {
    let tests = Tests()
    (self.inbox, self.tests, self.logger) = (inbox, tests, logger)
    current = Mutex(settings)
    sender = try PushSender(
      providers: settings.push?.providers ?? PushProviders(), tls: settings.push?.tls ?? TLSFiles(), logger: logger
    ) { report in
      if let answer = tests.remove(report.key) { answer(report) }
      // The outcome of a test updates the device registry too.
      Self.post(report, inbox)
    }
    look()
  }

  /// A lost report would leave its call waiting for a push that has ended, so a full queue of control is tried again, for 0.5 s.
  private static func post(_ report: PushReport, _ inbox: Inbox) {
    for _ in 0..<50 where !inbox.post(.pushed(report)) { usleep(10_000) }
  }

  /// On the control thread. If the queue is full, the push is reported as failed.
  func push(_ key: PushKey, _ target: PushTarget, _ content: CallPush, deadline: Instant, since: Instant?) {
    if sender.wake(key, target, content, deadline: deadline, since: since) { return }
    inbox.post(.pushed(PushReport(key: key, target: target, outcome: .failed, reason: "tooMany", attempts: 0)))
  }

  func callOver(_ call: CallID) { sender.callOver(call) }

  /// Any thread; `answer` is called on the push thread.
  func test(_ key: PushKey, _ target: PushTarget, _ content: CallPush, _ answer: @escaping Answer) {
    tests.add(key, answer)
    guard !sender.wake(key, target, content, deadline: MonotonicClock.now() + Self.testWindow) else { return }
    tests.remove(key)?(PushReport(key: key, target: target, outcome: .failed, reason: "tooMany", attempts: 0))
  }

  /// Reads the keys again; pushes under way end on their old connection.
  func reload(_ new: Settings) throws {
    sender.replace(new.push?.providers ?? PushProviders(), tls: new.push?.tls ?? TLSFiles())
    current.withLock { $0 = new }
    look()
  }

  /// Logs a client certificate that APNs will refuse, before the first push needs it. Any thread; reads the files.
  func look() {
    guard let files = current.withLock({ $0.push })?.tls, files.certificate != nil else { return expires.set(0) }
    let remedy: Logger.MetadataValue = "renew it at Apple (VoIP Services), replace the files, then send SIGHUP"
    do {
      let bytes = [files.certificate, files.key].map { path in
        path.flatMap { FileManager.default.contents(atPath: $0) }.map { [UInt8]($0) } ?? []
      }
      let certificate = try ClientCertificate(certificate: bytes[0], key: bytes[1])
      expires.set(certificate.expires)
      let left = certificate.expires - WallClock.nowMilliseconds() / 1_000
      guard left < Self.expiryWarning else { return }
      let date = Date(timeIntervalSince1970: Double(certificate.expires)).formatted(.iso8601)
      let metadata: Logger.Metadata = ["file": "\(files.certificate ?? "")", "expires": "\(date)", "do": remedy]
      if left <= 0 {
        logger.error("push.apns.certificate has expired: APNs refuses every push", metadata: metadata)
      } else {
        logger.warning("push.apns.certificate expires soon", metadata: metadata)
      }
    } catch {
      logger.error(
        "push.apns.certificate cannot be used: no push can be sent",
        metadata: ["cert": "\(files.certificate ?? "")", "key": "\(files.key ?? "")", "why": "\(error)", "do": remedy])
    }
  }
  /// A certificate is warned of this many seconds before it expires.
  private static let expiryWarning: Int64 = 30 * 86_400

  func stop() { sender.stop() }
  var metrics: [MetricFamily] {
    sender.metrics + [
      .gauge(
        "trunkline_push_certificate_expires_seconds",
        help: "When push.apns.certificate expires, in seconds since 1970; 0: there is none.",
        expires)
    ]
  }
  var queue: MailboxReading { sender.queue }

  static let testWindow = Duration.seconds(20)
}

extension Settings.Push {
  /// The key with which browsers subscribe.
  var webPushKey: String? { (providers[.webPush] as? WebPushProvider)?.publicKey }
}

extension Settings {
  func pushSettings(_ wakes: WakeTokens) -> PushSettings? {
    // devices connect to the very node that has the call; through their sockets even without a push service
    if let nodes = cluster?.nodes { return PushSettings(gateway: nodes.url, wakes: wakes) }
    return push.map { PushSettings(gateway: $0.gateway, wakes: wakes) }
  }

  var registrationDefaults: DeviceRegistry.Defaults {
    DeviceRegistry.Defaults(
      topic: push?.topic, environment: push?.environment ?? .production, providers: push?.providers ?? PushProviders())
  }
}
