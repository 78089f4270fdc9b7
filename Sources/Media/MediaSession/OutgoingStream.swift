import TrunklineBytes
import TrunklineRTP

/// SSRC, sequence number and timestamp of one stream that we send: they are chosen only here, so that a leg can switch between
/// relay, transcoding, digits and silence without a jump. Sequence numbers of our own packets are continuous. In relay they keep
/// the gaps of the source, so that the receiver sees its loss, but neither its jumps nor gaps of packets that are withheld on
/// purpose.
struct OutgoingStream {
  let ssrc: UInt32
  /// Timestamp units in 20 ms: 160 at 8 kHz, 960 at 48 kHz.
  var unitsPerFrame: UInt32
  private(set) var nextSequence: UInt16
  /// The timestamp of the next frame.
  private(set) var nextTimestamp: UInt32
  /// No packet was sent yet, or silence was omitted: the next packet starts a talkspurt (RFC 3551 §4.1).
  var markerPending = true
  private(set) var packets: UInt64 = 0
  private(set) var bytes: UInt64 = 0
  private(set) var lastSent: Instant?
  private(set) var lastTimestamp: UInt32 = 0

  // The relay's mapping from the source's numbers to ours; invalid until its first packet.
  private var maps = false
  private var sourceSSRC: UInt32 = 0
  /// Offset of the numbers above all withheld ones.
  private var sequenceOffset: UInt16 = 0
  private var timestampOffset: UInt32 = 0
  /// The source's highest number, and which of the 64 up to it were withheld: bit k is the number `highest − k`.
  private var highest: UInt16 = 0
  private var withheld: UInt64 = 0
  /// Timestamp and arrival of the source's newest audio.
  private var sourceTimestamp: UInt32 = 0
  private var sourceArrival = Instant.zero

  struct Stamp {
    var sequence: UInt16
    var timestamp: UInt32
    var marker: Bool
  }

  init(ssrc: UInt32, sequence: UInt16, timestamp: UInt32, clockRateHz: UInt32) {
    (self.ssrc, nextSequence, nextTimestamp) = (ssrc, sequence, timestamp)
    unitsPerFrame = clockRateHz / 50
  }

  /// Numbers a packet that we generated, `units` long (0 for a telephone-event, which has its own timestamp). A packet that only
  /// describes a pause does not start a talkspurt.
  mutating func stamp(units: UInt32, startsTalk: Bool = true, at now: Instant) -> Stamp {
    maps = false
    let stamp = Stamp(sequence: nextSequence, timestamp: nextTimestamp, marker: markerPending && startsTalk)
    nextSequence &+= 1
    nextTimestamp &+= units
    if units > 0, startsTalk { markerPending = false }
    return stamp
  }

  /// Skips time without a packet: the timestamp advances, the sequence number does not (RFC 3550 §5.1).
  mutating func skip(units: UInt32) {
    maps = false
    nextTimestamp &+= units
    markerPending = true
  }

  /// Numbers a packet of ours between those of a relayed source, with its own `timestamp`: the source's next number follows it.
  mutating func insert(timestamp: UInt32, marker: Bool) -> Stamp {
    let stamp = Stamp(sequence: nextSequence, timestamp: timestamp, marker: marker)
    nextSequence &+= 1
    sequenceOffset &+= 1
    return stamp
  }

  /// The timestamp of a relayed source's press on our timeline: the source's, mapped, if that is near, else after our last
  /// packet.
  func eventTimestamp(of header: RTPHeader, relays: Bool) -> UInt32 {
    let mapped = header.timestamp.raw &+ timestampOffset
    let isNear = Int32(bitPattern: mapped &- nextTimestamp).magnitude < unitsPerFrame &* 500
    return relays && maps && header.ssrc.raw == sourceSSRC && isNear ? mapped : nextTimestamp
  }

  /// Numbers an event's packet: in a relayed stream with the number of the source packet that carried it, as long as that is
  /// unused, else with new ones between the source's.
  mutating func event(
    _ part: EventForward.Part, in header: RTPHeader?, _ number: inout UInt16?, relays: Bool, at now: Instant
  ) -> Stamp {
    var stamp: Stamp
    if relays, let header, let own = number {
      stamp = forward(header.ssrc.raw, sequence: own, timestamp: header.timestamp.raw, marker: false, units: 0, at: now)
      number = nil
    } else {
      stamp = relays ? insert(timestamp: part.timestamp, marker: part.marker) : self.stamp(units: 0, at: now)
    }
    stamp.timestamp = part.timestamp
    stamp.marker = part.marker
    return stamp
  }

  /// Numbers a forwarded packet of the source. A new source, a jump of its numbers, or a packet of our own in between starts a
  /// new mapping right after our last packet; a timestamp jump that time does not explain starts a new mapping of timestamps. HOT
  mutating func forward(_ ssrc: UInt32, sequence: UInt16, timestamp: UInt32, marker: Bool, units: UInt32, at now: Instant)
    -> Stamp
  {
    var step = Int(Int16(bitPattern: sequence &- highest))
    if !maps || ssrc != sourceSSRC || step.magnitude > 3_000 {
      catchUpClock(at: now)
      maps = true
      sourceSSRC = ssrc
      withheld = 0
      step = 0
      highest = sequence
      sequenceOffset = nextSequence &- sequence
      timestampOffset = nextTimestamp &- timestamp
      sourceTimestamp = timestamp
      sourceArrival = now
      markerPending = true
    } else if step > 0 {
      withheld = step < 64 ? withheld << UInt64(step) : 0
      highest = sequence
      if units > 0 {
        if Int32(bitPattern: timestamp &- sourceTimestamp).magnitude > unitsPerFrame &* 50 { followJump(to: timestamp, at: now) }
        sourceTimestamp = timestamp
        sourceArrival = now
      }
    }
    // Packets withheld above this number had not shifted it yet.
    let above = step < 0 ? (step > -64 ? withheld & (1 << UInt64(-step) &- 1) : withheld).nonzeroBitCount : 0
    let stamp = Stamp(
      sequence: sequence &+ sequenceOffset &+ UInt16(truncatingIfNeeded: above), timestamp: timestamp &+ timestampOffset,
      marker: marker || markerPending)
    markerPending = false
    if Int16(bitPattern: stamp.sequence &- nextSequence) >= 0 {
      nextSequence = stamp.sequence &+ 1
      // An event's timestamp is its beginning, and does not determine the next audio's.
      if units > 0 { nextTimestamp = stamp.timestamp &+ units }
    }
    return stamp
  }

  /// Maps timestamps that differ from elapsed time by more than a second to our present timestamp.
  @inline(never) private mutating func followJump(to timestamp: UInt32, at now: Instant) {
    let step = Int64(Int32(bitPattern: timestamp &- sourceTimestamp))
    let elapsed = (now - sourceArrival).nanoseconds / Frame.duration.nanoseconds &* Int64(unitsPerFrame)
    guard (step &- elapsed).magnitude > UInt64(unitsPerFrame) &* 50 else { return }
    catchUpClock(at: now)
    timestampOffset = nextTimestamp &- timestamp
    markerPending = true
  }

  /// Withholds a packet of the source on purpose: the receiver sees no gap. A packet that arrives after a later number leaves a
  /// gap, because that number was sent.
  mutating func withhold(_ ssrc: UInt32, sequence: UInt16) {
    let step = Int(Int16(bitPattern: sequence &- highest))
    guard maps, ssrc == sourceSSRC, step > 0, step <= 3_000 else { return }
    withheld = (step < 64 ? withheld << UInt64(step) : 0) | 1
    highest = sequence
    sequenceOffset &-= 1
  }

  /// Resumes after a while without packets, while the peer held us: advances the timestamp by that time (RFC 3550 §5.1), without
  /// which later audio would be late by it.
  mutating func resume(at now: Instant) {
    guard lastSent != nil else { return }
    catchUpClock(at: now)
    maps = false
    markerPending = true
    (lastSent, lastTimestamp) = (now - Frame.duration, nextTimestamp &- unitsPerFrame)
  }

  /// Advances the timestamp by a pause longer than a frame.
  private mutating func catchUpClock(at now: Instant) {
    guard let lastSent else { return }
    let frames = (now - lastSent).nanoseconds / Frame.duration.nanoseconds
    if frames > 1 { nextTimestamp &+= UInt32(truncatingIfNeeded: frames - 1) &* unitsPerFrame }
  }

  mutating func sent(payloadBytes: Int, timestamp: UInt32, at now: Instant) {
    packets &+= 1
    bytes &+= UInt64(payloadBytes)
    lastSent = now
    lastTimestamp = timestamp
  }

  /// The timestamp at `now`, for a sender report (RFC 3550 §6.4.1).
  func timestamp(at now: Instant) -> UInt32 {
    guard let lastSent else { return nextTimestamp }
    return lastTimestamp
      &+ UInt32(truncatingIfNeeded: (now - lastSent).nanoseconds &* Int64(unitsPerFrame) / Frame.duration.nanoseconds)
  }
}
