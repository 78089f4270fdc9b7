extension Message {
  /// From (RFC 3261 §20.20), nil if absent.
  public var from: NameAddress? {
    get throws(ParseError) { try field(.from).map { field throws(ParseError) in try NameAddress.only(bytes.span, field.value) } }
  }
}
