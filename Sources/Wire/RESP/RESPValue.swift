/// What a server answered (RESP2), or told on a channel.
public enum RESPValue: Hashable, Sendable {
  /// `+OK`
  case status(String)
  /// The server said no; at most 128 bytes of what it said.
  case error(String)
  case integer(Int64)
  case bytes([UInt8])
  case array([RESPValue])
  case null

  /// The elements of an array; nil for anything else.
  public var elements: [RESPValue]? { if case .array(let elements) = self { elements } else { nil } }
  /// What a bulk string holds; nil for anything else.
  public var content: [UInt8]? { if case .bytes(let bytes) = self { bytes } else { nil } }
  /// A bulk string or a status as text; what is not UTF-8 is replaced.
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

/// Why a stream is no RESP, or more than we take. The stream ends there.
public enum RESPFailure: Error, Hashable, Sendable, CustomStringConvertible {
  /// In hiredis' words.
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
