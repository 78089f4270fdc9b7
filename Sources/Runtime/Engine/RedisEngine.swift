public import Bytes
public import Cluster
public import Logging
public import Platform
import Synchronization

/// The shared engine of a cluster's nodes, by Redis or Valkey (single, behind Sentinel, or Redis Cluster): a thread with two connections, one
/// for commands (of a Redis Cluster one for each shard) and one that hears this node's channel and everybody's. Nobody waits for it, and it
/// knows of no call. Docs: docs/design/cluster.md, The engine's thread.
///
///     let engine = try RedisEngine(settings, node: incarnation, readiness: readiness, logger: logger) { event in control.post(event) }
///     engine.post(EngineRequestID(1), .locate(user: "alice", entering: nil))   // → .reply(1, …) within 250 ms
///     engine.stop()
public final class RedisEngine: Sendable {
  enum Message: Sendable {
    case request(EngineRequestID, EngineRequest)
    case stop
  }

  private let statistics = EngineMetrics()
  private let mailbox: Mailbox<Message>
  private let thread: Mutex<NamedThread?>

  /// Starts the thread `engine`. Throws if certificates cannot be read (`TLSFailure`) or the system has no thread (`SystemError`); an engine that
  /// is away is no error.
  /// - Parameters:
  ///   - readiness: gets a component `engine`, always ready: a node without engine takes calls. Its note says what is wrong.
  ///   - deliver: called on the thread, in order. Each request that `post` took has exactly one `reply`.
  public init(
    _ settings: EngineSettings, node: Incarnation, readiness: Readiness? = nil, logger: Logger, random: RandomSource = .system,
    deliver: @escaping @Sendable (EngineEvent) -> Void
  ) throws {
    // read once to tell the operator now
    if let tls = settings.tls { _ = try TLSContext(client: TLSClientSettings(identity: tls, host: "")) }
    let mailbox = try Mailbox<Message>(capacity: Limits.mailbox)
    let loop = try EventLoop(name: "engine")
    self.mailbox = mailbox
    thread = Mutex(nil)
    let running = try NamedThread.start(name: "engine", logger: logger) { [statistics] in
      let worker = EngineWorker(
        settings, node: node, loop: loop, metrics: statistics, readiness: readiness, logger: logger, random: random,
        deliver: deliver)
      worker.run(mailbox)
    }
    thread.withLock { $0 = running }
  }

  /// Any thread. False when the queue is full: no reply follows. With `gathers` the thread hears of it with the next `wake`.
  @discardableResult public func post(_ id: EngineRequestID, _ request: EngineRequest, gathers: Bool = false) -> Bool {
    if mailbox.post(.request(id, request), gathers ? .gathered : .now) { return true }
    statistics.failures[.full].increment()
    return false
  }

  /// Any thread, after `post` with `gathers`: what was posted goes out in one write.
  public func wake() { mailbox.wake() }

  /// Any thread but its own. What was posted before is sent, and answers are waited for as long as a command may take; then the connections
  /// are closed and the thread ends.
  public func stop() {
    let running = thread.withLock { thread in
      defer { thread = nil }
      return thread
    }
    guard let running else { return }
    while !mailbox.post(.stop) { _ = mailbox.depth }
    running.join()
  }

  public var metrics: [MetricFamily] { statistics.families }
  public var queue: MailboxReading { mailbox.reading("engine") }
}
