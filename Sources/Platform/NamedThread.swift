import CTrunklineLinux
import Glibc
import Logging
import Synchronization
import TrunklineBytes

/// A POSIX thread with a name, counted while it lives.
///
///     let thread = try NamedThread.start(name: "media-0", nice: -5) { loop.run() }
///     …
///     thread.join()
///
/// The body runs nonisolated: write it in an ordinary function, never in `main.swift` or a `@main` type, whose closures
/// are bound to the main actor and trap on another thread. Asynchronous signals are blocked in every such thread, so that
/// they reach the one that waits for them (`ProcessSignals`).
public final class NamedThread: Sendable {
  /// Threads started here whose body has not returned, in the whole process. Zero after a clean shutdown.
  public static let live = Gauge()

  public let name: String
  private let handle: Mutex<pthread_t?>

  private init(name: String, handle: pthread_t) {
    self.name = name
    self.handle = Mutex(handle)
  }

  /// How the kernel schedules a thread relative to others.
  public enum Scheduling: Sendable {
    case usual
    /// Runs as soon as it wakes, before every thread of the usual kind, also those of other sessions, over which `nice` has
    /// no effect (sched(7), autogroup). Only for threads that sleep often. Where it is not permitted, `nice` remains.
    case realtime
  }

  /// Starts `body` on a new thread. `scheduling`, `nice` and `cpu` are tried in the thread and a refusal is logged, not thrown.
  public static func start(
    name: String, scheduling: Scheduling = .usual, nice: Int32? = nil, cpu: Int32? = nil, logger: Logger? = nil,
    body: @escaping @Sendable () -> Void
  ) throws(SystemError) -> NamedThread {
    let start = Start(
      name: String(name.prefix(Limits.threadNameBytes)), scheduling: scheduling, nice: nice, cpu: cpu, logger: logger, body: body)
    let box = Unmanaged.passRetained(start)
    var thread = pthread_t()
    live.add(1)
    let result = pthread_create(
      &thread, nil,
      { argument in
        guard let argument else { return nil }
        Unmanaged<Start>.fromOpaque(argument).takeRetainedValue().run()
        NamedThread.live.add(-1)
        return nil
      }, box.toOpaque())
    guard result == 0 else {
      live.add(-1)
      box.release()
      throw SystemError("start thread \(name)", code: result)
    }
    return NamedThread(name: name, handle: thread)
  }

  /// Waits until the body has returned. A second call returns at once. Never from the thread itself.
  public func join() {
    let thread = handle.withLock { handle in
      defer { handle = nil }
      return handle
    }
    guard let thread else { return }
    precondition(pthread_equal(thread, pthread_self()) == 0, "a thread cannot wait for itself")
    pthread_join(thread, nil)
  }

  deinit {
    if let thread = handle.withLock({ $0 }) { pthread_detach(thread) }
  }
}

private final class Start: Sendable {
  let name: String
  let scheduling: NamedThread.Scheduling
  let nice: Int32?
  let cpu: Int32?
  let logger: Logger?
  let body: @Sendable () -> Void

  init(
    name: String, scheduling: NamedThread.Scheduling, nice: Int32?, cpu: Int32?, logger: Logger?,
    body: @escaping @Sendable () -> Void
  ) {
    (self.name, self.scheduling, self.nice, self.cpu, self.logger) = (name, scheduling, nice, cpu, logger)
    self.body = body
  }

  func run() {
    _ = clx_set_thread_name(name)
    ProcessSignals.blockAsynchronous()
    schedule()
    if let nice, setpriority(__priority_which_t(PRIO_PROCESS.rawValue), id_t(clx_thread_id()), nice) != 0 {
      logger?.notice("thread priority refused", metadata: ["thread": "\(name)", "nice": "\(nice)", "errno": "\(errno)"])
    }
    if let cpu, clx_set_affinity(cpu) != 0 {
      logger?.notice("thread affinity refused", metadata: ["thread": "\(name)", "cpu": "\(cpu)"])
    }
    body()
  }

  private func schedule() {
    let result: Int32 =
      switch scheduling {
      case .usual: 0
      case .realtime: clx_set_realtime(Limits.realtimePriority)
      }
    guard result != 0 else { return }
    let code = errno
    logger?.notice(
      "thread scheduling refused", metadata: ["thread": "\(name)", "wanted": "\(scheduling)", "errno": "\(code)"])
  }
}
