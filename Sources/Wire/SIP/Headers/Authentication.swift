/// A challenge (WWW-Authenticate, Proxy-Authenticate) or credentials (Authorization, Proxy-Authorization): a scheme and its
/// parameters (RFC 3261 §20.44, RFC 8760).
public struct AuthenticationValue: Hashable, Sendable {
  /// `Digest`, as written.
  public var scheme: String
  /// Names in lower case; values without quotes and backslashes.
  public var parameters: [String: String]

  public var isDigest: Bool { scheme.lowercased() == "digest" }
  public subscript(name: String) -> String? { parameters[name] }

  /// Reads one value and stops at the end or behind the comma before the next scheme.
  static func parse(_ scanner: inout Scanner, _ array: [UInt8]) throws(ParseError) -> AuthenticationValue {
    scanner.skipBlanks()
    var value = AuthenticationValue(scheme: array.text(try scanner.token()), parameters: [:])
    while true {
      scanner.skipBlanks()
      if scanner.atEnd { return value }
      let mark = scanner.position
      let name = try scanner.token(.parameter)
      scanner.skipBlanks()
      guard scanner.skip(.equals) else {
        // A token without `=` begins the next challenge of a list.
        guard !value.parameters.isEmpty else { throw ParseError(.parameter, at: mark) }
        scanner.position = mark
        return value
      }
      scanner.skipBlanks()
      guard value.parameters.count < Limits.parameters else { throw ParseError(.listTooLong, at: mark) }
      let key = array.text(name).lowercased()
      if scanner.next == .quote {
        value.parameters[key] = unescapeQuoted(array.slice(try scanner.quoted()))
      } else {
        let text = scanner.run(.opaque)
        value.parameters[key] = array.text(text.trimmingComma(in: array, &scanner))
      }
      scanner.skipBlanks()
      if !scanner.atEnd { try scanner.expect(.comma, .parameter) }
    }
  }
}

extension ByteRange {
  /// An unquoted value ends at its first comma: gives the part before it and moves the scanner there.
  fileprivate func trimmingComma(in array: [UInt8], _ scanner: inout Scanner) -> ByteRange {
    guard let comma = array.slice(self).firstIndex(of: .comma) else { return self }
    scanner.position = comma
    return ByteRange(from: lower, to: comma)
  }
}

extension Message {
  /// All values of an authentication header.
  public func authentication(_ name: HeaderName) throws(ParseError) -> [AuthenticationValue] {
    var out: [AuthenticationValue] = []
    for field in fields where field.name == name {
      var scanner = Scanner(bytes.span, field.value)
      repeat {
        guard out.count < Limits.listValues else { throw ParseError(.listTooLong, at: scanner.position) }
        out.append(try AuthenticationValue.parse(&scanner, bytes))
      } while !scanner.atEnd
    }
    return out
  }
}
