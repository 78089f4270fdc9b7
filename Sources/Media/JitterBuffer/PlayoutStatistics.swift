/// Counts of one received stream's play-out, from its first packet on; they only grow. The buffer counts packets, the owner of
/// its decoder counts audio. Samples are at 8 kHz; names are those of WebRTC's getStats() where it has them.
public struct PlayoutStatistics: Sendable, Equatable {
  // Packets, counted by `PlayoutBuffer`.

  public var inserted: UInt64 = 0
  /// Arrived after their position was played or skipped.
  public var late: UInt64 = 0
  public var duplicate: UInt64 = 0
  /// Not stored: larger than a datagram, or no room for large payloads.
  public var refused: UInt64 = 0
  /// Number far from the stream's, seen once; a second in order resynchronises.
  public var outOfRange: UInt64 = 0
  /// Dropped, oldest first, because the buffer was full or too far behind.
  public var overflowed: UInt64 = 0
  public var resynchronised: UInt64 = 0
  public var fetched: UInt64 = 0
  /// Positions played without their packet: repaired, made up or skipped.
  public var missing: UInt64 = 0
  /// Missing packets that were skipped but for a join, because the delay was longer than wanted.
  public var leftOut: UInt64 = 0
  /// Fetches without audio: a late network, a pause of the talker, or a missing packet that may only have been overtaken.
  public var waits: UInt64 = 0
  /// Ticks at which audio was to be shortened, lengthened.
  public var shrinks: UInt64 = 0
  public var grows: UInt64 = 0

  // Audio, counted by the owner of the decoder.

  /// In ticks that consist of received audio alone.
  public var playedSamples: UInt64 = 0
  /// Decoded from the copy in the next packet (Opus FEC).
  public var repairedSamples: UInt64 = 0
  /// Made up because audio was lost or late; not while the talker paused.
  public var concealedSamples: UInt64 = 0
  /// Removed and inserted by time-scale modification.
  public var removedSamplesForAcceleration: UInt64 = 0
  public var insertedSamplesForDeceleration: UInt64 = 0
  /// Comfort noise while the talker paused.
  public var noiseSamples: UInt64 = 0
  /// Payloads that the codec could not decode.
  public var damaged: UInt64 = 0
  public var ticks: UInt64 = 0
  /// Sum over ticks of the delay beyond the fastest packet.
  public var delaySumMilliseconds: Double = 0

  public init() {}

  /// Mean over all ticks.
  public var bufferDelayMilliseconds: Double { ticks == 0 ? 0 : delaySumMilliseconds / Double(ticks) }
  public var concealedMilliseconds: UInt64 { concealedSamples / 8 }
  public var repairedMilliseconds: UInt64 { repairedSamples / 8 }
}
