import Bytes
import CLinux
import Glibc
import Logging
import Synchronization

/// The thread `network`: hears from the kernel (rtnetlink) that links, addresses or routes changed, and looks at them again.
///
///     let watch = try NetworkWatch()
///     try watch.start(logger: logger) { machine in … }     // on the thread: once at the start, then for each change
///     watch.lookAgain()                                     // any thread: what follows from the look may be another
///     watch.stop()
///
/// A message says no more than "look again": nothing in it is read, so that one that was lost (`ENOBUFS`) or forged costs a look. The first look
/// is at once, the next ones follow at an interval of one second at the least, however fast an interface flaps, and without any message after a
/// minute. Where the kernel gives no such socket, the looks are two seconds apart.
public final class NetworkWatch: Sendable {
  /// Nil: the kernel gives none.
  private let socket: Int32?
  private let wake: EventDescriptor
  private let look: @Sendable () throws(SystemError) -> MachineAddresses
  private let state = Mutex((isOver: false, isAsked: false))
  private let thread = Mutex<NamedThread?>(nil)
  private let looks = Counter()
  private let overruns = Counter()

  /// Hears of what changes from here on. `look`: the seam of the tests.
  public init(look: @escaping @Sendable () throws(SystemError) -> MachineAddresses = MachineAddresses.look) throws(SystemError) {
    self.look = look
    wake = try EventDescriptor()
    let fd = clx_watch_network()
    socket = fd >= 0 ? fd : nil
  }

  deinit { if let socket { close(socket) } }

  /// `looked` is called on the thread: at its start, after each change that was heard of, when a look without one found something else, and at the
  /// instant that it returned the last time.
  public func start(logger: Logger, looked: @escaping @Sendable (MachineAddresses) -> Instant?) throws(SystemError) {
    if socket == nil {
      logger.warning("the kernel does not report changes of the network: addresses are checked every two seconds")
    }
    let running = try NamedThread.start(name: "network", logger: logger) { [self] in run(logger, looked) }
    thread.withLock { $0 = running }
  }

  /// `looked` is called again soon, also if nothing has changed. Any thread.
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
      .counter("trunkline_network_looks_total", "Checks of the machine's addresses.", looks),
      .counter(
        "trunkline_network_overruns_total", "Times that the kernel's queue of changes overflowed.", overruns),
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
      // before the look: what changes while it is taken is heard again
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

  /// Sleeps until the next check is due or a message arrives. While a check is due soon it does not listen: a flood of messages wakes no thread.
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

/// When to look: at once after a change, at an interval of `pause` at the least while they continue, and after `idle` without any.
struct LookSchedule {
  let pause: Duration
  let idle: Duration
  /// A change was heard of since the last look.
  private(set) var isChanged = true
  /// Who looks at what was found asks for it; counts once.
  var again: Instant?
  private var last: Instant?

  init(pause: Duration = Limits.networkPause, idle: Duration = Limits.networkLook) { (self.pause, self.idle) = (pause, idle) }

  /// When the next look is.
  var due: Instant {
    guard let last else { return .zero }
    let next = last + (isChanged ? pause : idle)
    return again.map { max(min($0, next), last + pause) } ?? next
  }

  mutating func changed() { isChanged = true }
  func isDue(at now: Instant) -> Bool { now >= due }

  /// - Returns: whether what is found has to be handed on, even if it is what was found before.
  mutating func looked(at now: Instant) -> Bool {
    defer { (last, isChanged, again) = (now, false, nil) }
    return isChanged || again.map { $0 <= now } ?? false
  }
}

/// What the log says of a state that may flap: each change once, a few of them at once, and then one line an interval, of the state by then.
///
///     news.line(of: state, at: now)    // the state, if it is to be said now
///     news.due                         // when to ask again, if one waits
public struct StateNews<State: Equatable & Sendable>: Sendable {
  private let most: Int
  private let interval: Duration
  private var said: State
  private var lines: Double
  private var since = Instant.zero
  /// When a line that waits may be said; nil if none waits.
  public private(set) var due: Instant?

  /// - Parameter said: what needs no line.
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
