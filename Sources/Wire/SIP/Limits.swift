/// The named limits of this module: every bound on a message, list or table.
public enum Limits {
  /// Longest message, head and body, that is parsed; also the largest that fits a UDP datagram.
  public static let messageBytes = 65_535
  /// Longest head (start line and header fields); a stream whose head is longer is broken.
  public static let headBytes = 32_768
  /// Most header fields in one message.
  public static let fields = 256
  /// Longest single field value after unfolding.
  public static let fieldBytes = 8_192
  /// Most values that `Message.values(of:)` returns for one header, over all its fields.
  public static let listValues = 128
  /// Most parameters of one value.
  public static let parameters = 64
  /// Identity fields of a message that are read, and the bytes of the longest: a PASSporT with its certificate's URI has
  /// about 700.
  public static let identities = 4
  public static let identityBytes = 4_096
  /// Most body parts that are read from a multipart body.
  public static let bodyParts = 16
  /// CSeq numbers are below 2^31 (RFC 3261 §8.1.1.5).
  public static let sequenceNumber: UInt32 = 0x7fff_ffff
}
