import Bytes
import Glibc
import Platform
import Synchronization

/// How late the machine let a thread run that wanted to run every millisecond.
struct MachineLateness: Sendable, CustomStringConvertible {
  /// Two packets: a stall that is longer, or a hundredth of all ticks later than half a packet, is heard.
  static let worstLimitMilliseconds = 40.0
  static let p99LimitMilliseconds = 10.0
  /// Without anything beside it, and with one busy core of two, a call's threads wait 1 to 9 %; with two busy cores more, and delay and likeness go.
  static let waitShareLimit = 0.10

  var worstMilliseconds = 0.0
  var p99Milliseconds = 0.0
  /// The share of the time in which one thread of the call was ready to run and had no processor; the worst of them.
  var waitShare = 0.0

  /// What a call's times and sound were beside it says nothing about the gateway.
  var isLate: Bool {
    worstMilliseconds > Self.worstLimitMilliseconds || p99Milliseconds > Self.p99LimitMilliseconds
      || waitShare > Self.waitShareLimit
  }

  var description: String {
    "at most \(Self.rounded(worstMilliseconds)) ms late, p99 \(Self.rounded(p99Milliseconds)) ms; "
      + "a thread of the call waited \(Self.rounded(waitShare * 100)) % of the time for a processor"
  }

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
    var (above, bucket) = (total / 100, counts.count - 1)
    while bucket > 0, Int(counts[bucket]) <= above {
      above -= Int(counts[bucket])
      bucket -= 1
    }
    return MachineLateness(worstMilliseconds: Double(worst.nanoseconds) / 1e6, p99Milliseconds: Double(bucket) / 10)
  }
}

/// Measures the machine during a call: a thread of the usual kind, as those of carrier and app are, with a tick each millisecond. A tick that
/// falls due while another is late counts as late, too: a stall of 50 ms is 50 ticks.
final class MachineWatch: Sendable {
  private struct State {
    var ticks = TickCounts()
    var waits = ThreadWaits()
    var processes: [Int32]
    var isOver = false
  }
  private static let ticksPerReading = 100
  private let state: Mutex<State>
  private let began = MonotonicClock.now()
  private let thread = Mutex<NamedThread?>(nil)

  /// `processes`: those that the call goes through; more may come (`add`).
  init(_ processes: [Int32]) throws(SystemError) {
    state = Mutex(State(processes: processes))
    let started = try NamedThread.start(name: "machine-watch") { [self] in run() }
    thread.withLock { $0 = started }
  }

  func add(_ process: Int32) { state.withLock { $0.processes.append(process) } }

  private func run() {
    var (due, ticks) = (began, 0)
    repeat {
      due = due + .milliseconds(1)
      var time = timespec(tv_sec: Int(due.nanoseconds / 1_000_000_000), tv_nsec: Int(due.nanoseconds % 1_000_000_000))
      while clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nil) == EINTR {}
      let late = MonotonicClock.now() - due
      state.withLock { state in
        state.ticks.count(late)
        // A peer's counters go with it, so they are read on the way.
        if ticks % Self.ticksPerReading == 0 { state.waits.read(state.processes) }
      }
      ticks += 1
    } while !state.withLock { $0.isOver }
  }

  /// Ends the thread; what it saw.
  func stop() -> MachineLateness {
    state.withLock { $0.isOver = true }
    thread.withLock { $0.take() }?.join()
    let elapsed = Double((MonotonicClock.now() - began).nanoseconds) / 1e6
    return state.withLock { state in
      var lateness = state.ticks.lateness
      lateness.waitShare = elapsed > 0 ? state.waits.worstMilliseconds / elapsed : 0
      return lateness
    }
  }
}
