import TrunklineBytes

/// How often a timer for the deadlines of thousands fires: every `pause` at most, counted from when it fired last. Counted from now, each piece of
/// news would put a deadline off that has come, and none would be met for as long as there is news.
struct TimerPace {
  let pause: Duration
  private var notBefore: Instant?

  init(pause: Duration) { self.pause = pause }

  mutating func fired(at now: Instant) { notBefore = now + pause }

  /// When it fires for this deadline.
  func due(_ deadline: Instant) -> Instant { notBefore.map { max($0, deadline) } ?? deadline }
}
