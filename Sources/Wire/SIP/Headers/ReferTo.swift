extension Message {
  /// Refer-To (RFC 3515 §2.1): exactly one value; nil if there is none or there are several.
  public var referTo: NameAddress? {
    get throws(ParseError) {
      let all = try addresses(.referTo)
      return all.count == 1 ? all.first : nil
    }
  }

  /// The value of a header inside a URI (`?Replaces=…`), unescaped; `name` in lower case.
  public func uriHeader(_ name: String, of uri: URI) -> String? {
    for pair in bytes.slice(uri.headers).split(separator: UInt8(ascii: "&")) {
      guard let equals = pair.firstIndex(of: .equals) else { continue }
      let key = String(decoding: percentDecoded(pair[..<equals]), as: UTF8.self)
      if key.lowercased() == name { return String(decoding: percentDecoded(pair[pair.index(after: equals)...]), as: UTF8.self) }
    }
    return nil
  }
}
