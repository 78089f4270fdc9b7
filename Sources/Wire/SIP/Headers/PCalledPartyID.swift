extension Message {
  /// P-Called-Party-ID (RFC 7315 §4.2): the target of the request before a proxy replaced it by a registered contact; nil if
  /// absent.
  public var calledParty: NameAddress? { get throws(ParseError) { try addresses(.pCalledPartyID).first } }
}
