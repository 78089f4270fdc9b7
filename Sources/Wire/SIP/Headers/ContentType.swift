/// Content-Type (RFC 3261 §20.15) of a message or a body part.
public struct ContentType: Hashable, Sendable {
  /// `type/subtype` in lower case.
  public var mediaType: String
  /// The `boundary` of a multipart type, quotes removed.
  public var boundary: String?

  static func parse(_ bytes: Span<UInt8>, _ range: ByteRange, _ array: [UInt8]) throws(ParseError) -> ContentType {
    var scanner = Scanner(bytes, range)
    let type = try scanner.token()
    scanner.skipBlanks()
    try scanner.expect(.slash, .token)
    scanner.skipBlanks()
    let subtype = try scanner.token()
    var value = ContentType(mediaType: (array.text(type) + "/" + array.text(subtype)).lowercased())
    while let parameter = try scanner.parameter() {
      if scanner.equals(parameter.name, "boundary"), let text = parameter.value { value.boundary = array.text(text) }
    }
    try scanner.finish()
    return value
  }
}

extension Message {
  public var contentType: ContentType? {
    get throws(ParseError) {
      try field(.contentType).map { field throws(ParseError) in try ContentType.parse(bytes.span, field.value, bytes) }
    }
  }
}
