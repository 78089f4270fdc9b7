import CTrunklineLinux
import Glibc
import Synchronization
import TrunklineBytes

/// Events that a descriptor is ready for, or that a registration requests.
public struct IOEvents: OptionSet, Hashable, Sendable {
  public let rawValue: UInt32
  public init(rawValue: UInt32) { self.rawValue = rawValue }
  public static let readable = IOEvents(rawValue: EPOLLIN.rawValue)
  public static let writable = IOEvents(rawValue: EPOLLOUT.rawValue)
  /// Always reported, requested or not: an error is pending on the descriptor, or both directions are closed.
  public static let failed = IOEvents(rawValue: EPOLLERR.rawValue | EPOLLHUP.rawValue)

  /// True if an error or a hang-up is among the events.
  public var hasFailure: Bool { !isDisjoint(with: .failed) }
}

/// An epoll loop: descriptors, timers and posted closures, all handled by the one thread that calls `run`.
///
/// Before `run`, one thread sets it up; from then on other threads may only call `post` and `stop` (checked). One clock read per
/// step: handlers use `now`. The order within a step is descriptors, posted closures, timers, then flushes. While it runs its
/// thread has a `Heartbeat`.
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
    /// The deadline that the owner requested: earlier than `deadline` while the timer is stuck.
    var asked = Instant.distantFuture
    /// The deadline that the timer last fired for, and when it fired.
    var fired: (deadline: Instant, at: Instant)?
    var isReported = false
    var handler: () -> Void

    /// The handler has run for this deadline, which was past then, and its owner requests it again.
    func isStuck(_ deadline: Instant) -> Bool {
      guard let fired else { return false }
      return deadline <= fired.deadline && deadline < fired.at
    }
  }

  /// The instant of this step.
  public private(set) var now = MonotonicClock.now()
  /// Closures refused because too many were queued, and the largest number ever queued.
  public var posted: MailboxReading { mailbox.reading(name) }
  /// Duration of steps from the wake-up to the next sleep, in seconds.
  public let steps = Histogram(bounds: Histogram.tickBounds)

  /// Firings of timers whose owner requested a deadline again that had already fired, by loop and timer: each one is an internal
  /// fault. One table for the process.
  public static let stuckTimers = CounterTable(labelNames: ["loop", "timer"])
  private static let stuckTimerReport = Mutex<(@Sendable (_ loop: String, _ timer: String) -> Void)?>(nil)
  /// Sets the reporter, which is called once for each stuck timer, on its loop's thread. Any thread.
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
      // It expired: the same deadline must be armed again, or the loop would sleep past it.
      armed = .distantFuture
    }
    try register(mailbox.event.fd, .readable) { [unowned self] _ in runPosted() }
  }

  deinit {
    close(timer)
    close(epoll)
  }

  // MARK: Any thread

  /// Runs `closure` on the loop's thread in the order of the posts. False if too many are queued: it will not run.
  @discardableResult public func post(_ closure: @escaping @Sendable () -> Void) -> Bool { mailbox.post(closure) }

  /// Makes `run` return after the present step; closures posted before that still run.
  public func stop() {
    stopping.store(true, ordering: .releasing)
    mailbox.event.signal()
  }

  // MARK: The loop's thread, or the one that sets it up

  /// Calls `handler` while one of `events` holds (level-triggered). The caller keeps the descriptor: call `unregister`, then
  /// close it.
  public func register(_ fd: Int32, _ events: IOEvents, handler: @escaping (IOEvents) -> Void) throws(SystemError) {
    preconditionOnThread()
    precondition(registrations[fd] == nil, "descriptor \(fd) is registered already")
    generation &+= 1
    try control(EPOLL_CTL_ADD, on: fd, for: events, generation: generation)
    registrations[fd] = Registration(generation: generation, handler: handler)
  }

  /// Changes what a registered descriptor is watched for.
  public func modify(_ fd: Int32, _ events: IOEvents) throws(SystemError) {
    preconditionOnThread()
    guard let registration = registrations[fd] else { return }
    try control(EPOLL_CTL_MOD, on: fd, for: events, generation: registration.generation)
  }

  /// Stops the descriptor's events, including those of the present step. Unknown descriptors are ignored.
  public func unregister(_ fd: Int32) {
    preconditionOnThread()
    guard registrations.removeValue(forKey: fd) != nil else { return }
    _ = epoll_ctl(epoll, EPOLL_CTL_DEL, fd, nil)
  }

  /// Adds an unset timer. Timers live as long as the loop: one per machine, not one per event. `name` is for the log and a
  /// metric.
  public func addTimer(_ name: String, _ handler: @escaping () -> Void) -> TimerID {
    preconditionOnThread()
    timers.append(Timer(name: name, handler: handler))
    return TimerID(index: timers.count - 1)
  }

  /// Sets or moves a timer, or with nil cancels it. It fires once, in the first step at or after `deadline`.
  ///
  /// Requesting a past deadline for which the timer has fired makes no progress: a fault of its owner. The timer then fires at
  /// most every 10 ms (`Limits.stuckTimerPause`), so that the loop neither sleeps past the deadline nor spins; `stuckTimers`
  /// counts it.
  public func setTimer(_ id: TimerID, at deadline: Instant?) {
    preconditionOnThread()
    let asked = deadline ?? .distantFuture
    timers[id.index].asked = asked
    timers[id.index].deadline = asked
    if timers[id.index].isStuck(asked), let fired = timers[id.index].fired {
      timers[id.index].deadline = fired.at + Limits.stuckTimerPause
    }
  }

  /// Adds a handler that is called at the end of every step: it sends what the step's handlers queued.
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

  // MARK: A step

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

  private func control(_ operation: Int32, on fd: Int32, for events: IOEvents, generation: UInt32) throws(SystemError) {
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
