import TrunklineBytes

/// When the session's reports are due: `quality` events every `Limits.reportInterval` from the connect on, RTCP at random intervals
/// for each leg (`ReportState`).
///
/// | input | effect |
/// |---|---|
/// | `start`, again too | the next `quality` is due in one interval |
/// | `qualityIsDue` before that, or without `start` | false |
/// | `qualityIsDue` from then on | true; the next one is due an interval after the time at which this one was |
struct ReportSchedule {
  private var nextQuality = Instant.distantFuture
  private var random: SplitMix64
  /// Names us in every report (RFC 3550 §6.5.1).
  let cname: ContiguousArray<UInt8>

  init(seed: UInt64, cname: String) {
    random = SplitMix64(seed: seed)
    self.cname = ContiguousArray(cname.utf8)
  }

  mutating func start(at now: Instant) { nextQuality = now + Limits.reportInterval }

  mutating func qualityIsDue(at now: Instant) -> Bool {
    guard now >= nextQuality else { return false }
    nextQuality = nextQuality + Limits.reportInterval
    return true
  }

  /// Whether a leg's RTCP report is due.
  mutating func isDue(_ reports: inout ReportState, at now: Instant) -> Bool { reports.isDue(at: now, random: &random) }

  /// The first sequence number and timestamp of a leg that is added.
  mutating func firstNumbers() -> (sequence: UInt16, timestamp: UInt32) {
    let numbers = random.next()
    return (UInt16(truncatingIfNeeded: numbers), UInt32(truncatingIfNeeded: numbers >> 16))
  }
}
