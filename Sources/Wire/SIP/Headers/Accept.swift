extension Message {
  /// Whether a response with this media type is welcome (RFC 3261 §20.1). Without an Accept field everything we send is; an empty
  /// one accepts nothing. `mediaType` in lower case, as `application/sdp`.
  public func accepts(_ mediaType: String) throws(ParseError) -> Bool {
    guard field(.accept) != nil else { return true }
    let kind = String(mediaType.prefix { $0 != "/" })
    for value in try values(of: .accept) {
      var scanner = Scanner(bytes.span, value)
      let type = text(try scanner.token()).lowercased()
      scanner.skipBlanks()
      try scanner.expect(.slash, .token)
      scanner.skipBlanks()
      let subtype = text(try scanner.token()).lowercased()
      if type == "*" || (type == kind && subtype == "*") || type + "/" + subtype == mediaType { return true }
    }
    return false
  }
}
