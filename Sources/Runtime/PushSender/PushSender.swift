public import Bytes
public import Logging
public import Platform
public import PushPolicy

/// The push thread: runs a `PushMachine` over HTTP/2. No call waits for it, and it knows of none.
///
///     let sender = try PushSender(providers: providers, logger: logger) { report in … }
///     sender.wake(key, target, push, deadline: now + .seconds(45))
///     sender.stop()
///
/// `report` is called on the push thread, once for each `wake` that was taken and whose key was not
/// under way already, and before `stop` returns.
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
  /// - Parameter since: when the INVITE came, for the histogram of the time from there to the request.
  @discardableResult public func wake(
    _ key: PushKey, _ target: PushTarget, _ push: CallPush, deadline: Instant, since: Instant? = nil
  ) -> Bool {
    thread.post(.input(.wake(key, target, push, deadline: deadline, since: since)))
  }

  /// Any thread. No retry for this call from now on.
  public func callOver(_ call: Identifier) { thread.post(.input(.callOver(call))) }

  /// Any thread. New keys; what is under way ends on its old connection.
  public func replace(_ providers: PushProviders, tls: TLSFiles? = nil) {
    if let tls { thread.post(.tls(tls)) }
    thread.post(.input(.providers(providers)))
  }

  /// Ends the thread; pushes under way are reported as failed.
  public func stop() { thread.stop() }

  public var queue: MailboxReading { thread.queue }
  public var metrics: [MetricFamily] { statistics.families }
}
