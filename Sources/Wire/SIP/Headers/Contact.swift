extension Message {
  /// All Contact values (RFC 3261 §20.10); empty if there are none or the value is `*`.
  public var contacts: [NameAddress] {
    get throws(ParseError) {
      if let field = field(.contact), field.value.count == 1, bytes.slice(field.value).first == UInt8(ascii: "*") { return [] }
      return try addresses(.contact)
    }
  }
}
