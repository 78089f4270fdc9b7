import TrunklineBytes
import TrunklineRTP

/// Counts the trunk's packets by what became of them, for log and record.
///
/// | input | effect |
/// |---|---|
/// | `audioReceived` | played; ends a run of packets of unknown types |
/// | `audioRefused`: its decoder could not use it | not played after all |
/// | `unknownCame` | counted; true once, with the first run of `Limits.unknownPackets` of a type within a second of each other |
/// | `otherSourceCame` | counted |
/// | `toneCame` | true from the `Limits.unannouncedTones`-th on |
/// | `eventCame`, or tones were reported | `mayNameTones` is false for good |
struct UnheardPackets {
  /// Packets of payload types that were not agreed on, and the last of these types.
  private(set) var unknown: UInt64 = 0
  private(set) var payloadType: UInt8?
  /// Those of a stream that replaced the audio: at least `Limits.unknownPackets` without audio between them.
  private(set) var streamed: UInt64 = 0
  /// Packets of unknown types since the last audio.
  private var alone = 0
  /// Audio packets that were played, relayed or kept.
  private(set) var played: UInt64 = 0
  /// Packets of other sources than the one that is played.
  private(set) var otherSources: UInt64 = 0
  /// The log has not yet reported that this carrier agreed on events and sends tones.
  private(set) var mayNameTones = true
  private var run = 0
  private var last = Instant.zero
  private var isReported = false
  private var tones = 0

  /// HOT
  @inline(__always) mutating func audioReceived() {
    alone = 0
    played &+= 1
  }
  mutating func audioRefused() { played &-= 1 }
  mutating func otherSourceCame() { otherSources &+= 1 }
  mutating func eventCame() { mayNameTones = false }

  /// Counts a packet of an unknown type; true once, when enough came in a row to be a stream, not keep-alives.
  mutating func unknownCame(_ payloadType: UInt8, at now: Instant) -> Bool {
    unknown &+= 1
    run = self.payloadType == payloadType && now - last < .seconds(1) ? run &+ 1 : 1
    self.payloadType = payloadType
    last = now
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
