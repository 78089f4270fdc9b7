/// The named limits of this module; every bound on a queue, table or message stands here.
public enum Limits {
  /// Traces at a time.
  public static let traces = 4
  /// Messages and bytes of one trace that wait for its reader; further ones are dropped and counted.
  static let waitingMessages = 8_192
  static let waitingBytes = 8 << 20
  /// The longest trace, and the largest file.
  public static let longest = Duration.seconds(24 * 3_600)
  public static let largestBytes = 4 << 30
  /// A trace whose reader has not asked for so long is over.
  static let readerSilence = Duration.seconds(15)
  /// Calls of one trace whose ids are known, oldest forgotten first.
  static let calls = 8_192
  /// Bytes of SIP in one packet of the file: a TCP message that is longer goes into several.
  static let segmentBytes = 32_768
  /// Messages that wait for the capture server's thread.
  static let hepQueue = 8_192
  /// Longest Call-ID that is looked at.
  static let callIDBytes = 256
}
