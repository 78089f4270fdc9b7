import TrunklineBytes
import TrunklineSIPDialogs

/// OPTIONS at an interval, with hysteresis: the state changes after `downAfter` lost probes or `upAfter` answers in a row.
struct Prober {
  let settings: TrunkSettings.Probe
  private(set) var isUp = true
  private var consecutive = 0
  /// When the next probe goes out; nil while one is under way.
  private(set) var due: Instant?
  /// The probe that is under way, and when it counts as unanswered.
  private(set) var pending: (id: RequestID, until: Instant)?

  init(_ settings: TrunkSettings.Probe, at now: Instant) { (self.settings, due) = (settings, now) }

  mutating func sent(_ id: RequestID, at now: Instant) { (due, pending) = (nil, (id, now + Limits.probeTime)) }
  /// No server can be reached now.
  mutating func postpone(until later: Instant) { due = later }

  /// The network has changed: results from the old one do not count, and a probe under way is sent again.
  mutating func probeNow(at now: Instant) { (due, pending) = (now, nil) }

  /// True if the trunk's state changed. A trunk that is down, or may be, is probed more often.
  mutating func answered(alive: Bool, at now: Instant) -> Bool {
    pending = nil
    consecutive = alive == isUp ? 0 : consecutive + 1
    let flips = consecutive >= (isUp ? settings.downAfter : settings.upAfter)
    if flips { (isUp, consecutive) = (!isUp, 0) }
    let isSuspect = !isUp || consecutive > 0
    due = now + (isSuspect ? min(settings.interval, Self.suspectInterval) : settings.interval)
    return flips
  }

  private static let suspectInterval = Duration.seconds(5)
}
