/// The named limits of this module: every bound on a queue, table or message.
public enum Limits {
  /// Traces at a time.
  public static let traces = 4
  /// Messages and bytes of one trace that wait for its reader; further ones are dropped and counted.
  static let waitingMessages = 8_192
  static let waitingBytes = 8 << 20
  /// The longest trace, and the largest file.
  public static let longest = Duration.seconds(24 * 3_600)
  public static let largestBytes = 4 << 30
  /// A trace whose reader has sent no request for this long ends.
  static let readerSilence = Duration.seconds(15)
  /// Calls of one trace whose ids are known; the oldest is forgotten first.
  static let calls = 8_192
  /// Bytes of SIP in one packet of the file: a TCP message that is longer goes into several.
  static let segmentBytes = 32_768
  /// Messages that wait for the capture server's thread.
  static let hepQueue = 8_192
  /// Longest Call-ID that is read.
  static let callIDBytes = 256
}
