extension Message {
  /// Route values in order (RFC 3261 §20.34).
  public var routes: [NameAddress] { get throws(ParseError) { try addresses(.route) } }
}
