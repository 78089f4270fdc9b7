extension Message {
  /// History-Info values (RFC 7044 §5), oldest first: the earlier targets of the call.
  public var history: [NameAddress] { get throws(ParseError) { try addresses(.historyInfo) } }
}
