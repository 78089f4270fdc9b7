/// The named limits of this module: every bound on a queue, table or message.
public enum Limits {
  /// The longest packet, as Opus's are (RFC 6716 §2.1.4).
  public static let packetMilliseconds = 120
  /// An Opus frame is at most 1275 octets (RFC 6716 §3.2.1).
  public static let opusFrameLength = 1275
  /// Digits waiting to be played to one leg (docs/reference/protocol.md: 64 per request).
  public static let queuedDigits = 128
  /// RFC 4733 §2.5.1.4: the end of an event is sent three times.
  static let endPackets = 3
  /// Lost audio is extrapolated this long, fading; then noise follows (60 ms in G.711 Appendix I).
  static let concealedMilliseconds = 120
  /// Gains that compensate the level that SILK loses: 0.12 dB before our encoder, in 1/2¹⁴; 0.25 dB after the decoder, in 1/256
  /// dB: apps send with FEC, which loses more (docs/design/codecs-and-concealment.md).
  static let opusMakeUp: Int32 = 16_612
  static let opusGain: Int32 = 64
}
