import Foundation
import Glibc
import Synchronization

/// A thread that wakes every millisecond and records its lateness: the lateness that a peer with 20 ms ticks, started by the same
/// suite at the same priority, had to expect of this machine at that time. It also reads the kernel's figure, if there is one:
/// the share of time in which a thread waited for a processor. `TRUNKLINE_PRESSURE` names the figure's file (`Scripts/live-tests`
/// sets it to that of its suites, so that other load, which gets only the remaining time, does not count); the default is the
/// machine's, `/proc/pressure/cpu`.
///
/// Deadlines use the canary's time (`elapsed`): it stops while the machine does and is slower under pressure, so that a slow
/// machine waits longer and a quick one fails as early as ever. Any thread; a reading costs 1 µs.
enum Canary {
  /// Ticks by lateness; two readings make a `Lateness`.
  struct Reading: Sendable {
    fileprivate(set) var ticks = [Int](repeating: 0, count: Scale.count)
    fileprivate(set) var waitedMicroseconds = 0
    fileprivate(set) var at = ContinuousClock.now
  }

  /// The machine's lateness between two readings. A tick that is due while another is late is late, too: a stall of 50 ms is 50
  /// ticks.
  struct Lateness: Sendable, CustomStringConvertible {
    var worstMilliseconds = 0.0
    var p99Milliseconds = 0.0
    /// Share of the time in which a task waited for a processor; nil without `/proc/pressure`.
    var pressure: Double?

    var description: String {
      let share = pressure.map { ", somebody waited for a processor in \(Int(($0 * 100).rounded())) % of the time" } ?? ""
      return "at most \(worstMilliseconds) ms late, p99 \(p99Milliseconds) ms\(share)"
    }
  }

  static var now: Reading {
    shared.begin()
    return shared.state.withLock { state in
      var reading = state.reading
      reading.at = .now
      return reading
    }
  }

  static func lateness(since start: Reading) -> Lateness {
    let end = now
    let ticks = zip(end.ticks, start.ticks).map { $0 - $1 }
    var lateness = Lateness()
    lateness.worstMilliseconds = ticks.lastIndex { $0 > 0 }.map(Scale.milliseconds) ?? 0
    var left = ticks.reduce(0, +) / 100
    for bucket in ticks.indices.reversed() {
      left -= ticks[bucket]
      guard left < 0 else { continue }
      lateness.p99Milliseconds = Scale.milliseconds(bucket)
      break
    }
    let took = Double((end.at - start.at) / .microseconds(1))
    if shared.state.withLock({ $0.hasPressure }), took > 0 {
      lateness.pressure = min(1, Double(end.waitedMicroseconds - start.waitedMicroseconds) / took)
    }
    return lateness
  }

  /// The canary's time since its start.
  static var elapsed: Duration {
    shared.begin()
    return shared.state.withLock { $0.elapsed }
  }

  /// How much longer work takes now than on a machine in time, 1 to 4: for waits without a condition to poll.
  static var factor: Double {
    shared.begin()
    return shared.state.withLock { 1 / $0.pace }
  }

  private static let shared = Watch()

  /// Half milliseconds up to 50 ms, then tens up to 2 s and more.
  private enum Scale {
    static let count = 100 + 196
    static func bucket(_ milliseconds: Double) -> Int {
      milliseconds < 50 ? Int(max(0, milliseconds) * 2) : min(count - 1, 100 + Int((milliseconds - 50) / 10))
    }
    /// The upper bound of a bucket.
    static func milliseconds(_ bucket: Int) -> Double { bucket < 100 ? Double(bucket + 1) / 2 : Double(60 + (bucket - 100) * 10) }
  }

  private final class Watch: Sendable {
    struct State {
      var reading = Reading()
      var elapsed = Duration.zero
      var pace = 1.0
      var hasPressure = false
      var isRunning = false
    }
    let state = Mutex(State())

    func begin() {
      let isFirst = state.withLock { state in
        defer { state.isRunning = true }
        return !state.isRunning
      }
      guard isFirst else { return }
      let thread = Thread { [self] in run() }
      thread.name = "canary"
      thread.start()
    }

    private func run() {
      let file = ProcessInfo.processInfo.environment["TRUNKLINE_PRESSURE"] ?? "/proc/pressure/cpu"
      let pressure = open(file, O_RDONLY | O_CLOEXEC)
      var (waited, tick) = (Self.waited(pressure), 0)
      state.withLock { $0.hasPressure = waited != nil }
      let start = waited ?? 0
      var due = Self.nanoseconds()
      while true {
        due += 1_000_000
        var time = timespec(tv_sec: due / 1_000_000_000, tv_nsec: due % 1_000_000_000)
        while clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nil) == EINTR {}
        let late = Double(Self.nanoseconds() - due) / 1e6
        tick += 1
        if tick % 250 == 0, let before = waited, let now = Self.waited(pressure) {
          // of the last quarter of a second: if a task waits for three quarters of it, work may take four times as long
          let pace = max(0.25, 1 - Double(now - before) / 250_000)
          state.withLock { $0.pace = pace }
          waited = now
        }
        state.withLock { state in
          state.reading.ticks[Scale.bucket(late)] += 1
          state.reading.waitedMicroseconds = (waited ?? 0) - start
          if late < 5 { state.elapsed += .microseconds(Int(1_000 * state.pace)) }
        }
      }
    }

    private static func nanoseconds() -> Int {
      var now = timespec()
      clock_gettime(CLOCK_MONOTONIC, &now)
      return now.tv_sec * 1_000_000_000 + now.tv_nsec
    }

    /// Microseconds since the machine's start in which a task waited: "some avg10=… total=N".
    private static func waited(_ file: Int32) -> Int? {
      guard file >= 0 else { return nil }
      var bytes = [UInt8](repeating: 0, count: 256)
      let count = pread(file, &bytes, bytes.count, 0)
      guard count > 0, let line = String(decoding: bytes[..<count], as: UTF8.self).split(separator: "\n").first else {
        return nil
      }
      return line.split(separator: "total=").last.flatMap { Int($0) }
    }
  }
}

/// A deadline by the canary's time: later on a slow machine than on one in time, at most eight times.
struct Deadline {
  private let seconds: Double
  private let start = (wall: ContinuousClock.now, canary: Canary.elapsed)
  init(in seconds: Double) { self.seconds = seconds }
  var isOver: Bool {
    Canary.elapsed - start.canary >= .seconds(seconds) || ContinuousClock.now - start.wall >= .seconds(8 * seconds)
  }
}
