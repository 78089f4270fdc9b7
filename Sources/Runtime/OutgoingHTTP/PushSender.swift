public import Logging
public import PushPolicy
public import TrunklineBytes
public import TrunklinePlatform

/// The push thread: runs a `PushMachine` over HTTP/2. It holds no call, and no call waits for it.
///
///     let sender = try PushSender(providers: providers, logger: logger) { report in … }
///     sender.wake(key, target, push, deadline: now + .seconds(45))
///     sender.stop()
///
/// `report` is called on the push thread, once for each accepted `wake` whose key was not under way already, and before `stop`
/// returns.
public final class PushSender: Sendable {
  public let statistics = PushStatistics()
  private let thread: HTTPThread<PushWorker>

  public init(
    providers: PushProviders, tls: TLSFiles = TLSFiles(), random: RandomSource = .system, logger: Logger,
    report: @escaping @Sendable (PushReport) -> Void
  ) throws(SystemError) {
    let statistics = statistics
    thread = try HTTPThread(name: "push", capacity: Limits.mailbox, tls: tls, logger: logger) { loop, transfers in
      PushWorker(
        loop: loop, transfers: transfers, providers: providers, random: random, logger: logger, statistics: statistics,
        report: report)
    }
  }

  /// Any thread. False when the queue is full: nothing is sent and nothing reported.
  /// - Parameter since: when the INVITE arrived; the histogram counts the time from there to the request.
  @discardableResult public func wake(
    _ key: PushKey, _ target: PushTarget, _ push: CallPush, deadline: Instant, since: Instant? = nil
  ) -> Bool {
    thread.post(.input(.wake(key, target, push, deadline: deadline, since: since)))
  }

  /// Any thread. Ends the retries for this call.
  public func callOver(_ call: Identifier) { thread.post(.input(.callOver(call))) }

  /// Any thread. New keys; pushes under way end on their old connection.
  public func replace(_ providers: PushProviders, tls: TLSFiles? = nil) {
    if let tls { thread.post(.tls(tls)) }
    thread.post(.input(.providers(providers)))
  }

  /// Ends the thread; pushes under way are reported as failed.
  public func stop() { thread.stop() }

  public var queue: MailboxReading { thread.queue }
  public var metrics: [MetricFamily] { statistics.families }
}
