import Bytes
import CLinux
import Glibc
import Synchronization

/// What a descriptor is ready for, or what a registration wants to hear of.
public struct IOEvents: OptionSet, Hashable, Sendable {
  public let rawValue: UInt32
  public init(rawValue: UInt32) { self.rawValue = rawValue }
  public static let readable = IOEvents(rawValue: EPOLLIN.rawValue)
  public static let writable = IOEvents(rawValue: EPOLLOUT.rawValue)
  /// Reported always, asked for or not: an error is pending on the descriptor, or both directions are closed.
  public static let failed = IOEvents(rawValue: EPOLLERR.rawValue | EPOLLHUP.rawValue)

  /// True if an error or a hang-up is among the events.
  public var hasFailure: Bool { !isDisjoint(with: .failed) }
}

/// An epoll loop: descriptors, timers and posted closures, all handled by the one thread that calls `run`.
///
/// Before `run`, one thread sets it up; from then on only `post` and `stop` may be called by others (checked). One clock read a
/// turn: handlers take `now`. The order within a turn is descriptors, posted closures, timers, then flushes. While it runs its thread has
/// a `Heartbeat`.
///
///     let loop = try EventLoop()
///     try loop.register(socket.fd, .readable) { _ in … }
///     let retransmit = loop.addTimer("retransmit") { … }
///     loop.setTimer(retransmit, at: loop.now + .milliseconds(500))
///     let thread = try NamedThread.start(name: "control") { loop.run() }
///     loop.stop(); thread.join()
public final class EventLoop: @unchecked Sendable {
  public struct TimerID: Hashable, Sendable { fileprivate let index: Int }
  private struct Registration {
    var generation: UInt32
    var handler: (IOEvents) -> Void
  }
  private struct Timer {
    let name: String
    var deadline = Instant.distantFuture
    /// What the owner asked for: earlier than `deadline` while the timer is stuck.
    var asked = Instant.distantFuture
    /// The deadline that the timer last fired for, and when it fired.
    var fired: (deadline: Instant, at: Instant)?
    var isReported = false
    var handler: () -> Void

    /// The handler has run for this deadline, which was past then, and its owner asks for it again.
    func isStuck(_ deadline: Instant) -> Bool {
      guard let fired else { return false }
      return deadline <= fired.deadline && deadline < fired.at
    }
  }

  /// The instant of this turn.
  public private(set) var now = MonotonicClock.now()
  /// Closures refused because too many were waiting, and the most that ever waited.
  public var posted: MailboxReading { mailbox.reading(name) }
  /// How long turns took from the wake-up to the next sleep, in seconds.
  public let steps = Histogram(bounds: Histogram.tickBounds)

  /// Firings of timers whose owner asked again for a deadline that had fired already, by loop and timer: each one is a fault of ours.
  /// One table for the process.
  public static let stuckTimers = CounterTable(labelNames: ["loop", "timer"])
  private static let stuckTimerReport = Mutex<(@Sendable (_ loop: String, _ timer: String) -> Void)?>(nil)
  /// `report` is called once for each timer that is stuck, on its loop's thread. Any thread.
  public static func reportStuckTimers(_ report: @escaping @Sendable (_ loop: String, _ timer: String) -> Void) {
    stuckTimerReport.withLock { $0 = report }
  }

  private let name: String
  private let longest: LongestSteps.Steps
  private let epoll: Int32
  private let timer: Int32
  private let mailbox: Mailbox<@Sendable () -> Void>
  private let stopping = Atomic<Bool>(false)
  private let owner = Mutex<pthread_t?>(nil)
  private var registrations: [Int32: Registration] = [:]
  private var generation: UInt32 = 0
  private var timers: [Timer] = []
  private var flushes: [() -> Void] = []
  private var armed = Instant.distantFuture
  private var batch: [@Sendable () -> Void] = []

  public init(name: String = "loop") throws(SystemError) {
    self.name = name
    longest = LongestSteps.process.steps(name)
    mailbox = try Mailbox(capacity: Limits.postedClosures)
    epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
    guard epoll >= 0 else { throw SystemError("make an epoll instance") }
    timer = timerfd_create(CLOCK_MONOTONIC, Int32(TFD_NONBLOCK) | Int32(TFD_CLOEXEC))
    guard timer >= 0 else {
      let error = SystemError("make a timerfd")
      close(epoll)
      throw error
    }
    try register(timer, .readable) { [unowned self, timer] _ in
      var expirations: UInt64 = 0
      _ = read(timer, &expirations, 8)
      // It has expired: the same deadline must be armed again, or the loop would sleep on it.
      armed = .distantFuture
    }
    try register(mailbox.event.fd, .readable) { [unowned self] _ in runPosted() }
  }

  deinit {
    close(timer)
    close(epoll)
  }

  // MARK: any thread

  /// Runs `closure` on the loop's thread in the order of the posts. False when too many wait: it will not run.
  @discardableResult public func post(_ closure: @escaping @Sendable () -> Void) -> Bool { mailbox.post(closure) }

  /// Makes `run` return after the present turn; closures posted before that still run.
  public func stop() {
    stopping.store(true, ordering: .releasing)
    mailbox.event.signal()
  }

  // MARK: the loop's thread, or the one that sets it up

  /// Calls `handler` while one of `events` holds (level-triggered). The descriptor stays the caller's: `unregister`, then close.
  public func register(_ fd: Int32, _ events: IOEvents, handler: @escaping (IOEvents) -> Void) throws(SystemError) {
    preconditionOnThread()
    precondition(registrations[fd] == nil, "descriptor \(fd) is registered already")
    generation &+= 1
    try control(EPOLL_CTL_ADD, fd, events, generation)
    registrations[fd] = Registration(generation: generation, handler: handler)
  }

  /// Changes what a registered descriptor is watched for.
  public func modify(_ fd: Int32, _ events: IOEvents) throws(SystemError) {
    preconditionOnThread()
    guard let registration = registrations[fd] else { return }
    try control(EPOLL_CTL_MOD, fd, events, registration.generation)
  }

  /// After this no event of the descriptor is delivered, also none of the present turn. Unknown descriptors are ignored.
  public func unregister(_ fd: Int32) {
    preconditionOnThread()
    guard registrations.removeValue(forKey: fd) != nil else { return }
    _ = epoll_ctl(epoll, EPOLL_CTL_DEL, fd, nil)
  }

  /// A timer, not yet set. Timers live as long as the loop: one per machine, not one per event. `name` is for the log and a metric.
  public func addTimer(_ name: String, _ handler: @escaping () -> Void) -> TimerID {
    preconditionOnThread()
    timers.append(Timer(name: name, handler: handler))
    return TimerID(index: timers.count - 1)
  }

  /// Sets or moves a timer, or with nil puts it off. It fires once, in the first turn at or after `deadline`.
  ///
  /// A deadline that the timer has fired for, and that was past then, makes no progress: its owner is at fault. The timer then fires at
  /// most every 10 ms (`Limits.stuckTimerPause`), so that the loop neither sleeps on the deadline nor spins; `stuckTimers` counts it.
  public func setTimer(_ id: TimerID, at deadline: Instant?) {
    preconditionOnThread()
    let asked = deadline ?? .distantFuture
    timers[id.index].asked = asked
    timers[id.index].deadline = asked
    if timers[id.index].isStuck(asked), let fired = timers[id.index].fired {
      timers[id.index].deadline = fired.at + Limits.stuckTimerPause
    }
  }

  /// Called at the end of every turn: for sending what the turn's handlers gathered.
  public func addFlush(_ handler: @escaping () -> Void) {
    preconditionOnThread()
    flushes.append(handler)
  }

  /// Handles events until `stop`. May be called again afterwards.
  public func run() {
    owner.withLock { owner in
      precondition(owner == nil, "a loop runs on one thread")
      owner = pthread_self()
    }
    let heartbeat = Heartbeat()
    defer { heartbeat.end() }
    now = MonotonicClock.now()
    endStep()
    while !stopping.exchange(false, ordering: .acquiringAndReleasing) { step(heartbeat) }
    runPosted(limit: .max)
    endStep()
    owner.withLock { $0 = nil }
  }

  // MARK: a turn

  private func step(_ heartbeat: Heartbeat) {
    armTimer()
    heartbeat.waits()
    withUnsafeTemporaryAllocation(of: epoll_event.self, capacity: Limits.eventsPerStep) { events in
      let count = epoll_wait(epoll, events.baseAddress, Int32(events.count), -1)
      heartbeat.woke()
      now = MonotonicClock.now()
      guard count > 0 else { return }
      for event in events.prefix(Int(count)) {
        let (fd, generation) = (Int32(truncatingIfNeeded: event.data.u64), UInt32(truncatingIfNeeded: event.data.u64 >> 32))
        guard let registration = registrations[fd], registration.generation == generation else { continue }
        registration.handler(IOEvents(rawValue: event.events))
      }
    }
    fireTimers()
    endStep()
    let end = MonotonicClock.now()
    steps.record(end - now)
    longest.note(end - now, at: end)
  }

  private func runPosted(limit: Int = Limits.postedPerStep) {
    batch.removeAll(keepingCapacity: true)
    mailbox.drain(into: &batch, limit: limit)
    let closures = batch
    batch.removeAll(keepingCapacity: true)
    for closure in closures { closure() }
  }

  private func fireTimers() {
    var index = 0
    while index < timers.count {
      if timers[index].deadline <= now {
        if timers[index].isStuck(timers[index].asked) { reportStuck(index) }
        timers[index].fired = (timers[index].asked, now)
        timers[index].deadline = .distantFuture
        let handler = timers[index].handler
        handler()
      }
      index += 1
    }
  }

  private func reportStuck(_ index: Int) {
    Self.stuckTimers.counter(name, timers[index].name).increment()
    guard !timers[index].isReported else { return }
    timers[index].isReported = true
    let report = Self.stuckTimerReport.withLock { $0 }
    report?(name, timers[index].name)
  }

  private func endStep() { for flush in flushes { flush() } }

  private func armTimer() {
    let next = timers.reduce(Instant.distantFuture) { min($0, $1.deadline) }
    guard next != armed else { return }
    armed = next
    var setting = itimerspec()
    if next != .distantFuture {
      let nanoseconds = max(1, next.nanoseconds)  // all zero would disarm
      setting.it_value = timespec(tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
    }
    timerfd_settime(timer, Int32(TFD_TIMER_ABSTIME), &setting, nil)
  }

  private func control(_ operation: Int32, _ fd: Int32, _ events: IOEvents, _ generation: UInt32) throws(SystemError) {
    var event = epoll_event()
    event.events = events.rawValue
    event.data.u64 = UInt64(UInt32(bitPattern: fd)) | UInt64(generation) << 32
    guard epoll_ctl(epoll, operation, fd, &event) == 0 else { throw SystemError("watch descriptor \(fd)") }
  }

  /// Ends the process unless the caller is the loop's thread, or the loop does not run.
  public func preconditionOnThread() {
    owner.withLock { owner in
      precondition(owner.map { pthread_equal($0, pthread_self()) != 0 } ?? true, "a running loop belongs to its thread")
    }
  }
}
