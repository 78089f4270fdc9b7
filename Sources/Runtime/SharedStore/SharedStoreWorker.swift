import Cluster
import Logging
import RESP
import TrunklineBytes
import TrunklinePlatform

/// The shared store's thread: its connections, when they are tried again, and the events that its owner gets.
///
/// | phase | event | next |
/// |---|---|---|
/// | waiting | its pause has ended | connecting |
/// | connecting | every shard and the subscription have answered as expected | up: `connected` |
/// | connecting | an unusable answer, a refusal, 2 s | waiting |
/// | up | a connection breaks, or is silent (`SharedStoreShard`, `SharedStoreSubscription`), READONLY | waiting: `lost` |
/// | any | stop | stopping: until all commands are answered, or the time limit is over |
///
/// Requests outside of *up* fail with `away` at once. Sentinel or Cluster are queried for the primaries at every connection.
final class SharedStoreWorker {
  enum Phase { case waiting(until: Instant), connecting, up }

  let settings: SharedStoreSettings
  let keys: SharedStoreKeys
  let node: Incarnation
  let loop: EventLoop
  let metrics: SharedStoreMetrics
  let logger: Logger
  let random: RandomSource
  let deliver: (SharedStoreEvent) -> Void
  let greeting: SharedStoreGreeting
  private let readiness: Readiness?
  private var timer: EventLoop.TimerID?

  private(set) var phase: Phase
  /// The number of the attempt to connect: results of an older one are ignored.
  private(set) var attempt: UInt64 = 0
  private var tries = 0
  private var dialogs: [SharedStoreDialog] = []
  var shards: [SharedStoreShard] = []
  /// Of a Redis Cluster: the shard of each slot.
  var slots: [UInt16] = []
  var digests: [SharedStoreScript: String] = [:]
  /// By key, kept over all connections.
  var markers: [String: String] = [:]
  var wasFlushed = false
  /// Greetings that are not answered yet.
  var missing = 0
  /// The Sentinel, or node, that is queried first: another one after a failure.
  var firstAddress = 0
  var subscription: SharedStoreSubscription?
  private var counters: [String: Counter] = [:]
  private var stopBy: Instant?
  private var lastFailure = ""
  /// The shared store is connected, but refuses our lease.
  private var isRefused = false
  private var refusals: [String: Instant] = [:]
  private var unsignedLoggedAt: Instant?
  var messagesDropped = 0
  var leases: LeaseReading

  init(
    _ settings: SharedStoreSettings, node: Incarnation, loop: EventLoop, metrics: SharedStoreMetrics, readiness: Readiness?,
    logger: Logger,
    random: RandomSource, deliver: @escaping (SharedStoreEvent) -> Void
  ) {
    (self.settings, self.node, self.loop, self.metrics) = (settings, node, loop, metrics)
    (self.readiness, self.logger, self.random, self.deliver) = (readiness, logger, random, deliver)
    keys = SharedStoreKeys(prefix: settings.prefix, seal: settings.key.flatMap { SharedStoreSeal(clusterKey: $0.exposed) })
    leases = LeaseReading(own: node, keys: keys)
    greeting = SharedStoreGreeting(
      username: settings.username, password: settings.password?.exposed,
      clientName: "trunkline-" + SharedStoreKeys.escaped(node.node))
    phase = .waiting(until: loop.now)
  }

  /// Runs until a stop is posted.
  func run(_ mailbox: Mailbox<RedisSharedStore.Message>) {
    var batch: [RedisSharedStore.Message] = []
    do throws(SystemError) {
      try loop.register(mailbox.event.fd, .readable) { [unowned self] _ in
        batch.removeAll(keepingCapacity: true)
        mailbox.drain(into: &batch, limit: Limits.messagesPerStep)
        for message in batch { handle(message) }
      }
    } catch {
      logger.error("the shared store's thread cannot receive requests: restart the gateway", metadata: ["why": "\(error)"])
    }
    timer = loop.addTimer("shared-store") { [unowned self] in lookAtTime() }
    loop.addFlush { [unowned self] in endStep() }
    note("not connected yet")
    loop.run()
    closeAll()
    loop.unregister(mailbox.event.fd)
    batch.removeAll()
    mailbox.drain(into: &batch)
    for case .request(let id, _) in batch { refuse(id, .away) }
  }

  // MARK: requests

  private func handle(_ message: RedisSharedStore.Message) {
    switch message {
    case .stop: stopBy = loop.now + settings.commandTime
    case .request(let id, let request):
      guard case .up = phase else { return refuse(id, .away) }
      let command = SharedStoreCommand(request, keys, from: node)
      guard !command.isTooLong else { return refuse(id, .refused("the value is longer than other nodes read")) }
      guard let shard = shard(of: command.tag) else { return refuse(id, .away) }
      guard shard.count < Limits.inFlight else { return refuse(id, .full) }
      send(command, to: shard, id)
    }
  }

  func send(
    _ command: SharedStoreCommand, to shard: SharedStoreShard, _ id: SharedStoreRequestID, asText: Bool = false,
    redirections: Int = 0
  ) {
    counter(command.name).increment()
    shard.link?.send(command.command { asText ? nil : digests[$0] })
    shard.append(
      SharedStoreShard.Waiting(
        id: id, command: command, sent: loop.now, deadline: loop.now + settings.commandTime, redirections: redirections))
  }

  func shard(of tag: String?) -> SharedStoreShard? {
    guard let tag, slots.count == SharedStoreKeys.slots else { return shards.first }
    let index = Int(slots[SharedStoreKeys.slot(tag)])
    return index < shards.count ? shards[index] : nil
  }

  func refuse(_ id: SharedStoreRequestID, _ failure: SharedStoreFailure) {
    switch failure {
    case .timeout: metrics.failures[.timeout].increment()
    case .away: metrics.failures[.away].increment()
    case .full: metrics.failures[.full].increment()
    case .refused(let why):
      metrics.failures[.refused].increment()
      let kind = String(why.prefix { $0 != " " })
      if refusals[kind].map({ loop.now - $0 >= Limits.logInterval }) ?? true, refusals.count < 64 || refusals[kind] != nil {
        refusals[kind] = loop.now
        logger.warning("the shared store refused a request", metadata: ["why": "\(why)"])
      }
    }
    deliver(.reply(id, .failure(failure)))
  }

  /// Notes that a request was answered as expected.
  func answered(_ command: SharedStoreCommand) {
    tries = 0
    guard isRefused, command.isOfLease else { return }
    isRefused = false
    readiness?.set("shared-store", ready: true)
  }

  /// Reports to the operator that the node has no lease, so that other nodes send it nothing.
  func leaseRefused(_ why: String) {
    isRefused = true
    readiness?.set("shared-store", ready: true, note: "the node has no lease: the shared store refuses it: \(why)")
  }

  private func counter(_ name: String) -> Counter {
    if let counter = counters[name] { return counter }
    let counter = metrics.commands.counter(name)
    counters[name] = counter
    return counter
  }

  // MARK: connections

  func isPresent(_ attempt: UInt64) -> Bool { attempt == self.attempt }

  /// Connects, sends `commands` and waits for `expected` answers.
  func open(
    _ address: RedisServers.Address, _ commands: [RESPCommand], expected: Int,
    bounds: RESPReader.Bounds = RESP.Limits.reply,
    within time: Duration, then: @escaping (SharedStoreDialog.Outcome) -> Void
  ) {
    let dialog = SharedStoreDialog(address, expected: expected, deadline: loop.now + time, then: then)
    dialogs.append(dialog)
    dialog.connect(commands, tls: settings.tls, bounds: bounds, loop: loop, logger: logger)
  }

  /// All connections have answered.
  func becomeUp() {
    guard case .connecting = phase else { return }
    phase = .up
    metrics.up.set(1)
    metrics.connects.increment()
    if wasFlushed { metrics.flushes.increment() }
    logger.notice(
      "connected to Redis", metadata: ["shards": "\(shards.count)", "was_flushed": "\(wasFlushed)"])
    lastFailure = ""
    isRefused = false
    readiness?.set("shared-store", ready: true)
    deliver(.connected(wasFlushed: wasFlushed))
    wasFlushed = false
  }

  /// Closes all connections; they are made again after a pause.
  func fail(_ why: String) {
    if case .waiting = phase { return }
    let wasUp = if case .up = phase { true } else { false }
    let upper = min(settings.retry.upperBound.nanoseconds, settings.retry.lowerBound.nanoseconds << min(tries + 1, 16))
    let pause = max(settings.retry.lowerBound.nanoseconds, Int64(random.next() % UInt64(max(1, upper))))
    tries += 1
    firstAddress += 1
    phase = .waiting(until: loop.now + .nanoseconds(pause))
    if wasUp {
      metrics.up.set(0)
      metrics.losses.increment()
      deliver(.lost(why))
    }
    closeAll()
    note(why)
    if lastFailure != why {
      lastFailure = why
      logger.warning("the shared store is unavailable: devices at other nodes are woken by push", metadata: ["why": "\(why)"])
    }
  }

  private func note(_ why: String) {
    readiness?.set("shared-store", ready: true, note: "the shared store is unavailable: \(why)")
  }

  private func closeAll() {
    attempt += 1
    missing = 0
    for dialog in dialogs { dialog.cancel() }
    dialogs = []
    subscription?.close()
    subscription = nil
    let gone = shards
    shards = []
    slots = []
    for shard in gone {
      shard.link?.close()
      shard.link = nil
      for id in shard.removeAll() { refuse(id, .timeout) }
    }
  }

  // MARK: time

  private func lookAtTime() {
    let now = loop.now
    for dialog in dialogs where dialog.deadline <= now { dialog.fail("it does not answer") }
    if case .waiting(let until) = phase, until <= now, stopBy == nil {
      phase = .connecting
      attempt += 1
      connect()
    }
    guard case .up = phase else { return }
    // Replies that have arrived are read before time limits are checked: one step of this thread may have lasted longer than
    // `Limits.silence`, on a machine that was paused or in a burst of requests.
    for shard in shards { shard.link?.readArrived() }
    subscription?.readArrived()
    guard case .up = phase else { return }
    for shard in shards {
      for id in shard.expired(at: now) { refuse(id, .timeout) }
      if shard.pingIsDue(at: now) {
        shard.link?.send(RESPCommand("PING"))
        shard.append(SharedStoreShard.Waiting(sent: now, deadline: now + settings.commandTime))
      }
    }
    for shard in shards {
      if let why = shard.loss(at: now) { return fail("\(shard.address): \(why)") }
    }
    if let subscription, subscription.pingIsDue(at: now), !subscription.ping(at: now) {
      fail("the subscription does not answer")
    }
  }

  /// Logs skipped values once per `Limits.logInterval`; the counter has all.
  private func logUnsigned() {
    guard let (count, location) = keys.seal?.drainFailures() else { return }
    metrics.valuesUnsigned.increment(by: UInt64(count))
    guard unsignedLoggedAt.map({ loop.now - $0 >= Limits.logInterval }) ?? true else { return }
    unsignedLoggedAt = loop.now
    logger.warning(
      "values in the shared store are not signed with this cluster's key: they are skipped, and the nodes that own them write them again",
      metadata: ["key": "\(location)", "count": "\(count)"])
  }

  private func endStep() {
    logUnsigned()
    if messagesDropped > 0 {
      metrics.messagesDropped.increment(by: UInt64(messagesDropped))
      deliver(.dropped(messagesDropped))
      messagesDropped = 0
    }
    for shard in shards { shard.link?.flush() }
    subscription?.flush()
    dialogs.removeAll(where: \.isOver)
    for dialog in dialogs { dialog.flush() }
    var next = Instant.distantFuture
    if let stopBy {
      let isIdle = shards.allSatisfy { $0.count == 0 }
      let isUp = if case .up = phase { true } else { false }
      guard !isIdle, isUp, loop.now < stopBy else { return loop.stop() }
      next = stopBy
    } else if case .waiting(let until) = phase {
      next = until
    }
    for dialog in dialogs { next = min(next, dialog.deadline) }
    if case .up = phase { for shard in shards { next = min(next, shard.deadline) } }
    if let subscription { next = min(next, subscription.nextPing) }
    if let timer { loop.setTimer(timer, at: next == .distantFuture ? nil : next) }
  }
}
