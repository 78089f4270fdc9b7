import Bytes
import Glibc
import Platform
import Synchronization

/// How late the machine let a thread run that wanted to run every millisecond.
struct MachineLateness: Sendable, CustomStringConvertible {
  /// Two packets: a stall that is longer, or a hundredth of all ticks later than half a packet, is heard.
  static let worstLimitMilliseconds = 40.0
  static let p99LimitMilliseconds = 10.0

  var worstMilliseconds = 0.0
  var p99Milliseconds = 0.0

  /// What a call's times and sound were beside it says nothing about the gateway.
  var isLate: Bool { worstMilliseconds > Self.worstLimitMilliseconds || p99Milliseconds > Self.p99LimitMilliseconds }

  var description: String { "at most \(Self.rounded(worstMilliseconds)) ms late, p99 \(Self.rounded(p99Milliseconds)) ms" }

  private static func rounded(_ milliseconds: Double) -> Double { (milliseconds * 10).rounded() / 10 }
}

/// Ticks counted by how late each was, in tenths of a millisecond up to 200 ms; what is later counts there.
struct TickCounts: Sendable {
  private var counts = [UInt32](repeating: 0, count: 2_001)
  private var total = 0
  private var worst = Duration.zero

  mutating func count(_ late: Duration) {
    counts[max(0, min(counts.count - 1, Int(late.nanoseconds / 100_000)))] += 1
    total += 1
    worst = max(worst, late)
  }

  var lateness: MachineLateness {
    // One in a hundred is later than this.
    var (above, place) = (total / 100, counts.count - 1)
    while place > 0, Int(counts[place]) <= above {
      above -= Int(counts[place])
      place -= 1
    }
    return MachineLateness(worstMilliseconds: Double(worst.nanoseconds) / 1e6, p99Milliseconds: Double(place) / 10)
  }
}

/// Measures the machine while a call goes on: a thread of the usual kind, as those of carrier and app are, with a tick each millisecond. A tick that
/// falls due while another is late counts as late, too: a stall of 50 ms is 50 ticks.
final class MachineWatch: Sendable {
  private struct State {
    var ticks = TickCounts()
    var isOver = false
  }
  private let state = Mutex(State())
  private let thread = Mutex<NamedThread?>(nil)

  init() throws(SystemError) {
    let started = try NamedThread.start(name: "machine-watch") { [self] in run() }
    thread.withLock { $0 = started }
  }

  private func run() {
    var due = MonotonicClock.now()
    repeat {
      due = due + .milliseconds(1)
      var time = timespec(tv_sec: Int(due.nanoseconds / 1_000_000_000), tv_nsec: Int(due.nanoseconds % 1_000_000_000))
      while clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nil) == EINTR {}
      let late = MonotonicClock.now() - due
      state.withLock { $0.ticks.count(late) }
    } while !state.withLock { $0.isOver }
  }

  /// Ends the thread; what it saw.
  func stop() -> MachineLateness {
    state.withLock { $0.isOver = true }
    thread.withLock { $0.take() }?.join()
    return state.withLock { $0.ticks.lateness }
  }
}
