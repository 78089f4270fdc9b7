import Bytes
import RTP

/// What a trunk sent and nobody heard, so that log and record name it.
struct UnheardPackets {
  /// Of payload types that were not agreed on, and the last of these types.
  private(set) var unknown: UInt64 = 0
  private(set) var payloadType: UInt8?
  /// Of further sources beside the one that was heard.
  var otherSources: UInt64 = 0
  /// Tones may still be told of a carrier that agreed on events.
  var mayNameTones = true
  private var run = 0
  private var last = Instant.zero
  private var isTold = false
  private var tones = 0

  /// Counts a packet of an unknown type; true once, when so many came in a row that it is a stream, not keep-alives.
  mutating func unknownCame(_ payloadType: UInt8, at now: Instant) -> Bool {
    unknown &+= 1
    run = self.payloadType == payloadType && now - last < .seconds(1) ? run &+ 1 : 1
    (self.payloadType, last) = (payloadType, now)
    guard run >= Limits.unknownPackets, !isTold else { return false }
    isTold = true
    return true
  }

  /// A digit came as a tone from a carrier that agreed on telephone-event; true when the operator is to hear of it.
  mutating func toneCame() -> Bool {
    tones &+= 1
    return tones >= Limits.unannouncedTones
  }
}
