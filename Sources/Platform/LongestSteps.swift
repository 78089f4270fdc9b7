import Synchronization
import TrunklineBytes

/// The longest step of a thread's loop within the last one to two minutes: the longest that other work had to wait for it. A
/// step has a budget (docs/design/overload-and-scheduling.md).
public final class LongestSteps: Sendable {
  /// The steps of this process, by the names of their loops.
  public static let process = LongestSteps()
  private static let window = Duration.seconds(60)

  /// The steps of one loop; written by its thread.
  final class Steps: Sendable {
    private struct State {
      var now = Duration.zero
      var before = Duration.zero
      var began = Instant.zero
    }
    private let state = Mutex(State())

    func note(_ step: Duration, at now: Instant) {
      state.withLock { state in
        Self.roll(&state, at: now)
        state.now = max(state.now, step)
      }
    }

    func longest(at now: Instant) -> Duration {
      state.withLock { state in
        Self.roll(&state, at: now)
        return max(state.now, state.before)
      }
    }

    private static func roll(_ state: inout State, at now: Instant) {
      let age = now - state.began
      guard age >= LongestSteps.window else { return }
      state.before = age >= LongestSteps.window * 2 ? .zero : state.now
      state.now = .zero
      state.began = now
    }
  }

  private let loops = Mutex<[String: Steps]>([:])

  init() {}

  func steps(_ loop: String) -> Steps {
    loops.withLock { loops in
      if let known = loops[loop] { return known }
      let new = Steps()
      // as many as watched threads; others are not counted
      if loops.count < Limits.heartbeats { loops[loop] = new }
      return new
    }
  }

  public var metrics: [MetricFamily] {
    [
      MetricFamily(
        name: "trunkline_thread_longest_step_seconds",
        help: "The longest step of a thread's loop in the last one to two minutes.",
        kind: .gauge, labelNames: ["thread"]
      ) { [self] in
        let now = MonotonicClock.now()
        return loops.withLock { $0 }.sorted { $0.key < $1.key }.map { name, steps in
          MetricSample([name], .number(Double(steps.longest(at: now).nanoseconds) / 1e9))
        }
      }
    ]
  }
}
