public import Bytes
import CCurl
public import Logging
public import Platform
public import PushPolicy
import Synchronization

/// The push thread: runs a `PushMachine` over HTTP/2. Nobody waits for it, and it knows of no call.
///
///     let sender = try PushSender(providers: providers, logger: logger) { report in … }
///     sender.wake(key, target, push, deadline: now + .seconds(45))
///     sender.stop()
///
/// `report` is called on the push thread, once for each `wake` that was taken and whose key was not
/// under way already, and before `stop` returns.
public final class PushSender: Sendable {
  public let statistics = PushStatistics()
  private let mailbox: Mailbox<PushWorker.Message>
  private let thread: Mutex<NamedThread?>

  public init(
    providers: PushProviders, tls: TLSFiles = TLSFiles(), random: RandomSource = .system, logger: Logger,
    report: @escaping @Sendable (PushReport) -> Void
  ) throws(SystemError) {
    // Once a process, before any other use of libcurl.
    guard curlIsReady else { throw SystemError("initialize libcurl", code: 0) }
    let mailbox = try Mailbox<PushWorker.Message>(capacity: Limits.mailbox)
    let loop = try EventLoop(name: "push")
    self.mailbox = mailbox
    thread = Mutex(nil)
    let statistics = statistics
    let running = try NamedThread.start(name: "push", logger: logger) {
      let worker = PushWorker(
        loop: loop, mailbox: mailbox, providers: providers, tls: tls, random: random, logger: logger, statistics: statistics,
        report: report)
      worker.run()
    }
    thread.withLock { $0 = running }
  }

  /// Any thread. False when the queue is full: nothing is sent and nothing reported.
  /// - Parameter since: when the INVITE came, for the histogram of the time from there to the request.
  @discardableResult public func wake(
    _ key: PushKey, _ target: PushTarget, _ push: CallPush, deadline: Instant, since: Instant? = nil
  ) -> Bool {
    mailbox.post(.input(.wake(key, target, push, deadline: deadline, since: since)))
  }

  /// Any thread. No retry for this call from now on.
  public func callOver(_ call: Identifier) { mailbox.post(.input(.callOver(call))) }

  /// Any thread. New keys; what is under way ends on its old connection.
  public func replace(_ providers: PushProviders, tls: TLSFiles? = nil) {
    if let tls { mailbox.post(.tls(tls)) }
    mailbox.post(.input(.providers(providers)))
  }

  /// Ends the thread; pushes under way are reported as failed.
  public func stop() {
    let running = thread.withLock { thread in
      defer { thread = nil }
      return thread
    }
    guard let running else { return }
    while !mailbox.post(.stop) { _ = mailbox.depth }
    running.join()
  }

  public var queue: MailboxReading { mailbox.reading("push") }
  public var metrics: [MetricFamily] { statistics.families }
}

let curlIsReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK
