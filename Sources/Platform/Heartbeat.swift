import CTrunklineLinux
import Synchronization
import TrunklineBytes

/// Shows whether one thread is in a step of its loop, and in which.
///
///     let heartbeat = Heartbeat()            // of the calling thread, under its name
///     defer { heartbeat.end() }
///     while running {
///       heartbeat.waits()
///       epoll_wait(…)
///       heartbeat.woke()
///       …
///     }
///
/// A waiting thread is healthy for as long as it waits; one that stays in the same step ages (`Heartbeats.look`). A stamp is a
/// relaxed load and store of memory that only this thread writes: no clock is read. An `EventLoop` stamps its own.
public final class Heartbeat: Sendable {
  /// The thread's name.
  public let name: String
  /// Odd in a step, even while the thread waits; never the same number twice.
  private let beat = Atomic<UInt64>(1)
  /// The beat that the watcher last read, and how many checks in a row found the same step. Written by the watcher only.
  private let seen = Atomic<UInt64>(0)
  private let looks = Atomic<Int>(0)
  private let table: Heartbeats

  /// Starts for the calling thread, in a step from now on.
  public convenience init() { self.init(name: Self.threadName(), in: .process) }

  public init(name: String, in table: Heartbeats) {
    (self.name, self.table) = (name, table)
    table.add(self)
  }

  /// The thread begins a step, or makes progress within a long one. HOT
  public func woke() { beat.store((beat.load(ordering: .relaxed) &+ 2) | 1, ordering: .relaxed) }

  /// The step ends. To be called right before the thread sleeps. HOT
  public func waits() { beat.store((beat.load(ordering: .relaxed) | 1) &+ 1, ordering: .relaxed) }

  /// Stops watching the thread.
  public func end() { table.remove(self) }

  /// For how many checks in a row the thread has been in the same step.
  fileprivate var age: Int { looks.load(ordering: .relaxed) }

  fileprivate func look() {
    let now = beat.load(ordering: .relaxed)
    let isSame = now & 1 == 1 && now == seen.load(ordering: .relaxed)
    seen.store(now, ordering: .relaxed)
    looks.store(isSame ? age + 1 : 0, ordering: .relaxed)
  }

  private static func threadName() -> String {
    var name = [CChar](repeating: 0, count: 16)
    clx_get_thread_name(&name)
    return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}

/// The heartbeats of all registered threads, at most `Limits.heartbeats`: a thread beyond that is not watched.
public final class Heartbeats: Sendable {
  /// The heartbeats of this process.
  public static let process = Heartbeats()
  private let table = Mutex<[Heartbeat]>([])

  public init() {}

  /// How long a thread has been in one step, in checks of the watcher.
  public struct Age: Hashable, Sendable {
    public let name: String
    public let looks: Int
    public init(name: String, looks: Int) { (self.name, self.looks) = (name, looks) }
  }

  /// Checks every thread. For one watcher, which calls it at regular intervals of its own: time beyond them (the whole process
  /// was stopped, the machine suspended) ages no thread.
  public func look() { table.withLock { for heartbeat in $0 { heartbeat.look() } } }

  /// As of the last check, in the order in which the threads started.
  public var ages: [Age] { table.withLock { $0.map { Age(name: $0.name, looks: $0.age) } } }

  fileprivate func add(_ heartbeat: Heartbeat) {
    table.withLock { table in
      guard table.count < Limits.heartbeats else { return }
      table.append(heartbeat)
    }
  }

  fileprivate func remove(_ heartbeat: Heartbeat) { table.withLock { $0.removeAll { $0 === heartbeat } } }
}
