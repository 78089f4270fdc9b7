/// Max-Forwards (RFC 3261 §20.22): 0…255.
enum MaxForwards {
  static func parse(_ bytes: Span<UInt8>, _ range: ByteRange) throws(ParseError) -> Int {
    var scanner = Scanner(bytes, range)
    let value = try scanner.number(upTo: 255)
    try scanner.finish()
    return Int(value)
  }
}

extension Message {
  public var maxForwards: Int? {
    get throws(ParseError) {
      try field(.maxForwards).map { field throws(ParseError) in try MaxForwards.parse(bytes.span, field.value) }
    }
  }
}
