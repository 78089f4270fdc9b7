import Glibc
import Logging
import Synchronization
import TrunklineBytes

/// Decides when a process ends because its threads hang, or because it does not end when it should: docs/design/health.md.
///
/// Time is counted in wake-ups of the watcher, one each `interval`: it does not pass while the whole process is stopped.
struct HangDetector {
  /// Why the process ends now.
  enum Ending: Equatable {
    case hangs(String, seconds: Int)
    /// The time given by `end(within:)` passed; the threads that are in a long step.
    case overdue([String])
    /// A signal to end was not handled.
    case signalIgnored
  }

  static let interval = Duration.milliseconds(100)
  static func wakeUps(_ time: Duration) -> Int { Int(max(.zero, time).nanoseconds / interval.nanoseconds) }

  /// Whether no call can live without the thread of this name.
  let isVital: @Sendable (String) -> Bool
  private var left: Int?
  private var signalTimeout = Self.wakeUps(Limits.signalTimeout)
  private var waited = 0

  init(isVital: @escaping @Sendable (String) -> Bool) { self.isVital = isVital }

  /// Makes the process end within `time` from now, or within the rest of an earlier call's time.
  mutating func end(within time: Duration) { left = min(left ?? .max, Self.wakeUps(time)) }

  /// Sets how long a signal to end may wait for the thread that handles signals.
  mutating func setSignalTimeout(_ time: Duration) { signalTimeout = Self.wakeUps(time) }

  /// One wake-up. `isAsked`: a signal to end is pending.
  mutating func wakeUp(_ ages: [Heartbeats.Age], isAsked: Bool) -> Ending? {
    if let hung = ages.first(where: { isVital($0.name) && $0.looks > Self.wakeUps(Limits.deadAfter) }) {
      return .hangs(hung.name, seconds: hung.looks / Self.wakeUps(.seconds(1)))
    }
    if let left {
      if left == 0 { return .overdue(ages.filter { $0.looks > Self.wakeUps(Limits.longStep) }.map(\.name)) }
      self.left = left - 1
    }
    waited = isAsked ? waited + 1 : 0
    return waited > signalTimeout ? .signalIgnored : nil
  }

  static func hung(_ ages: [Heartbeats.Age]) -> [Heartbeats.Age] { ages.filter { $0.looks > wakeUps(Limits.unwellAfter) } }
}

/// The thread `health`: checks the heartbeats of all others, and ends a process that hangs.
///
///     let watch = try ThreadWatch(logger: logger) { $0 == "control" }
///     let pages = HealthHandlers(…) { watch.hung }       // reported by /healthz
///     watch.end(within: .seconds(12))                 // whatever hangs
///     watch.stop()
///
/// It never waits: neither for a lock that is held during a system call, nor for the log, nor for a disk.
public final class ThreadWatch: Sendable {
  public struct Hung: Hashable, Sendable {
    public let thread: String
    public let age: Duration
    public init(thread: String, age: Duration) { (self.thread, self.age) = (thread, age) }
  }

  private let heartbeats: Heartbeats
  private let detector: Mutex<HangDetector>
  private let wake: EventDescriptor
  private let stopping = Atomic<Bool>(false)
  private let thread: Mutex<NamedThread?>

  /// Starts the thread. Signals to end must be blocked in every thread by now (`ProcessSignals.blockAsynchronous`). `isVital`:
  /// whether the process ends if a thread of this name hangs. `supervisor` is notified that the process is alive, as often as
  /// it requires.
  public convenience init(
    logger: Logger, supervisor: Supervisor = Supervisor(), isVital: @escaping @Sendable (String) -> Bool
  ) throws(SystemError) {
    try self.init(
      heartbeats: .process, interval: HangDetector.interval, logger: logger, supervisor: supervisor, isVital: isVital)
  }

  /// `interval`: shortened in tests; each still counts as 100 ms.
  init(
    heartbeats: Heartbeats, interval: Duration, logger: Logger, supervisor: Supervisor = Supervisor(),
    isVital: @escaping @Sendable (String) -> Bool
  ) throws(SystemError) {
    self.heartbeats = heartbeats
    detector = Mutex(HangDetector(isVital: isVital))
    wake = try EventDescriptor()
    thread = Mutex(nil)
    let running = try NamedThread.start(name: "health", logger: logger) { [self] in
      run(every: interval, logger: logger, supervisor: supervisor)
    }
    thread.withLock { $0 = running }
  }

  /// Threads that have been in one step for more than 2 s. Any thread.
  public var hung: [Hung] { HangDetector.hung(heartbeats.ages).map { Hung(thread: $0.name, age: Self.age($0)) } }

  /// Makes the process end within `time`, at the latest, with status 1 and a line that names the threads in a long step. Any
  /// thread.
  public func end(within time: Duration) { detector.withLock { $0.end(within: time) } }

  /// How long SIGTERM or SIGINT may be pending before the process ends by itself: 2 s until this is called. Any thread.
  public func allowSignalsToWait(_ time: Duration) { detector.withLock { $0.setSignalTimeout(time) } }

  public func stop() {
    stopping.store(true, ordering: .releasing)
    wake.signal()
    thread.withLock { $0 }?.join()
  }

  public var metrics: [MetricFamily] {
    [
      MetricFamily(
        name: "trunkline_thread_heartbeat_age_seconds", help: "How long a thread has been in one step; 0 while it waits.",
        kind: .gauge, labelNames: ["thread"]
      ) { [heartbeats] in
        var oldest: [String: Int] = [:]
        for age in heartbeats.ages { oldest[age.name] = max(age.looks, oldest[age.name] ?? 0) }
        return oldest.sorted { $0.key < $1.key }.map { name, looks in
          MetricSample([name], .number(Double(looks) / Double(HangDetector.wakeUps(.seconds(1)))))
        }
      }
    ]
  }

  // MARK: The thread

  private func run(every interval: Duration, logger: Logger, supervisor: Supervisor) {
    let milliseconds = Int32(interval.nanoseconds / 1_000_000)
    let watchdog = supervisor.watchdogInterval.map { max(1, HangDetector.wakeUps($0) / 2) }
    var looks = 0
    var reported: Set<String> = []
    while !stopping.load(ordering: .acquiring) {
      _ = wake.wait(milliseconds: milliseconds)
      heartbeats.look()
      let ages = heartbeats.ages
      let isAsked = ProcessSignals.isPending([SIGTERM, SIGINT])
      if let ending = detector.withLock({ $0.wakeUp(ages, isAsked: isAsked) }) { Self.end(ending) }
      if let watchdog, looks % watchdog == 0 { supervisor.write("WATCHDOG=1") }
      looks += 1
      report(HangDetector.hung(ages), &reported, logger)
    }
  }

  private func report(_ hung: [Heartbeats.Age], _ reported: inout Set<String>, _ logger: Logger) {
    let names = Set(hung.map(\.name))
    guard names != reported else { return }
    for name in names.subtracting(reported).sorted() { logger.error("a thread hangs", metadata: ["thread": "\(name)"]) }
    for name in reported.subtracting(names).sorted() { logger.notice("a thread responds again", metadata: ["thread": "\(name)"]) }
    reported = names
  }

  private static func age(_ age: Heartbeats.Age) -> Duration { HangDetector.interval * age.looks }

  private static func end(_ ending: HangDetector.Ending) -> Never {
    EmergencyLog.write(ending.text)
    guard case .hangs = ending else { _exit(1) }
    // The line is printed, so restore the signal's default action, which dumps a core if that is enabled.
    _ = signal(SIGABRT, SIG_DFL)
    abort()
  }
}

extension HangDetector.Ending {
  var text: String {
    switch self {
    case .hangs(let thread, let seconds): "thread \(thread) has hung for \(seconds) s: the process ends, to be started again"
    case .overdue(let threads):
      "the time to shut down is over: the process ends now"
        + (threads.isEmpty ? "" : "; threads still running or hung: \(threads.joined(separator: ", "))")
    case .signalIgnored: "SIGTERM was not handled in time because the main thread hangs: the process ends now"
    }
  }
}

/// Writes a line on standard error from a process that is about to end, whatever state its threads and its log are in.
enum EmergencyLog {
  static func write(_ text: String) {
    var line = Array("trunkline: \(text)".utf8.prefix(Limits.emergencyLogBytes - 1))
    line.append(UInt8(ascii: "\n"))
    // A pipe without a reader must not delay the process.
    var poll = pollfd(fd: 2, events: Int16(POLLOUT), revents: 0)
    guard Glibc.poll(&poll, 1, 0) > 0, poll.revents & Int16(POLLOUT) != 0 else { return }
    _ = Glibc.write(2, line, line.count)
  }
}
