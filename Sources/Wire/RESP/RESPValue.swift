/// A server's answer (RESP2), or its message on a channel.
public enum RESPValue: Hashable, Sendable {
  /// `+OK`
  case status(String)
  /// The server refused; at most 128 bytes of its text.
  case error(String)
  case integer(Int64)
  case bytes([UInt8])
  case array([RESPValue])
  case null

  /// The elements of an array; nil for anything else.
  public var elements: [RESPValue]? { if case .array(let elements) = self { elements } else { nil } }
  /// The content of a bulk string; nil for anything else.
  public var content: [UInt8]? { if case .bytes(let bytes) = self { bytes } else { nil } }
  /// A bulk string or a status as text; invalid UTF-8 is replaced.
  public var text: String? {
    switch self {
    case .bytes(let bytes): String(decoding: bytes, as: UTF8.self)
    case .status(let text): text
    default: nil
    }
  }
  public var number: Int64? { if case .integer(let number) = self { number } else { nil } }
  public var isNull: Bool { self == .null }
}

/// Why a stream is not RESP, or exceeds our limits. The stream ends there.
public enum RESPFailure: Error, Hashable, Sendable, CustomStringConvertible {
  /// With hiredis' text.
  case malformed(String)
  case tooDeep(limit: Int)
  case tooManyElements(limit: Int)
  case tooLong(limit: Int)

  public var description: String {
    switch self {
    case .malformed(let text): text
    case .tooDeep(let limit): "arrays deeper than \(limit)"
    case .tooManyElements(let limit): "more than \(limit) values in one reply"
    case .tooLong(let limit): "a reply of more than \(limit) bytes"
    }
  }
}
