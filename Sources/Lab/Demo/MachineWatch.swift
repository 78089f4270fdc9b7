import Glibc
import Synchronization
import TrunklineBytes
import TrunklinePlatform

/// How late the machine ran a thread that was due every millisecond.
struct MachineLateness: Sendable, CustomStringConvertible {
  /// Two packets: a longer stall, or a hundredth of all ticks later than half a packet, is audible.
  static let worstLimitMilliseconds = 40.0
  static let p99LimitMilliseconds = 10.0
  /// Without other load, and with one busy core of two, a call's threads wait 1 to 9 %; with two busy cores they wait longer, and
  /// delay and likeness get worse.
  static let waitShareLimit = 0.10

  var worstMilliseconds = 0.0
  var p99Milliseconds = 0.0
  /// The share of the time in which one thread of the call was ready to run and had no processor; the worst of them.
  var waitShare = 0.0

  /// True if the call's times and sound show nothing about the gateway.
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

/// Ticks counted by their lateness, in tenths of a millisecond up to 200 ms; later ones count there.
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

/// Measures the machine during a call: a thread of the usual kind, like those of carrier and app, with a tick each millisecond. A
/// tick that is due while another is late counts as late, too: a stall of 50 ms is 50 ticks.
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

  /// `processes`: those that the call passes through; `add` appends more.
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
        // A peer's counters end with its process, so they are read during the call.
        if ticks % Self.ticksPerReading == 0 { state.waits.read(state.processes) }
      }
      ticks += 1
    } while !state.withLock { $0.isOver }
  }

  /// Ends the thread and returns its figures.
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
