extension Message {
  /// P-Asserted-Identity values (RFC 3325 §9.1): one SIP URI, one tel URI, or both.
  public var assertedIdentities: [NameAddress] { get throws(ParseError) { try addresses(.pAssertedIdentity) } }
}
