extension Message {
  /// Diversion values (RFC 5806), the latest first.
  public var diversions: [NameAddress] { get throws(ParseError) { try addresses(.diversion) } }
}
