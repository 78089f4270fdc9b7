/// One header field of a message.
public struct HeaderField: Hashable, Sendable {
  public let name: HeaderName
  /// The name as it was written, for `HeaderName.other` and for writing back.
  public let nameRange: ByteRange
  /// The value without surrounding blanks.
  public let value: ByteRange
}

/// The first line of a message.
public enum StartLine: Hashable, Sendable {
  case request(Method, name: ByteRange, uri: ByteRange)
  case response(code: Int, reason: ByteRange)
}
