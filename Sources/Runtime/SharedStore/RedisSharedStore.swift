public import Cluster
public import Logging
import Synchronization
public import TrunklineBytes
public import TrunklinePlatform

/// The shared store of a cluster's nodes, by Redis or Valkey (single, behind Sentinel, or Redis Cluster): a thread with two
/// connections, one for commands (in a Redis Cluster one for each shard) and one that is subscribed to this node's channel and to
/// the channel of all nodes. No caller waits for it, and it has no knowledge of calls. Docs: docs/design/cluster-shared-store.md,
/// Connections.
///
///     let sharedStore = try RedisSharedStore(settings, node: incarnation, readiness: readiness, logger: logger) { event in control.post(event) }
///     sharedStore.post(SharedStoreRequestID(1), .locate(user: "alice", entering: nil))   // → .reply(1, …) within 250 ms
///     sharedStore.stop()
public final class RedisSharedStore: Sendable {
  enum Message: Sendable {
    case request(SharedStoreRequestID, SharedStoreRequest)
    case stop
  }

  private let statistics = SharedStoreMetrics()
  private let mailbox: Mailbox<Message>
  private let thread: Mutex<NamedThread?>

  /// Starts the thread `shared-store`. Throws if certificates cannot be read (`TLSFailure`) or the system refuses a thread
  /// (`SystemError`); a shared store that is away is not an error.
  /// - Parameters:
  ///   - readiness: gets a component `shared-store`, always ready: a node without the shared store accepts calls. Its note states
  ///     the fault.
  ///   - deliver: called on the thread, in order. Each request that `post` accepted has exactly one `reply`.
  public init(
    _ settings: SharedStoreSettings, node: Incarnation, readiness: Readiness? = nil, logger: Logger,
    random: RandomSource = .system,
    deliver: @escaping @Sendable (SharedStoreEvent) -> Void
  ) throws {
    // read once, to report a fault to the operator now
    if let tls = settings.tls { _ = try TLSContext(client: TLSClientSettings(identity: tls, host: "")) }
    let mailbox = try Mailbox<Message>(capacity: Limits.mailbox)
    let loop = try EventLoop(name: "shared-store")
    self.mailbox = mailbox
    thread = Mutex(nil)
    let running = try NamedThread.start(name: "shared-store", logger: logger) { [statistics] in
      let worker = SharedStoreWorker(
        settings, node: node, loop: loop, metrics: statistics, readiness: readiness, logger: logger, random: random,
        deliver: deliver)
      worker.run(mailbox)
    }
    thread.withLock { $0 = running }
  }

  /// Any thread. False when the queue is full: no reply follows. With `gathers` the thread is notified by the next `wake`.
  @discardableResult public func post(_ id: SharedStoreRequestID, _ request: SharedStoreRequest, gathers: Bool = false) -> Bool {
    if mailbox.post(.request(id, request), gathers ? .gathered : .now) { return true }
    statistics.failures[.full].increment()
    return false
  }

  /// Any thread, after `post` with `gathers`: sends the posted requests in one write.
  public func wake() { mailbox.wake() }

  /// Any thread but its own. Sends the requests posted before, waits for answers at most as long as a command's time limit,
  /// closes the connections and ends the thread.
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
  public var queue: MailboxReading { mailbox.reading("shared-store") }
}
