import TrunklineBytes
import TrunklinePlatform

/// The load that a media thread reports, and the limits that the façade reads. Any thread.
final class ThreadLoad: Sendable {
  /// Calls that may still be reserved until the next check.
  let room = Gauge()
  /// CPU in use in thousandths of a core, and the ceiling of the encoders' complexity.
  let permille = Gauge()
  let ceiling = Gauge()
  let isRefusing = Gauge()

  func set(_ verdict: LoadGovernor.Verdict, load: Double) {
    room.set(Int64(verdict.room))
    permille.set(Int64(load * 1_000))
    ceiling.set(Int64(verdict.ceiling))
    isRefusing.set(verdict.isRefusing ? 1 : 0)
  }
}

/// A thread's counts between two checks of its load. One thread.
struct LoadMeter {
  private var since = MonotonicClock.now()
  private var usedUntil = MonotonicClock.threadCPU()
  private var ticks = 0, strained = 0, overdue = 0, leftOut = 0
  private(set) var due = Instant.zero

  /// HOT
  @inline(__always) mutating func ticked(late: Duration) {
    ticks &+= 1
    if late > Limits.tickStrain { strained &+= 1 }
    if late > Limits.tickOverload { overdue &+= 1 }
  }

  mutating func skipped(_ count: Int) { leftOut += count }

  /// The counts since the last call.
  mutating func sample(at now: Instant, running: Int, reserved: Int) -> LoadGovernor.Sample {
    let used = MonotonicClock.threadCPU()
    defer {
      since = now
      usedUntil = used
      due = now + Limits.loadInterval
      ticks = 0
      strained = 0
      overdue = 0
      leftOut = 0
    }
    return LoadGovernor.Sample(
      elapsed: now - since, used: used - usedUntil, ticks: ticks, strained: strained, overdue: overdue, leftOut: leftOut,
      running: running, reserved: reserved)
  }
}

extension MediaWorker {
  /// Checks the thread's load; a new ceiling applies to every session in the same step.
  mutating func checkLoad() {
    let sample = meter.sample(at: now, running: running, reserved: Int(clamping: shared.sessions.value))
    let verdict = governor.evaluate(sample)
    shared.load.set(verdict, load: governor.load)
    shared.cpu.set(MonotonicClock.threadCPU().nanoseconds)
    guard verdict.ceiling != ceiling else { return }
    ceiling = verdict.ceiling
    for slot in 0..<Limits.sessionsPerThread { entries[slot]?.pointee.session.limitComplexity(to: ceiling) }
  }

  /// The call of this slot has audio from now on.
  mutating func countRunning(_ slot: Int) {
    guard let entry = entries[slot], !entry.pointee.isRunning else { return }
    entry.pointee.isRunning = true
    running += 1
  }
}
