/// A URI as ranges of the bytes it was read from: sip, sips (RFC 3261 §19.1), tel (RFC 3966), or another scheme kept whole.
public struct URI: Hashable, Sendable {
  public enum Scheme: UInt8, Hashable, Sendable { case sip, sips, tel, other }

  public let scheme: Scheme
  /// The URI as written, without angle brackets.
  public let whole: ByteRange
  /// Still escaped; for tel the number; empty if absent.
  public var user = ByteRange.empty
  public var password = ByteRange.empty
  /// With the brackets of an IPv6 address; empty for tel and other schemes.
  public var host = ByteRange.empty
  public var port: UInt16?
  /// From the first `;` on, empty if there is none.
  public var parameters = ByteRange.empty
  /// Behind the `?`, empty if there is none.
  public var headers = ByteRange.empty
  /// `lr`: the route is loose.
  public var isLooseRoute = false

  /// A URI that fills a range.
  static func parse(_ bytes: Span<UInt8>, _ range: ByteRange, _ rule: ParseError.Rule = .uri) throws(ParseError) -> URI {
    var scanner = Scanner(bytes, range)
    let uri: URI
    do throws(ParseError) { uri = try scanner.uri(bare: false) } catch { throw ParseError(rule, at: error.offset) }
    guard scanner.atEnd else { throw ParseError(rule, at: scanner.position) }
    return uri
  }

  /// Reads a URI that fills `bytes`; the ranges refer to that array.
  public init(_ bytes: [UInt8]) throws(ParseError) {
    self = try URI.parse(bytes.span, ByteRange(from: 0, to: bytes.count))
  }

  private init(_ scheme: Scheme, _ whole: ByteRange) { (self.scheme, self.whole) = (scheme, whole) }
}

extension Scanner {
  /// A URI at the position. `bare`: without angle brackets, so `;`, `?` and `,` end it (RFC 3261 §20.10).
  @_lifetime(self: copy self) mutating func uri(bare: Bool) throws(ParseError) -> URI {
    let start = position
    let name = run(.token)
    guard !name.isEmpty, skip(.colon) else { throw ParseError(.uri, at: start) }
    if equals(name, "sip") { return try sipURI(.sip, from: start, bare) }
    if equals(name, "sips") { return try sipURI(.sips, from: start, bare) }
    if equals(name, "tel") { return try telURI(from: start, bare) }
    while !atEnd, CharacterClass.opaque.contains(next), !bare || (next != .semicolon && next != .comma && next != .question) {
      position &+= 1
    }
    return URI.make(.other, ByteRange(from: start, to: position))
  }

  @_lifetime(self: copy self) private mutating func sipURI(_ scheme: URI.Scheme, from start: Int, _ bare: Bool) throws(ParseError)
    -> URI
  {
    let afterScheme = position
    var user = run(.user)
    var password = ByteRange.empty
    if skip(.colon) { password = run(.password) }
    if user.isEmpty || !skip(.at) {
      user = .empty
      password = .empty
      position = afterScheme
    }
    let (host, port) = try hostPort(blanks: false)
    var parameters = ByteRange.empty
    var headers = ByteRange.empty
    var loose = false
    if !bare {
      let parametersStart = position
      while skip(.semicolon) {
        let name = run(.uriParameter)
        guard !name.isEmpty else { throw ParseError(.uri, at: position) }
        if equals(name, "lr") { loose = true }
        if skip(.equals), run(.uriParameter).isEmpty { throw ParseError(.uri, at: position) }
      }
      parameters = ByteRange(from: parametersStart, to: position)
      if skip(.question) {
        headers = run(.uriHeaders)
        guard !headers.isEmpty else { throw ParseError(.uri, at: position) }
      }
    }
    var uri = URI.make(scheme, ByteRange(from: start, to: position))
    (uri.user, uri.password, uri.host, uri.port) = (user, password, host, port)
    uri.parameters = parameters
    uri.headers = headers
    uri.isLooseRoute = loose
    return uri
  }

  @_lifetime(self: copy self) private mutating func telURI(from start: Int, _ bare: Bool) throws(ParseError) -> URI {
    let number = position
    while !atEnd, isTelephone(next) { position &+= 1 }
    let user = ByteRange(from: number, to: position)
    guard !user.isEmpty else { throw ParseError(.uri, at: number) }
    let parametersStart = position
    if !bare {
      while skip(.semicolon) {
        guard !run(.uriParameter).isEmpty else { throw ParseError(.uri, at: position) }
        if skip(.equals), run(.uriParameter).isEmpty { throw ParseError(.uri, at: position) }
      }
    }
    var uri = URI.make(.tel, ByteRange(from: start, to: position))
    (uri.user, uri.parameters) = (user, ByteRange(from: parametersStart, to: position))
    return uri
  }

  /// Digits and visual separators of RFC 3966, `*`, `#`, and hex digits of local numbers.
  private func isTelephone(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "F"), UInt8(ascii: "a")...UInt8(ascii: "f"),
      UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "("), UInt8(ascii: ")"), UInt8(ascii: "*"),
      UInt8(ascii: "#"):
      true
    default: false
    }
  }

  /// `host [":" port]`; around the colon blanks are legal in Via.
  @_lifetime(self: copy self) mutating func hostPort(blanks: Bool) throws(ParseError) -> (ByteRange, UInt16?) {
    let start = position
    if skip(91) {  // [
      guard !run(.ipv6).isEmpty else { throw ParseError(.host, at: start) }
      try expect(93, .host)
    } else {
      guard !run(.host).isEmpty else { throw ParseError(.host, at: start) }
    }
    let host = ByteRange(from: start, to: position)
    let mark = position
    if blanks { skipBlanks() }
    guard skip(.colon) else {
      position = mark
      return (host, nil)
    }
    if blanks { skipBlanks() }
    let port = try number(upTo: 65_535, .host)
    return (host, UInt16(truncatingIfNeeded: port))
  }
}

extension URI {
  fileprivate static func make(_ scheme: Scheme, _ whole: ByteRange) -> URI { URI(scheme, whole) }

  /// The value of a URI parameter (RFC 3261 §19.1.1), empty for one without a value, nil if absent. `name` in lower case.
  public func parameter(_ name: StaticString, in bytes: [UInt8]) -> ByteRange? {
    var scanner = Scanner(bytes.span, parameters)
    while scanner.skip(.semicolon) {
      let found = scanner.run(.uriParameter)
      let value = scanner.skip(.equals) ? scanner.run(.uriParameter) : ByteRange.empty
      if scanner.equals(found, name) { return value }
    }
    return nil
  }
}
