/// The named limits of this module; every bound on a queue, table or message stands here.
public enum Limits {
  /// The longest packet, as Opus's are (RFC 6716 §2.1.4).
  public static let packetMilliseconds = 120
  /// An Opus frame is at most 1275 octets (RFC 6716 §3.2.1).
  public static let opusFrameLength = 1275
  /// Digits waiting to be played to one leg (docs/reference/protocol.md: 64 per request).
  public static let queuedDigits = 128
  /// RFC 4733 §2.5.1.4: the end of an event is sent three times.
  static let endPackets = 3
  /// Lost audio is extrapolated this long, fading, then there is noise (60 ms in G.711 Appendix I).
  static let concealedMilliseconds = 120
  /// What SILK loses of the level, made up: 0.12 dB, in 1/2¹⁴ before our encoder, 0.25, in 1/256 dB, behind the decoder: apps send with
  /// FEC, which loses more (docs/design/codecs-and-concealment.md).
  static let opusMakeUp: Int32 = 16_612
  static let opusGain: Int32 = 64
}
