public import Cluster
public import TrunklineBytes

/// A shared store and its drivers in memory, on virtual time: `SharedStoreStore` behind a network with faults. The same seed
/// gives the same run.
///
/// A driver here does what `Runtime/SharedStore` does: one reply for each request, `timeout` after 250 ms, `connected` and
/// `lost`.
public struct MemorySharedStore {
  public struct Faults: Sendable {
    public var latency = 0.000_3...0.001_2
    /// Probabilities that a request is lost before it is carried out, that a reply is lost, and that a message is lost.
    public var losesRequests = 0.0
    public var losesReplies = 0.0
    public var losesMessages = 0.0
    /// Each packet has a latency of its own; otherwise those of one node keep their order.
    public var reorders = false
    /// The error with which puts of grants are refused: full, or read-only.
    public var refusesGrants: String?
    /// Users whose rows of grants are missing or not signed.
    public var hidesGrants: Set<String> = []
    public init() {}
  }
  private enum Event {
    case execute(client: Int, epoch: Int, SharedStoreRequestID, SharedStoreRequest)
    case deliver(client: Int, epoch: Int, SharedStoreEvent)
    case expire(client: Int, SharedStoreRequestID)
    case connect(client: Int, epoch: Int)
  }
  /// An object: to copy its set for each request would dominate a run's time.
  private final class Client {
    let incarnation: Incarnation
    var isConnected = false
    var isCut = false
    /// The number of its connection: events of an older one are dropped.
    var epoch = 0
    var lastArrival = Instant.zero
    var waiting: Set<SharedStoreRequestID> = []
    /// The shared store's `life` at its last connection.
    var life: Int?
    init(_ incarnation: Incarnation, epoch: Int) { (self.incarnation, self.epoch) = (incarnation, epoch) }
  }

  public var store = SharedStoreStore()
  public var faults = Faults()
  /// Commands that were carried out, by second.
  public private(set) var commands: [Int64: Int] = [:]
  public private(set) var total = 0
  public private(set) var isDown = false
  public var timeout = Duration.milliseconds(250)
  /// Pause between attempts to connect, in seconds, with full jitter.
  public var backoff = 0.1...2.0
  /// How far the replica is behind; nil: there is no replica.
  public var replicationLag: Duration? { didSet { replica = store } }

  private var events = EventHeap<Event>()
  private var clients: [Int: Client] = [:]
  private var clientOf: [String: Int] = [:]
  private var random: SplitMix64
  private var frozenUntil: Instant?
  private var life = 1
  private var replica = SharedStoreStore()
  private var log: [(at: Instant, request: SharedStoreRequest)] = []

  public init(seed: UInt64) { random = SplitMix64(seed: seed) }

  public var next: Instant? { events.next }

  /// A write by a program that is not one of these machines.
  public mutating func write(_ request: SharedStoreRequest, at now: Instant) { _ = store.apply(request, at: now) }

  // MARK: drivers

  /// A process begins: it connects when it can.
  public mutating func attach(_ client: Int, _ incarnation: Incarnation, at now: Instant) {
    let epoch = (clients[client]?.epoch ?? 0) + 1
    clients[client] = Client(incarnation, epoch: epoch)
    clientOf[incarnation.node] = client
    events.add(.connect(client: client, epoch: epoch), at: now + latency())
  }

  /// The process has ended.
  public mutating func detach(_ client: Int) {
    clients[client]?.epoch += 1
    clients[client]?.isConnected = false
    clients[client]?.isCut = true
    clients[client]?.waiting = []
  }

  public mutating func send(_ client: Int, _ id: SharedStoreRequestID, _ request: SharedStoreRequest, at now: Instant) {
    guard let own = clients[client] else { return }
    guard own.isConnected else {
      return events.add(.deliver(client: client, epoch: own.epoch, .reply(id, .failure(.away))), at: now)
    }
    clients[client]?.waiting.insert(id)
    events.add(.expire(client: client, id), at: now + timeout)
    if chance(faults.losesRequests) { return }
    var arrival = now + latency()
    if !faults.reorders {
      arrival = max(arrival, own.lastArrival)
      clients[client]?.lastArrival = arrival
    }
    events.add(.execute(client: client, epoch: own.epoch, id, request), at: arrival)
  }

  // MARK: faults

  /// Drops all packets between this node and the shared store, until `mend`.
  public mutating func cut(_ client: Int, at now: Instant) {
    clients[client]?.isCut = true
    lose(client, "cut", at: now)
  }
  public mutating func mend(_ client: Int, at now: Instant) {
    clients[client]?.isCut = false
    retry(client, at: now)
  }
  public mutating func goDown(at now: Instant) {
    isDown = true
    for client in clients.keys.sorted() { lose(client, "down", at: now) }
  }
  /// - Parameter isFlushed: its data is lost.
  public mutating func comeUp(isFlushed: Bool, at now: Instant) {
    isDown = false
    if isFlushed { flush(at: now) }
    for client in clients.keys.sorted() { retry(client, at: now) }
  }
  /// The replica takes over, with the data that had reached it.
  public mutating func failOver(at now: Instant) {
    if replicationLag != nil { store = replica }
    log = []
    life += 1
    for client in clients.keys.sorted() where clients[client]?.isCut == false {
      lose(client, "failover", at: now)
      retry(client, at: now)
    }
  }
  /// - Parameter keepsConnections: FLUSHALL, which no connection notices; the next one finds its marker missing.
  public mutating func flush(keepsConnections: Bool = false, at now: Instant) {
    store = SharedStoreStore()
    replica = SharedStoreStore()
    log = []
    life += 1
    if keepsConnections { return }
    for client in clients.keys.sorted() where clients[client]?.isConnected == true {
      lose(client, "flushed", at: now)
      retry(client, at: now)
    }
  }
  public mutating func freeze(until end: Instant) { frozenUntil = end }
  /// Carries out a request that no driver of ours sent.
  public mutating func tamper(_ request: SharedStoreRequest, at now: Instant) { _ = store.apply(request, at: now) }
  public mutating func forge(_ message: ClusterMessage, from: Incarnation, to client: Int, at now: Instant) {
    events.add(.deliver(client: client, epoch: clients[client]?.epoch ?? 0, .message(message, from: from)), at: now)
  }

  private mutating func lose(_ client: Int, _ why: String, at now: Instant) {
    guard let own = clients[client], own.isConnected else { return }
    let waiting = own.waiting
    own.isConnected = false
    own.epoch += 1
    own.waiting = []
    let epoch = own.epoch
    events.add(.deliver(client: client, epoch: epoch, .lost(why)), at: now)
    for id in waiting.sorted(by: { $0.number < $1.number }) {
      events.add(.deliver(client: client, epoch: epoch, .reply(id, .failure(.timeout))), at: now)
    }
  }

  private mutating func retry(_ client: Int, at now: Instant) {
    guard let own = clients[client], !own.isConnected, !own.isCut else { return }
    let wait = Double.random(in: backoff, using: &random)
    events.add(.connect(client: client, epoch: own.epoch), at: now + .nanoseconds(Int64(wait * 1e9)))
  }

  // MARK: time

  /// The next due event; nil: none is due.
  public mutating func take(at now: Instant) -> (client: Int, event: SharedStoreEvent)? {
    while let due = events.next, due <= now, let (at, event) = events.pop() {
      switch event {
      case .execute(let client, let epoch, let id, let request):
        if let end = frozenUntil, at < end {
          events.add(event, at: end)
          continue
        }
        guard !isDown, let own = clients[client], own.epoch == epoch else { continue }
        execute(client, own, id, request, at)
      case .deliver(let client, let epoch, let event):
        guard let own = clients[client], own.epoch == epoch else { continue }
        if case .reply(let id, let result) = event {
          let isWaited = clients[client]?.waiting.remove(id) != nil
          if case .success = result, !isWaited { continue }
        }
        return (client, event)
      case .expire(let client, let id):
        guard clients[client]?.waiting.remove(id) != nil else { continue }
        return (client, .reply(id, .failure(.timeout)))
      case .connect(let client, let epoch):
        guard let own = clients[client], own.epoch == epoch, !own.isConnected, !own.isCut else { continue }
        guard !isDown else { continue }
        let wasFlushed = own.life.map { $0 != life } ?? false
        clients[client]?.isConnected = true
        clients[client]?.life = life
        return (client, .connected(wasFlushed: wasFlushed))
      }
    }
    return nil
  }

  private mutating func execute(
    _ client: Int, _ own: Client, _ id: SharedStoreRequestID, _ request: SharedStoreRequest, _ now: Instant
  ) {
    commands[now.nanoseconds / 1_000_000_000, default: 0] += 1
    total += 1
    if let error = faults.refusesGrants, case .putGrants = request {
      return events.add(.deliver(client: client, epoch: own.epoch, .reply(id, .failure(.refused(error)))), at: now + latency())
    }
    var reply = store.apply(request, at: now)
    if !faults.hidesGrants.isEmpty, case .grants(var page) = reply {
      page.dropped = page.rows.count { faults.hidesGrants.contains($0.user) }
      page.rows.removeAll { faults.hidesGrants.contains($0.user) }
      reply = .grants(page)
    }
    for (message, node) in store.published { tell(message, to: node, from: own.incarnation, now) }
    store.published.removeAll(keepingCapacity: true)
    replicate(request, now)
    if chance(faults.losesReplies) { return }
    events.add(.deliver(client: client, epoch: own.epoch, .reply(id, .success(reply))), at: now + latency())
  }

  private mutating func tell(_ message: ClusterMessage, to node: String?, from: Incarnation, _ now: Instant) {
    let listeners = node.map { clientOf[$0].map { [$0] } ?? [] } ?? clients.keys.sorted()
    for client in listeners where clients[client]?.isConnected == true && !chance(faults.losesMessages) {
      events.add(.deliver(client: client, epoch: clients[client]!.epoch, .message(message, from: from)), at: now + latency())
    }
  }

  private mutating func replicate(_ request: SharedStoreRequest, _ now: Instant) {
    guard let lag = replicationLag else { return }
    log.append((now, request))
    var count = 0
    while count < log.count, now - log[count].at > lag {
      _ = replica.apply(log[count].request, at: log[count].at)
      count += 1
    }
    replica.published = []
    if count > 0 { log.removeFirst(count) }
  }

  private mutating func latency() -> Duration {
    .nanoseconds(Int64(Double.random(in: faults.latency, using: &random) * 1e9))
  }
  private mutating func chance(_ share: Double) -> Bool {
    share > 0 && Double.random(in: 0..<1, using: &random) < share
  }
}
