import Bytes
import RTP

/// A telephone-event on its way from one leg to the other: all packets of one press keep one timestamp on the outgoing clock (RFC
/// 4733 §2.5.1.2), and a press that is longer than 16 bits can say goes out in segments (§2.5.1.3).
struct EventForward {
  /// One packet to be sent: `units` of the outgoing clock.
  struct Part {
    var timestamp: UInt32
    var duration: UInt16
    var marker: Bool

    func applied(to event: TelephoneEvent) -> TelephoneEvent {
      TelephoneEvent(event: event.event, isEnd: event.isEnd && !closes, volume: event.volume, duration: duration)
    }
    /// A full segment ends, not the press.
    var closes = false
  }

  private var code: UInt8 = 255
  private var source: UInt32 = 0
  private var duration: UInt16 = 0
  /// Source units of the segments before the present one.
  private var before: UInt64 = 0
  private var lastSeen = Instant.zero
  private var ended = true
  private var start: UInt32 = 0
  private var segment: UInt64 = 0
  private static let longest: UInt64 = 65_535

  /// While true the audio of the stream is withheld.
  func isActive(at now: Instant) -> Bool { !ended && now - lastSeen < Limits.eventTimeout }

  /// Takes one received event. `next` is where a new press lies on our clock, `scale` turns source units into ours. Returns the
  /// packet for it, and before it the one that closes a full segment, if one has just become full.
  mutating func take(
    _ event: TelephoneEvent, timestamp: UInt32, next: UInt32, scale: (UInt64) -> UInt64, at now: Instant
  ) -> (closing: Part?, part: Part) {
    let isFirst = begin(event, timestamp, next: next)
    if timestamp == source { duration = max(duration, event.duration) }
    (lastSeen, ended) = (now, event.isEnd)
    let total = scale(before &+ UInt64(event.duration))
    let wanted = total == 0 ? 0 : (total - 1) / Self.longest
    var closing: Part?
    if wanted > segment {
      closing = part(of: wanted - 1, duration: UInt16(Self.longest))
      closing?.closes = true
      segment = wanted
    }
    var part = part(of: segment, duration: UInt16(clamping: total &- min(total, segment &* Self.longest)))
    part.marker = isFirst
    return (closing, part)
  }

  /// True for the first packet of a press.
  private mutating func begin(_ event: TelephoneEvent, _ timestamp: UInt32, next: UInt32) -> Bool {
    guard timestamp != source || event.event != code else { return false }
    let step = UInt64(timestamp &- source)
    if event.event == code, !ended, step == UInt64(duration) || step == Self.longest || step == Self.longest + 1 {
      before &+= step
      (source, duration) = (timestamp, 0)
      return false
    }
    (code, source, duration, before, start, segment) = (event.event, timestamp, 0, 0, next, 0)
    return true
  }

  private func part(of segment: UInt64, duration: UInt16) -> Part {
    Part(timestamp: start &+ UInt32(truncatingIfNeeded: segment &* Self.longest), duration: duration, marker: false)
  }
}
