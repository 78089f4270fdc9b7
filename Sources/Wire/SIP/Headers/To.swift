extension Message {
  /// To (RFC 3261 §20.39), nil if absent.
  public var to: NameAddress? {
    get throws(ParseError) { try field(.to).map { field throws(ParseError) in try NameAddress.only(bytes.span, field.value) } }
  }
}
