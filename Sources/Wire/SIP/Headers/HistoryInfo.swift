extension Message {
  /// History-Info values (RFC 7044 §5), oldest first: whom the call was for before.
  public var history: [NameAddress] { get throws(ParseError) { try addresses(.historyInfo) } }
}
