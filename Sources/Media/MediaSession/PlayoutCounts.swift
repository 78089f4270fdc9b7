import AudioCodecs
import JitterBuffer

/// Every decision of a received stream's play-out, counted from the session's beginning: what `StreamStatistics` leaves out.
/// Milliseconds are of audio at the listener's end. Nothing is counted while the stream is relayed.
public struct PlayoutCounts: Sendable, Equatable {
  /// Packets handed to the decoder, places played without theirs, and those of them left out for a shorter delay.
  public var fetched: UInt64 = 0
  public var missing: UInt64 = 0
  public var leftOut: UInt64 = 0
  /// Times at which nothing was there to be played.
  public var waits: UInt64 = 0
  /// Ticks at which audio was to be played faster or slower, and how much time that took out and put in.
  public var shrinks: UInt64 = 0
  public var grows: UInt64 = 0
  public var shortenedMilliseconds: UInt64 = 0
  public var lengthenedMilliseconds: UInt64 = 0
  /// Comfort noise while the talker paused.
  public var noiseMilliseconds: UInt64 = 0
  /// Packets far from the stream's numbers, new beginnings, packets dropped because too many waited, packets larger than a datagram.
  public var outOfRange: UInt64 = 0
  public var resynchronised: UInt64 = 0
  public var overflowed: UInt64 = 0
  public var refused: UInt64 = 0
  /// Payloads that were no audio of the codec.
  public var damaged: UInt64 = 0

  public init() {}

  init(_ counts: AudioReceiverStatistics) {
    let packets = counts.packets
    (fetched, missing, leftOut, waits) = (packets.fetched, packets.missing, packets.leftOut, packets.waits)
    (shrinks, grows) = (packets.shrinks, packets.grows)
    (shortenedMilliseconds, lengthenedMilliseconds) = (counts.shrunkSamples / 8, counts.grownSamples / 8)
    noiseMilliseconds = counts.noiseSamples / 8
    (outOfRange, resynchronised) = (packets.outOfRange, packets.resynchronised)
    (overflowed, refused) = (packets.overflowed, packets.refused)
    damaged = counts.damaged
  }

  /// All counts under the names that metrics give them.
  public var named: [(name: String, count: UInt64)] {
    [
      ("fetched", fetched), ("missing", missing), ("left_out", leftOut), ("waits", waits), ("shrinks", shrinks), ("grows", grows),
      ("shortened_ms", shortenedMilliseconds), ("lengthened_ms", lengthenedMilliseconds), ("noise_ms", noiseMilliseconds),
      ("out_of_range", outOfRange), ("resynchronised", resynchronised), ("overflowed", overflowed), ("refused", refused),
      ("damaged", damaged),
    ]
  }
}
