import CTrunklineLinux
import Glibc
import TrunklineBytes
import TrunklineMediaSession
import TrunklinePlatform
import TrunklineSTUN

/// The work of one media thread: its sockets, its sessions, their ticks. Made inside the thread and never leaves it.
///
/// A step: one `epoll_wait`, one clock read, then sockets in batches, commands, ticks that are due; the sessions' output is sent
/// after every batch; when many sockets are ready, together.
struct MediaWorker: ~Copyable {
  enum Kind: UInt64 {
    case mailbox = 1
    case timer, app, trunk, trunkControl
  }

  let shared: MediaWorkerShared
  let epoll: Int32
  let timer: Int32
  var output: MediaOutput
  var receiving = ReceiveBatch()
  var sending: SendBatch
  // `Limits.sessionsPerThread` pointers; the entries are allocated and freed with their session.
  let entries: UnsafeMutablePointer<UnsafeMutablePointer<SessionEntry>?>
  var freeSlots: [Int]
  var slotOf: [MediaSessionID: Int] = [:]
  var legOfUfrag: [UfragKey: (slot: Int, leg: AppLegID)] = [:]
  var addresses = AddressTable(limit: Limits.appAddresses)
  /// One of each leg, for packets from addresses that are not in the table.
  var legOfSource: [UInt32: (slot: Int, leg: AppLegID)] = [:]
  var ticks = TickWheel()
  // Owned: freed when the last member has left, and in deinit.
  var mixers: [MediaGroupID: UnsafeMutablePointer<GroupMixer>] = [:]
  var work: [MediaWork] = []
  var apps = AppSockets()
  /// The number of sessions opened so far.
  var opened: UInt64 = 0
  var isRunning = true
  /// Many sockets were ready at the start of the step.
  private var isCrowded = false
  var now = MonotonicClock.now()
  let counters: WorkerCounters
  var governor: LoadGovernor
  var meter = LoadMeter()
  /// Sessions with audio.
  var running = 0
  var ceiling: Int
  private var nextDrops = Instant.zero
  private var armedFor = Instant.distantFuture

  init(_ shared: MediaWorkerShared) throws(SystemError) {
    self.shared = shared
    governor = shared.governor
    ceiling = shared.governor.initial.ceiling
    counters = WorkerCounters(shared.metrics)
    output = MediaOutput(packetCapacity: 512)
    sending = SendBatch(capacity: 512)
    entries = .allocate(capacity: Limits.sessionsPerThread)
    entries.initialize(repeating: nil, count: Limits.sessionsPerThread)
    freeSlots = Array((0..<Limits.sessionsPerThread).reversed())
    (epoll, timer) = (shared.epoll, shared.timer)
    try watch(shared.mailbox.event.fd, as: .mailbox, index: 0)
    try watch(timer, as: .timer, index: 0)
  }

  deinit {
    for slot in 0..<Limits.sessionsPerThread {
      guard let entry = entries[slot] else { continue }
      entry.deinitialize(count: 1)
      entry.deallocate()
    }
    entries.deallocate()
    for mixer in mixers.values {
      mixer.deinitialize(count: 1)
      mixer.deallocate()
    }
  }

  func watch(_ fd: Int32, as kind: Kind, index: Int) throws(SystemError) {
    var event = epoll_event()
    event.events = EPOLLIN.rawValue
    event.data.u64 = kind.rawValue << 56 | UInt64(index)
    guard epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0 else { throw SystemError("watch a media socket") }
  }

  // MARK: The loop

  mutating func run() {
    // The time of the start does not count as a call's.
    meter = LoadMeter()
    let heartbeat = Heartbeat()
    defer { heartbeat.end() }
    withUnsafeTemporaryAllocation(of: epoll_event.self, capacity: 128) { events in
      while isRunning {
        arm()
        heartbeat.waits()
        let count = epoll_wait(epoll, events.baseAddress, Int32(events.count), -1)
        heartbeat.woke()
        now = MonotonicClock.now()
        isCrowded = count >= Limits.crowdedStep
        for index in 0..<max(0, Int(count)) { ready(events[index].data.u64) }
        flush()
        runTicks()
        finishStep()
      }
    }
    closeAll()
  }

  private mutating func ready(_ data: UInt64) {
    let index = Int(data & 0x00ff_ffff_ffff_ffff)
    switch Kind(rawValue: data >> 56) {
    case .mailbox: drainWork()
    case .timer:
      var expirations: UInt64 = 0
      _ = read(timer, &expirations, 8)
      armedFor = .distantFuture
    case .app: receiveApp(index)
    case .trunk: receiveTrunk(index, isControl: false)
    case .trunkControl: receiveTrunk(index, isControl: true)
    case nil: break
    }
  }

  /// Sleeps until the next occupied slot; without sessions until an input.
  private mutating func arm() {
    let due = ticks.nextDue ?? .distantFuture
    guard due != armedFor else { return }
    armedFor = due
    var setting = itimerspec()
    if due != .distantFuture {
      let nanoseconds = max(1, due.nanoseconds)
      setting.it_value = timespec(tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
    }
    timerfd_settime(timer, Int32(TFD_TIMER_ABSTIME), &setting, nil)
  }

  mutating func runTicks() {
    while let due = ticks.nextDue, due <= now {
      if now - due > Limits.ticksBehind {
        let skipped = ticks.skip(to: now)
        meter.skipped(skipped)
        shared.metrics.ticksLeftOut.increment(by: UInt64(skipped))
        continue
      }
      for tick in ticks.popDue() {
        let (slot, direction) = (tick.session, tick.direction)
        guard let entry = entries[slot], !entry.pointee.session.skipsTick(direction) else { continue }
        // Each by itself: the ticks before it in the slot make it late, too.
        let late = MonotonicClock.now() - due
        shared.metrics.tickLateness.record(late)
        meter.ticked(late: late)
        if let group = entry.pointee.group {
          entry.pointee.session.tick(direction, in: group.mixer, as: group.member, at: now, into: &output)
        } else {
          entry.pointee.session.tick(direction, at: now, into: &output)
        }
        if direction == .trunkToApp, let other = entry.pointee.session.bridgeTarget { passOn(slot, to: other) }
        let current = entry.pointee.tickSlots[direction]
        if let phase = entry.pointee.session.preferredPhase(direction, current: ticks.phase(of: current)) {
          entry.pointee.tickSlots[direction] = ticks.move(tick, from: current, toPhase: phase)
        }
        afterSession(slot)
      }
      flush()
    }
  }

  private mutating func finishStep() {
    flush()
    if now >= meter.due { checkLoad() }
    guard now >= nextDrops else { return }
    nextDrops = now + .seconds(1)
    countDrops()
  }

  private mutating func countDrops() {
    for reason in MediaDrop.allCases {
      let count = output.drainDrops(reason)
      if count > 0 { shared.metrics.drops.counter(reason.name).increment(by: count) }
    }
    shared.metrics.retiredSources.increment(by: output.retiredSources)
    shared.metrics.sourceTakeovers.increment(by: output.sourceTakeovers)
    output.retiredSources = 0
    output.sourceTakeovers = 0
    let overflowed = output.packets.drainOverflowed()
    if overflowed > 0 { shared.metrics.drops.counter(MediaDrop.batchFull.name).increment(by: overflowed) }
  }

  private mutating func closeAll() {
    for slot in 0..<Limits.sessionsPerThread where entries[slot] != nil {
      guard let id = entries[slot]?.pointee.session.id else { continue }
      command(.close(id))
    }
    flush()
    countDrops()
  }

  // MARK: Output of sessions

  /// To be called after each call into the session of `slot`.
  mutating func afterSession(_ slot: Int) {
    if output.packets.isNearlyFull { flush() }
    if !output.bindings.isEmpty { bindAddresses(slot) }
    if !output.sources.isEmpty { bindSources(slot) }
    if !output.handshakes.isEmpty {
      for request in output.handshakes where !shared.handshakes.post(.session(request, shared.mailbox)) {
        shared.metrics.handshakes[.refused].increment()
      }
      output.handshakes.removeAll(keepingCapacity: true)
    }
    if !output.events.isEmpty { deliverEvents(slot) }
  }

  private mutating func deliverEvents(_ slot: Int) {
    let events = output.events
    output.events.removeAll(keepingCapacity: true)
    for event in events {
      if case .quality(_, let statistics) = event { count(statistics, slot) }
      if case .closed(_, let statistics) = event {
        count(statistics, slot)
        remove(slot)
      }
      shared.eventHandler(event)
    }
  }

  private func count(_ statistics: MediaStatistics, _ slot: Int) {
    guard let entry = entries[slot] else { return }
    shared.metrics.add(statistics, since: entry.pointee.counted)
    entry.pointee.counted = statistics
  }

  private mutating func bindAddresses(_ slot: Int) {
    defer { output.bindings.removeAll(keepingCapacity: true) }
    guard let entry = entries[slot] else { return }
    for binding in output.bindings {
      guard let leg = entry.pointee.session.index(of: binding.leg) else { continue }
      let owner = AddressTable.Owner(session: Int32(slot), leg: Int32(leg))
      if addresses.find(binding.address, binding.route.raw) == owner { continue }
      guard addresses.bind(binding.address, binding.route.raw, to: owner) else {
        shared.metrics.appAddressesRefused.increment()
        continue
      }
      entry.pointee.addresses.append((binding.route.raw, binding.address))
      if entry.pointee.addresses.count > Limits.addressesPerSession {
        let oldest = entry.pointee.addresses.removeFirst()
        addresses.remove(oldest.address, oldest.route, of: Int32(slot))
      }
    }
    shared.metrics.appAddresses.set(Int64(addresses.count))
  }

  /// An SSRC announced by another leg belongs to that leg as long as it lives: an app chooses its own, and could choose
  /// another's.
  private mutating func bindSources(_ slot: Int) {
    defer { output.sources.removeAll(keepingCapacity: true) }
    guard let entry = entries[slot] else { return }
    for source in output.sources {
      forgetSources(slot) { $0 == source.leg }
      guard legOfSource[source.ssrc] == nil else { continue }
      legOfSource[source.ssrc] = (slot, source.leg)
      entry.pointee.sources.append((source.leg, source.ssrc))
    }
  }

  mutating func forgetSources(_ slot: Int, where isOver: (AppLegID) -> Bool) {
    guard let entry = entries[slot] else { return }
    for (leg, ssrc) in entry.pointee.sources where isOver(leg) { legOfSource[ssrc] = nil }
    entry.pointee.sources.removeAll { isOver($0.leg) }
  }

  /// Under load the output of one step leaves together, 32 datagrams at a time; else a packet waits for no other. HOT
  @inline(__always) mutating func flushIfMany() {
    if output.packets.count >= (isCrowded ? Limits.datagramsPerBatch : 1) { flush() }
  }

  mutating func flush() {
    guard output.packets.count > 0 else { return }
    let outcome = sending.send(&output.packets)
    counters.sent.increment(by: UInt64(outcome.packets))
    if outcome.refused > 0 { counters.sendRefused.increment(by: UInt64(outcome.refused)) }
  }
}

/// The counters of every batch, looked up once.
struct WorkerCounters {
  let trunkReceived, appReceived, sent, sendRefused, stranger: Counter
  init(_ metrics: MediaMetrics) {
    (trunkReceived, appReceived) = (metrics.packets[.trunkReceived], metrics.packets[.appReceived])
    (sent, sendRefused, stranger) = (metrics.packets[.sent], metrics.packets[.sendRefused], metrics.packets[.stranger])
  }
}

/// The state that a worker shares with the façade and the DTLS thread.
final class MediaWorkerShared: Sendable {
  let index: Int
  let mailbox: Mailbox<MediaWork>
  let handshakes: Mailbox<HandshakeWork>
  let metrics: MediaMetrics
  let cpu: Gauge
  /// Sessions reserved on this thread, counted by the façade and the worker.
  let sessions = Gauge()
  let wallClockOffset: Duration
  let opusComplexity: Int
  let load = ThreadLoad()
  /// As before the first call.
  let governor: LoadGovernor
  let eventHandler: @Sendable (MediaEvent) -> Void
  /// Made before the thread, so that a process without descriptors fails at its start. Closed in deinit.
  let epoll: Int32
  let timer: Int32

  init(
    index: Int, mailbox: Mailbox<MediaWork>, handshakes: Mailbox<HandshakeWork>, metrics: MediaMetrics,
    wallClockOffset: Duration, opusComplexity: Int, governor: LoadGovernor, eventHandler: @escaping @Sendable (MediaEvent) -> Void
  ) throws(SystemError) {
    (self.index, self.mailbox, self.handshakes) = (index, mailbox, handshakes)
    (self.metrics, self.wallClockOffset, self.opusComplexity) = (metrics, wallClockOffset, opusComplexity)
    (self.governor, self.eventHandler) = (governor, eventHandler)
    load.set(governor.initial, load: 0)
    cpu = metrics.threadCPU[index].nanoseconds
    epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
    timer = timerfd_create(CLOCK_MONOTONIC, Int32(TFD_NONBLOCK) | Int32(TFD_CLOEXEC))
    // From here on deinit closes the opened descriptors, even when this throws.
    guard epoll >= 0, timer >= 0 else { throw SystemError("make an epoll instance and a timer for media") }
  }

  deinit {
    if epoll >= 0 { close(epoll) }
    if timer >= 0 { close(timer) }
  }
}
