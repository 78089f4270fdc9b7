extension Message {
  /// Record-Route values, the topmost first (RFC 3261 §20.30).
  public var recordRoutes: [NameAddress] { get throws(ParseError) { try addresses(.recordRoute) } }
}
