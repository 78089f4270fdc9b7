/// The named limits of this module; every bound on a queue, table or message stands here.
public enum Limits {
  /// Every codec's audio enters and leaves at this rate: telephone band.
  public static let sampleRateHz = 8000
  /// One media tick: 20 ms at 8 kHz.
  public static let samplesPerTick = 160
  /// The longest Opus packet (RFC 6716 §2.1.4) at 8 kHz: 120 ms.
  public static let samplesPerPacket = 960
  /// An Opus frame is at most 1275 octets (RFC 6716 §3.2.1).
  public static let opusFrameLength = 1275
  /// Digits waiting to be played to one leg (docs/protocol.md: 64 per request).
  public static let queuedDigits = 128
  /// RFC 4733 §2.5.1.4: the end of an event is sent three times.
  static let endPackets = 3
  /// Lost audio is extrapolated this long, fading, then there is noise: 120 ms (60 in G.711 Appendix I).
  static let concealedSamples = 960
  /// What SILK loses of the level, made up: 0.12 dB, in 1/2¹⁴ before our encoder, 0.25, in 1/256 dB, behind the decoder: apps send with
  /// FEC, which loses more (docs/design/codecs-and-concealment.md).
  static let opusMakeUp: Int32 = 16_612
  static let opusGain: Int32 = 64
}
