import TrunklineBytes
import TrunklineRTP

/// Forwards telephone-events from one leg to the other: all packets of one press keep one timestamp on the outgoing stream (RFC
/// 4733 §2.5.1.2), and a press longer than 16 bits can express is sent in segments (§2.5.1.3).
///
/// Towards a trunk a press is complete, whatever packets the app sends:
///
/// | state | input | sent |
/// |---|---|---|
/// | over | the first packet of a press | the same with the marker |
/// | over | the first packet of a press is its end | a beginning with the marker, then the end, of 40 ms at least |
/// | over | an end of the same key within 100 ms, under any timestamp | one more end of the last press; after three, nothing |
/// | playing | a packet of the press | the same |
/// | playing | its end | the end |
/// | playing | nothing for 250 ms (`due`) | the end, three times |
/// | over, fewer than three ends sent | a tick (`due`) | one more end |
struct EventForward {
  /// One packet to be sent: `duration` in units of the outgoing event's clock.
  struct Part {
    var timestamp: UInt32
    var event: TelephoneEvent
    var marker = false
  }

  /// The packets to send for a received one, in this order.
  struct Parts {
    /// The beginning that the sender left out.
    var opening: Part?
    /// The end of a full segment, which another one follows.
    var closing: Part?
    /// Nil: enough packets were sent.
    var part: Part?
  }

  /// Rates in Hz of events and of their stream's timestamps, which differ with telephone-event/8000 beside Opus.
  struct Clocks {
    var event: UInt32
    var stream: UInt32
    init(event: UInt32, stream: UInt32) { (self.event, self.stream) = (max(1, event), max(1, stream)) }
    /// Converts event units to timestamp units.
    func stamps(_ units: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: units &* UInt64(stream) / UInt64(event)) }
  }

  private var code: UInt8 = 255
  private var volume: UInt8 = 0
  private var ssrc: UInt32 = 0
  private var source: UInt32 = 0
  private var duration: UInt16 = 0
  /// Source units of the earlier segments.
  private var before: UInt64 = 0
  private var lastSeen = Instant.zero
  private var ended = true
  private var endsSent = 0
  private var lastEnd = Instant.zero
  private var start: UInt32 = 0
  private var segment: UInt64 = 0
  /// Units of the outgoing clock sent for the press.
  private var total: UInt64 = 0
  private var outgoing = Clocks(event: 8_000, stream: 8_000)
  private static let longest: UInt64 = 65_535
  private static let repetition = Duration.milliseconds(100)

  /// While true, the stream's audio is withheld.
  func isActive(at now: Instant) -> Bool { !ended && now - lastSeen < Limits.eventTimeout }
  /// `due` has more packets to send for a press.
  var isPending: Bool { code != 255 && (!ended || endsSent < Limits.eventEnds) }

  /// Handles one received event. `next` is the timestamp of a new press on our stream.
  mutating func forward(
    _ event: TelephoneEvent, of ssrc: UInt32, timestamp: UInt32, from incoming: Clocks, to outgoing: Clocks, next: UInt32,
    at now: Instant
  ) -> Parts {
    var parts = Parts()
    // One press is sent at a time: of two simultaneous sources, the first one's.
    guard ssrc == self.ssrc || !isActive(at: now) else { return parts }
    if isRepeatedEnd(event, ssrc: ssrc, timestamp: timestamp, at: now) {
      lastSeen = now
      source = timestamp
      if endsSent < Limits.eventEnds { parts.part = end(at: now) }
      return parts
    }
    // An update that arrives after its end.
    if ended, !event.isEnd, timestamp == source, event.event == code, ssrc == self.ssrc { return parts }
    let isFirst = begin(event, ssrc: ssrc, timestamp: timestamp, incoming: incoming, next: next, at: now)
    self.outgoing = outgoing
    if timestamp == source { duration = max(duration, event.duration) }
    lastSeen = now
    volume = event.volume
    let tick = UInt64(outgoing.event) / 50
    var units = (before &+ UInt64(event.duration)) &* UInt64(outgoing.event) / UInt64(incoming.event)
    if isFirst, event.isEnd {
      parts.opening = Part(timestamp: start, event: made(isEnd: false, tick), marker: true)
      units = max(units, Limits.shortestEventTicks &* tick)
    }
    total = isFirst ? units : max(total, units)
    let wanted = units == 0 ? 0 : (units - 1) / Self.longest
    if wanted > segment {
      parts.closing = part(of: wanted - 1, made(isEnd: false, Self.longest))
      segment = wanted
    }
    if event.isEnd {
      ended = true
      parts.part = endsSent < Limits.eventEnds ? end(at: now) : nil
    } else {
      ended = false
      parts.part = part(of: segment, made(isEnd: false, units &- min(units, segment &* Self.longest)))
      parts.part?.marker = isFirst
    }
    return parts
  }

  /// Ends a press whose sender fell silent, or sent too few ends. To be called on ticks.
  mutating func due(at now: Instant) -> Part? {
    guard isPending else { return nil }
    if !ended {
      guard now - lastSeen >= Limits.eventTimeout else { return nil }
      ended = true
    }
    guard now - lastEnd >= Frame.duration else { return nil }
    return end(at: now)
  }

  private mutating func end(at now: Instant) -> Part {
    endsSent = endsSent + 1
    lastEnd = now
    total = max(total, Limits.shortestEventTicks &* UInt64(outgoing.event) / 50)
    return part(of: segment, made(isEnd: true, total &- min(total, segment &* Self.longest)))
  }

  /// Whether the event repeats the end of the last press.
  private func isRepeatedEnd(_ event: TelephoneEvent, ssrc: UInt32, timestamp: UInt32, at now: Instant) -> Bool {
    guard ended, event.isEnd, event.event == code, ssrc == self.ssrc else { return false }
    return timestamp == source || now - lastSeen < Self.repetition
  }

  /// True for the first packet of a press.
  private mutating func begin(
    _ event: TelephoneEvent, ssrc: UInt32, timestamp: UInt32, incoming: Clocks, next: UInt32, at now: Instant
  ) -> Bool {
    let isSame = event.event == code && ssrc == self.ssrc
    if isSame, timestamp == source { return false }
    if isSame, !ended {
      let step = timestamp &- source
      if let length = segmentLength(step, incoming) {
        before &+= length
        source = timestamp
        duration = 0
        return false
      }
      // A peer that stamps each packet, or only the ends, with the send time.
      let grows = event.duration >= duration && step == UInt32(event.duration - duration)
      if grows || (event.isEnd && event.duration >= duration && now - lastSeen < Self.repetition) {
        source = timestamp
        return false
      }
    }
    // After the last press, even without audio between them: two presses with one timestamp would be one.
    let end = start &+ outgoing.stamps(total)
    let overlap = Int32(bitPattern: end &- next)
    let begins = code != 255 && overlap > 0 && overlap < Int32(clamping: outgoing.stream &* 10) ? end : next
    code = event.event
    self.ssrc = ssrc
    source = timestamp
    duration = 0
    before = 0
    start = begins
    segment = 0
    ended = false
    endsSent = 0
    total = 0
    lastEnd = .zero
    return true
  }

  /// Event units of the segment that ends where this one begins (§2.5.1.3), by the event's clock or by that of the stream.
  private func segmentLength(_ step: UInt32, _ incoming: Clocks) -> UInt64? {
    func ends(_ length: UInt64) -> Bool { UInt64(step) == length || step == incoming.stamps(length) }
    if duration > 0, ends(UInt64(duration)) { return UInt64(duration) }
    return ends(Self.longest) ? Self.longest : ends(Self.longest + 1) ? Self.longest + 1 : nil
  }

  private func made(isEnd: Bool, _ units: UInt64) -> TelephoneEvent {
    TelephoneEvent(event: code, isEnd: isEnd, volume: volume, duration: UInt16(clamping: units))
  }

  private func part(of segment: UInt64, _ event: TelephoneEvent) -> Part {
    Part(timestamp: start &+ outgoing.stamps(segment &* Self.longest), event: event)
  }
}
