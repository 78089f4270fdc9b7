import CallModel
import TrunklineAppProtocol
import TrunklineBytes

/// How a call ends, and when at the latest.
///
/// | state | input | → |
/// |---|---|---|
/// | live | `limit` | live: it ends at the deadline |
/// | live | `end` | ended: the record waits for the last statistics until the deadline |
/// | ended | `limit`, `end` | ended: the first end counts |
/// | any | `disown` | same: another node has recorded the call |
struct CallConclusion {
  private(set) var end: CallRecord.End?
  /// The end reason for devices that had no part in it.
  private(set) var reasonForOthers: EndReason?
  private(set) var isDisowned = false
  private var longest: Instant?
  private var finalStatistics: Instant?

  mutating func limit(until deadline: Instant) { if end == nil { longest = deadline } }

  mutating func end(_ end: CallRecord.End, others: EndReason, statisticsUntil deadline: Instant) {
    guard self.end == nil else { return }
    self.end = end
    reasonForOthers = others
    longest = nil
    finalStatistics = deadline
  }

  mutating func disown() { isDisowned = true }

  mutating func stop(_ timer: CallTimer) { if timer == .longestCall { longest = nil } else { finalStatistics = nil } }
  var next: DueTimer? { .earliest(DueTimer(.longestCall, longest), DueTimer(.finalStatistics, finalStatistics)) }
}
