extension Message {
  /// The option tags of Require, Supported, Unsupported or Proxy-Require (RFC 3261 §19.2), or the methods of Allow, as written.
  public func tokens(_ name: HeaderName) throws(ParseError) -> [String] {
    var out: [String] = []
    for value in try values(of: name) {
      var scanner = Scanner(bytes.span, value)
      out.append(text(try scanner.token()))
      try scanner.finish()
    }
    return out
  }
}
