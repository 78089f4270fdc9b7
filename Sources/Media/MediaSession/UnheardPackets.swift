import Bytes
import RTP

/// Packets of a trunk that were received and not played, for log and record.
struct UnheardPackets {
  /// Of payload types that were not agreed on, and the last of these types.
  private(set) var unknown: UInt64 = 0
  private(set) var payloadType: UInt8?
  /// Of these, packets of a stream instead of the one that is heard: so many arrived with nothing between them.
  private(set) var streamed: UInt64 = 0
  /// Since something was heard.
  var alone = 0
  /// Of further sources beside the one that was heard.
  var otherSources: UInt64 = 0
  /// The log has not yet said that this carrier agreed on events and sends tones.
  var mayNameTones = true
  private var run = 0
  private var last = Instant.zero
  private var isReported = false
  private var tones = 0

  /// Counts a packet of an unknown type; true once, when so many came in a row that it is a stream, not keep-alives.
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

  /// A digit came as a tone from a carrier that agreed on telephone-event; true when the operator is to hear of it.
  mutating func toneCame() -> Bool {
    tones &+= 1
    return tones >= Limits.unannouncedTones
  }
}
