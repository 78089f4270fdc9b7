import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

/// Digits of a leg's telephone-events, by source and clock: events may have an SSRC of their own besides the audio's, or several,
/// and the timestamps of one are unrelated to another's. If there are more than `Limits.eventSources`, the one that has been
/// silent for longest is evicted.
struct EventSources {
  private struct Source {
    var ssrc: UInt32
    var clock: UInt32
    var digits: DigitReceiver
    var last: Instant
  }
  private var sources = [Source?](repeating: nil, count: Limits.eventSources)
  /// A digit may be in progress.
  private var isOpen = false

  /// Handles one event; `stampRateHz` is the clock of the stream's audio.
  mutating func receive(
    _ event: TelephoneEvent, of ssrc: UInt32, _ timestamp: RTPTimestamp, clockRateHz: UInt32, stampRateHz: UInt32, at now: Instant
  ) -> ReceivedDigit? {
    let slot = slot(ssrc, clock: clockRateHz, stamps: stampRateHz, at: now)
    isOpen = true
    sources[slot]?.last = now
    return sources[slot]?.digits.receive(event, timestamp: timestamp, at: now)
  }

  private mutating func slot(_ ssrc: UInt32, clock: UInt32, stamps: UInt32, at now: Instant) -> Int {
    var oldest = 0
    for index in sources.indices {
      guard let source = sources[index] else {
        oldest = index
        break
      }
      if source.ssrc == ssrc, source.clock == clock { return index }
      if let other = sources[oldest], source.last < other.last { oldest = index }
    }
    sources[oldest] = Source(
      ssrc: ssrc, clock: clock, digits: DigitReceiver(clockRateHz: clock, stampRateHz: max(stamps, clock)), last: now)
    return oldest
  }

  /// Call on ticks, until there is none: ends digits whose last packets were all lost.
  mutating func expire(at now: Instant) -> ReceivedDigit? {
    guard isOpen else { return nil }
    for index in sources.indices {
      if let digit = sources[index]?.digits.expire(at: now) { return digit }
    }
    isOpen = sources.indices.contains { sources[$0]?.digits.isOpen == true }
    return nil
  }
}
