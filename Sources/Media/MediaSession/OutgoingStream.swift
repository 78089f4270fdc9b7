import Bytes

/// SSRC, sequence number and timestamp of one stream we send: the only place they are chosen, so that a leg can switch between
/// relay,
/// transcoding, digits and silence without a jump. Sequence numbers are continuous over what we send
/// ourselves;
/// in relay they keep the gaps of the source, so that the receiver sees its loss.
struct OutgoingStream {
  let ssrc: UInt32
  /// Timestamp units in 20 ms: 160 at 8 kHz, 960 at 48 kHz.
  var unitsPerFrame: UInt32
  private(set) var nextSequence: UInt16
  /// The timestamp of the next frame.
  private(set) var nextTimestamp: UInt32
  /// Nothing was sent yet, or silence was not sent: the next packet starts a talkspurt (RFC 3551 §4.1).
  var markerPending = true
  private(set) var packets: UInt64 = 0
  private(set) var bytes: UInt64 = 0
  private(set) var lastSent: Instant?
  private(set) var lastTimestamp: UInt32 = 0

  // The relay's mapping from the source's numbers to ours; invalid until its first packet.
  private var maps = false
  private var sourceSSRC: UInt32 = 0
  private var sequenceOffset: UInt16 = 0
  private var timestampOffset: UInt32 = 0

  struct Stamp {
    var sequence: UInt16
    var timestamp: UInt32
    var marker: Bool
  }

  init(ssrc: UInt32, sequence: UInt16, timestamp: UInt32, clockRateHz: UInt32) {
    (self.ssrc, nextSequence, nextTimestamp) = (ssrc, sequence, timestamp)
    unitsPerFrame = clockRateHz / 50
  }

  /// The numbers of a packet we made ourselves, `units` long (0 for a telephone-event, which has its own timestamp). A packet
  /// that only describes a pause does not start a talkspurt.
  mutating func stamp(units: UInt32, startsTalk: Bool = true, at now: Instant) -> Stamp {
    maps = false
    let stamp = Stamp(sequence: nextSequence, timestamp: nextTimestamp, marker: markerPending && startsTalk)
    nextSequence &+= 1
    nextTimestamp &+= units
    if units > 0, startsTalk { markerPending = false }
    return stamp
  }

  /// Time passes without a packet: the timestamp runs on, the sequence does not (RFC 3550 §5.1).
  mutating func skip(units: UInt32) {
    maps = false
    nextTimestamp &+= units
    markerPending = true
  }

  /// The numbers of a forwarded packet of the source. A new source, a jump of it, or what we sent in between starts a new mapping
  /// right behind our last packet. HOT
  mutating func forward(_ ssrc: UInt32, sequence: UInt16, timestamp: UInt32, marker: Bool, units: UInt32, at now: Instant)
    -> Stamp
  {
    if !maps || ssrc != sourceSSRC || abs(Int(Int16(bitPattern: sequence &+ sequenceOffset &- nextSequence))) > 3_000 {
      catchUpClock(at: now)
      (maps, sourceSSRC) = (true, ssrc)
      sequenceOffset = nextSequence &- sequence
      timestampOffset = nextTimestamp &- timestamp
      markerPending = true
    }
    let stamp = Stamp(
      sequence: sequence &+ sequenceOffset, timestamp: timestamp &+ timestampOffset, marker: marker || markerPending)
    markerPending = false
    if Int16(bitPattern: stamp.sequence &- nextSequence) >= 0 {
      nextSequence = stamp.sequence &+ 1
      nextTimestamp = stamp.timestamp &+ units
    }
    return stamp
  }

  /// A packet of the source was not forwarded on purpose: its number is not a gap for the receiver.
  mutating func withhold() { sequenceOffset &-= 1 }

  /// After a pause longer than a frame the timestamp has to show it.
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

  /// The timestamp that belongs to `now`, for a sender report (RFC 3550 §6.4.1).
  func timestamp(at now: Instant) -> UInt32 {
    guard let lastSent else { return nextTimestamp }
    return lastTimestamp
      &+ UInt32(truncatingIfNeeded: (now - lastSent).nanoseconds &* Int64(unitsPerFrame) / Frame.duration.nanoseconds)
  }
}
