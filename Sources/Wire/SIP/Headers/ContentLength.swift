/// Content-Length (RFC 3261 §20.14). Two fields are a fault even if they agree: one of two readers would be wrong on a stream.
enum ContentLength {
  static func read(_ bytes: Span<UInt8>, _ fields: [HeaderField]) throws(ParseError) -> Int? {
    var length: Int?
    for field in fields where field.name == .contentLength {
      guard length == nil else { throw ParseError(.contentLength, at: field.nameRange.lower) }
      var scanner = Scanner(bytes, field.value)
      let value = try scanner.number(upTo: UInt32(Int32.max), .contentLength)
      guard scanner.atEnd else { throw ParseError(.contentLength, at: scanner.position) }
      length = Int(value)
    }
    return length
  }
}
