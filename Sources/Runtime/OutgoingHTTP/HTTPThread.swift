import CTrunklineCurl
import Logging
import Synchronization
import TrunklineBytes
import TrunklinePlatform

/// The work of an `HTTPThread`: all of it on that thread.
protocol HTTPWorker: AnyObject, SendableMetatype {
  associatedtype Message: Sendable
  /// Before the first message.
  func started()
  /// The posted messages, in their order.
  func handle(_ messages: [Message])
  /// The last call, with the messages posted before the stop. Transfers under way have ended without completions.
  func ended(_ rest: [Message])
}

/// A thread with an event loop, a mailbox and HTTP transfers: pushes, webhooks and verifiers have one each, so that a slow server
/// delays only its own.
///
///     let thread = try HTTPThread(name: "push", capacity: 1_000, tls: tls, logger: logger) { loop, transfers in PushWorker(…) }
///     thread.post(message)
///     thread.stop()
final class HTTPThread<Worker: HTTPWorker>: Sendable {
  private let name: String
  /// Nil stops the thread.
  private let mailbox: Mailbox<Worker.Message?>
  private let thread: Mutex<NamedThread?>

  init(
    name: String, capacity: Int, tls: TLSFiles, logger: Logger,
    worker makeWorker: @escaping @Sendable (EventLoop, HTTPTransfers) -> Worker
  ) throws(SystemError) {
    // Once per process, before any other use of libcurl.
    guard curlIsReady else { throw SystemError("initialize libcurl", code: 0) }
    let mailbox = try Mailbox<Worker.Message?>(capacity: capacity)
    let loop = try EventLoop(name: name)
    (self.name, self.mailbox) = (name, mailbox)
    thread = Mutex(nil)
    let running = try NamedThread.start(name: name, logger: logger) {
      let transfers = HTTPTransfers(loop: loop, tls: tls, logger: logger)
      Self.run(makeWorker(loop, transfers), on: loop, transfers: transfers, mailbox: mailbox, logger: logger)
    }
    thread.withLock { $0 = running }
  }

  /// Any thread. False when the queue is full: the message is lost.
  @discardableResult func post(_ message: Worker.Message) -> Bool { mailbox.post(message) }

  /// Any thread but its own. Returns once the worker has ended.
  func stop() {
    let running = thread.withLock { thread in
      defer { thread = nil }
      return thread
    }
    guard let running else { return }
    while !mailbox.post(nil) { _ = mailbox.depth }
    running.join()
  }

  var queue: MailboxReading { mailbox.reading(name) }

  private static func run(
    _ worker: Worker, on loop: EventLoop, transfers: HTTPTransfers, mailbox: Mailbox<Worker.Message?>, logger: Logger
  ) {
    var batch: [Worker.Message?] = []
    do {
      try loop.register(mailbox.event.fd, .readable) { _ in
        batch.removeAll(keepingCapacity: true)
        mailbox.drain(into: &batch, limit: Limits.messagesPerStep)
        worker.handle(batch.compactMap(\.self))
        if batch.contains(where: { $0 == nil }) { loop.stop() }
      }
    } catch {
      logger.error("the HTTP client thread cannot read its queue: no push or webhook is sent", metadata: ["why": "\(error)"])
    }
    worker.started()
    loop.run()
    loop.unregister(mailbox.event.fd)
    transfers.close()
    batch.removeAll()
    mailbox.drain(into: &batch, limit: Limits.mailbox)
    worker.ended(batch.compactMap(\.self))
  }
}

let curlIsReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK
