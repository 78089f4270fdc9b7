extension Message {
  /// P-Called-Party-ID (RFC 7315 §4.2): whom the request was for before a proxy put a registered contact in its place; nil without one.
  public var calledParty: NameAddress? { get throws(ParseError) { try addresses(.pCalledPartyID).first } }
}
