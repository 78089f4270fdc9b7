extension Message {
  /// Service-Route values (RFC 3608 §5), the next hop first.
  public var serviceRoutes: [NameAddress] { get throws(ParseError) { try addresses(.serviceRoute) } }
}
