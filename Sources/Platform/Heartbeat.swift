import Bytes
import CLinux
import Synchronization

/// One thread's sign of life: that it is in a turn, and in which.
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
/// A thread that waits is well for as long as it waits; one that stays in the same turn grows old (`Heartbeats.look`). A stamp is a relaxed
/// load and store of memory that only this thread writes: no clock is read. An `EventLoop` has one by itself.
public final class Heartbeat: Sendable {
  /// The thread's name.
  public let name: String
  /// Odd in a turn, even while the thread waits; never the same number twice.
  private let beat = Atomic<UInt64>(1)
  /// What the watcher saw last, and how many of its looks found the same turn. Written by the watcher only.
  private let seen = Atomic<UInt64>(0)
  private let looks = Atomic<Int>(0)
  private let table: Heartbeats

  /// Of the calling thread, in a turn from now on.
  public convenience init() { self.init(name: Self.threadName(), in: .process) }

  public init(name: String, in table: Heartbeats) {
    (self.name, self.table) = (name, table)
    table.add(self)
  }

  /// The thread begins a turn, or gets on within a long one. HOT
  public func woke() { beat.store((beat.load(ordering: .relaxed) &+ 2) | 1, ordering: .relaxed) }

  /// The turn is over. To be called right before what the thread sleeps in. HOT
  public func waits() { beat.store((beat.load(ordering: .relaxed) | 1) &+ 1, ordering: .relaxed) }

  /// The thread is watched no longer.
  public func end() { table.remove(self) }

  /// For how many looks in a row the thread has been in the same turn.
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

/// The heartbeats of all threads that have one, at most `Limits.heartbeats`: a thread beyond that is not watched.
public final class Heartbeats: Sendable {
  /// Those of this process.
  public static let process = Heartbeats()
  private let table = Mutex<[Heartbeat]>([])

  public init() {}

  /// How long a thread has been in one turn, in looks of the one watcher.
  public struct Age: Hashable, Sendable {
    public let name: String
    public let looks: Int
    public init(name: String, looks: Int) { (self.name, self.looks) = (name, looks) }
  }

  /// One look at every thread. For one watcher, which calls it at even intervals of its own: what it sleeps beyond them (the whole
  /// process was stopped, the machine suspended) ages no heartbeat.
  public func look() { table.withLock { for heartbeat in $0 { heartbeat.look() } } }

  /// As of the last look, in the order in which the threads began.
  public var ages: [Age] { table.withLock { $0.map { Age(name: $0.name, looks: $0.age) } } }

  fileprivate func add(_ heartbeat: Heartbeat) {
    table.withLock { table in
      guard table.count < Limits.heartbeats else { return }
      table.append(heartbeat)
    }
  }

  fileprivate func remove(_ heartbeat: Heartbeat) { table.withLock { $0.removeAll { $0 === heartbeat } } }
}
