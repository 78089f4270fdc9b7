import TrunklineBytes
import TrunklineRTP

/// Received trunk packets that were not played, for log and record.
struct UnheardPackets {
  /// Packets of payload types that were not agreed on, and the last of these types.
  private(set) var unknown: UInt64 = 0
  private(set) var payloadType: UInt8?
  /// Those of a stream that replaced the audio: at least `Limits.unknownPackets` without audio between them.
  private(set) var streamed: UInt64 = 0
  /// Packets of unknown types since the last audio.
  var alone = 0
  /// Packets of other sources than the one that is played.
  var otherSources: UInt64 = 0
  /// The log has not yet reported that this carrier agreed on events and sends tones.
  var mayNameTones = true
  private var run = 0
  private var last = Instant.zero
  private var isReported = false
  private var tones = 0

  /// Counts a packet of an unknown type; true once, when enough came in a row to be a stream, not keep-alives.
  mutating func unknownCame(_ payloadType: UInt8, at now: Instant) -> Bool {
    unknown &+= 1
    run = self.payloadType == payloadType && now - last < .seconds(1) ? run &+ 1 : 1
    (self.payloadType, last) = (payloadType, now)
    alone &+= 1
    if alone >= Limits.unknownPackets { streamed &+= alone == Limits.unknownPackets ? UInt64(alone) : 1 }
    guard run >= Limits.unknownPackets, !isReported else { return false }
    isReported = true
    return true
  }

  /// Counts a digit that came as a tone from a carrier that agreed on telephone-event; true when it should be reported to the
  /// operator.
  mutating func toneCame() -> Bool {
    tones &+= 1
    return tones >= Limits.unannouncedTones
  }
}
