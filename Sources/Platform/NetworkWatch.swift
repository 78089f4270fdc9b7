import CTrunklineLinux
import Glibc
import Logging
import Synchronization
import TrunklineBytes

/// The thread `network`: is notified by the kernel (rtnetlink) that links, addresses or routes changed, and checks the addresses.
///
///     let watch = try NetworkWatch()
///     try watch.start(logger: logger) { machine in … }     // on the thread: once at the start, then for each change
///     watch.lookAgain()                                     // any thread: requests another check
///     watch.stop()
///
/// A message only triggers a check: its content is not read, so that a lost (`ENOBUFS`) or forged one costs a check at most. The
/// first check is at once, the next ones at least one second apart, however fast an interface flaps, and after a minute without
/// messages. If the kernel provides no such socket, checks are two seconds apart.
public final class NetworkWatch: Sendable {
  /// Nil: the kernel provides none.
  private let socket: Int32?
  private let wake: EventDescriptor
  private let look: @Sendable () throws(SystemError) -> MachineAddresses
  private let state = Mutex((isOver: false, isAsked: false))
  private let thread = Mutex<NamedThread?>(nil)
  private let looks = Counter()
  private let overruns = Counter()

  /// Receives notifications of changes from here on. `look`: replaced in tests.
  public init(look: @escaping @Sendable () throws(SystemError) -> MachineAddresses = MachineAddresses.look) throws(SystemError) {
    self.look = look
    wake = try EventDescriptor()
    let fd = clx_watch_network()
    socket = fd >= 0 ? fd : nil
  }

  deinit { if let socket { close(socket) } }

  /// `looked` is called on the thread: at its start, after each notified change, when another check found something else, and at
  /// the instant that it last returned.
  public func start(logger: Logger, looked: @escaping @Sendable (MachineAddresses) -> Instant?) throws(SystemError) {
    if socket == nil {
      logger.warning("the kernel does not report changes of the network: addresses are checked every two seconds")
    }
    let running = try NamedThread.start(name: "network", logger: logger) { [self] in run(logger, looked) }
    thread.withLock { $0 = running }
  }

  /// Makes `looked` be called again soon, even without a change. Any thread.
  public func lookAgain() {
    state.withLock { $0.isAsked = true }
    wake.signal()
  }

  public func stop() {
    state.withLock { $0.isOver = true }
    wake.signal()
    thread.withLock { $0 }?.join()
  }

  public var metrics: [MetricFamily] {
    [
      .counter("trunkline_network_looks_total", help: "Checks of the machine's addresses.", looks),
      .counter(
        "trunkline_network_overruns_total", help: "Times that the kernel's queue of changes overflowed.", overruns),
    ]
  }

  private func run(_ logger: Logger, _ looked: (MachineAddresses) -> Instant?) {
    let heartbeat = Heartbeat()
    defer { heartbeat.end() }
    var schedule = LookSchedule(idle: socket == nil ? Limits.networkLookUnnotified : Limits.networkLook)
    var last: Result<MachineAddresses, SystemError>?
    while true {
      let (isAsked, isOver) = state.withLock { state in
        defer { state.isAsked = false }
        return (state.isAsked, state.isOver)
      }
      if isOver { return }
      if isAsked { schedule.changed() }
      let now = MonotonicClock.now()
      guard schedule.isDue(at: now) else {
        heartbeat.waits()
        let isNotified = wait(schedule, since: now)
        heartbeat.woke()
        if isNotified { schedule.changed() }
        continue
      }
      // before the check: a change during it is notified again
      drain()
      let isCalled = schedule.looked(at: now)
      looks.increment()
      let found = Result(catching: look)
      switch found {
      case .success(let machine): if isCalled || found != last { schedule.again = looked(machine) }
      case .failure(let error):
        if found != last { logger.error("this machine's addresses cannot be read", metadata: ["error": "\(error)"]) }
        schedule.changed()
      }
      last = found
    }
  }

  /// Sleeps until the next check is due or a message arrives. While one is due soon the socket is not polled: a flood of messages
  /// wakes no thread.
  private func wait(_ schedule: LookSchedule, since now: Instant) -> Bool {
    var entries = [pollfd(fd: wake.fd, events: Int16(POLLIN), revents: 0)]
    if let socket, !schedule.isChanged { entries.append(pollfd(fd: socket, events: Int16(POLLIN), revents: 0)) }
    let milliseconds = max(0, (schedule.due - now).nanoseconds / 1_000_000) + 1
    _ = poll(&entries, nfds_t(entries.count), Int32(clamping: milliseconds))
    if entries[0].revents != 0 { wake.clear() }
    return entries.count > 1 && entries[1].revents != 0
  }

  private func drain() {
    guard let socket else { return }
    var byte: UInt8 = 0
    for _ in 0..<Limits.networkMessages {
      if recv(socket, &byte, 1, 0) >= 0 { continue }
      if errno == ENOBUFS { overruns.increment() } else if errno != EINTR { return }
    }
  }
}

/// Schedules checks: at once after a change, at least `pause` apart while changes continue, and `idle` after the last check
/// without any.
struct LookSchedule {
  let pause: Duration
  let idle: Duration
  /// A change was notified since the last check.
  private(set) var isChanged = true
  /// When the consumer of the last result requests the next one; used once.
  var again: Instant?
  private var last: Instant?

  init(pause: Duration = Limits.networkPause, idle: Duration = Limits.networkLook) { (self.pause, self.idle) = (pause, idle) }

  /// When the next check is due.
  var due: Instant {
    guard let last else { return .zero }
    let next = last + (isChanged ? pause : idle)
    return again.map { max(min($0, next), last + pause) } ?? next
  }

  mutating func changed() { isChanged = true }
  func isDue(at now: Instant) -> Bool { now >= due }

  /// - Returns: whether the result must be passed on, even if it equals the last one.
  mutating func looked(at now: Instant) -> Bool {
    defer { (last, isChanged, again) = (now, false, nil) }
    return isChanged || again.map { $0 <= now } ?? false
  }
}

/// Log lines for a state that may flap: each change once, a few of them at once, and then one line per interval, with the state
/// of that time.
///
///     news.line(of: state, at: now)    // the state, if it should be logged now
///     news.due                         // when to call again, if a line waits
public struct StateNews<State: Equatable & Sendable>: Sendable {
  private let most: Int
  private let interval: Duration
  private var said: State
  private var lines: Double
  private var since = Instant.zero
  /// When the waiting line may be logged; nil if none waits.
  public private(set) var due: Instant?

  /// - Parameter said: the state that needs no line.
  public init(said: State) { self.init(said: said, most: Limits.networkLines, interval: Limits.networkLineInterval) }

  init(said: State, most: Int, interval: Duration) {
    (self.said, self.most, self.interval) = (said, most, interval)
    lines = Double(most)
  }

  public mutating func line(of state: State, at now: Instant) -> State? {
    lines = min(Double(most), lines + Double((now - since).nanoseconds) / Double(interval.nanoseconds))
    since = now
    due = nil
    guard state != said else { return nil }
    guard lines >= 1 else {
      due = now + interval
      return nil
    }
    lines -= 1
    said = state
    return state
  }
}
