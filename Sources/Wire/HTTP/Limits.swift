/// The named limits of this module.
public enum Limits {
  /// Request line and fields of one request; beyond it the answer is 431.
  public static let headBytes = 16_384
  /// Fields of one request.
  public static let fields = 100
  /// Parts of a target: of its path, and of its query.
  public static let segments = 32
  public static let pairs = 32
  /// Empty lines before a request line (RFC 9112 §2.2 lets a server skip at least one), in octets.
  public static let leadingBytes = 4
  /// A line with a chunk's size and its extensions, and all trailer fields together (RFC 9112 §7.1).
  public static let chunkLineBytes = 256
  public static let trailerBytes = 2_048
}
