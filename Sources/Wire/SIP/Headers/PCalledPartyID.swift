extension Message {
  /// P-Called-Party-ID (RFC 7315 §4.2): the called number, before a proxy replaced it by a registered contact; nil without one.
  public var calledParty: NameAddress? { get throws(ParseError) { try addresses(.pCalledPartyID).first } }
}
