import TrunklineBytes

/// When our RTCP reports are due, and what the gateway's contained.
///
/// | state | input | → | returns |
/// |---|---|---|---|
/// | stopped | `begin` | due in half an interval | – |
/// | running | `begin` | same | – |
/// | running | `isDue` from its time on | due in half to one and a half intervals (RFC 3550 §6.3.1) | true |
/// | running, before its time; stopped | `isDue` | same | false |
/// | any | `stop` | stopped | – |
/// | any | `measured` | the round trip of the gateway's reports, smoothed | – |
/// | any | `connected` | the round trip of ICE's checks, until the next report | – |
struct ClientReports: Sendable {
  private(set) var nextDue: Instant?
  private(set) var roundTripMilliseconds: Double?
  private(set) var reportedLossFraction: Double?
  private var smoothed: Double?

  mutating func begin(at now: Instant) { if nextDue == nil { nextDue = now + Limits.reportInterval / 2 } }
  mutating func stop() { nextDue = nil }

  mutating func isDue(at now: Instant, random: RandomSource) -> Bool {
    guard let nextDue, nextDue <= now else { return false }
    let interval = UInt64(Limits.reportInterval.nanoseconds)
    self.nextDue = now + .nanoseconds(Int64(interval / 2 + random.next() % interval))
    return true
  }

  mutating func connected(roundTripMilliseconds: Double?) { self.roundTripMilliseconds = roundTripMilliseconds }

  /// A block about our stream.
  /// - Returns: the smoothed round trip; nil before any.
  mutating func measured(roundTripMilliseconds: Double?, lossFraction: Double) -> Double? {
    reportedLossFraction = lossFraction
    if let roundTripMilliseconds {
      smoothed = smoothed.map { $0 * 0.75 + roundTripMilliseconds * 0.25 } ?? roundTripMilliseconds
      self.roundTripMilliseconds = smoothed
    }
    return smoothed
  }
}
