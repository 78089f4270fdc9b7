/// `[display name] <URI> ;parameters`, the value of From, To, Contact, Route, Record-Route, P-Asserted-Identity and Diversion.
public struct NameAddress: Hashable, Sendable {
  /// Without quotes, still escaped; nil if absent.
  public var displayName: ByteRange?
  public var uri: URI
  /// The `tag` of From and To.
  public var tag: ByteRange?
  /// The header parameters, from the first `;` on.
  public var parameters: ByteRange
  /// The whole value as written.
  public var whole: ByteRange

  /// Reads one value and stops after it, at a comma or the end.
  static func parse(_ scanner: inout Scanner) throws(ParseError) -> NameAddress {
    scanner.skipBlanks()
    let start = scanner.position
    var display: ByteRange?
    if scanner.next == .quote {
      display = try scanner.quoted()
      scanner.skipBlanks()
      guard scanner.next == .less else { throw ParseError(.address, at: scanner.position) }
    } else {
      // A display name without quotes consists of tokens and blanks up to `<`; a bare URI has its colon first. UTF-8 is accepted.
      while !scanner.atEnd, CharacterClass.token.contains(scanner.next) || scanner.next.isBlank || scanner.next >= 128 {
        scanner.position &+= 1
      }
      if scanner.next == .less {
        var end = scanner.position
        while end > start, scanner.bytes[end - 1].isBlank { end -= 1 }
        if end > start { display = ByteRange(from: start, to: end) }
      } else {
        scanner.position = start
      }
    }
    let uri: URI
    if scanner.skip(.less) {
      scanner.skipBlanks()
      uri = try scanner.uri(bare: false)
      scanner.skipBlanks()
      try scanner.expect(.greater, .address)
    } else {
      uri = try scanner.uri(bare: true)
    }
    var address = NameAddress(displayName: display, uri: uri, tag: nil, parameters: .empty, whole: .empty)
    let parametersStart = scanner.position
    var end = parametersStart
    while let parameter = try scanner.parameter() {
      end = scanner.position
      if scanner.equals(parameter.name, "tag") { address.tag = parameter.value }
    }
    address.parameters = ByteRange(from: parametersStart, to: end)
    address.whole = ByteRange(from: start, to: end)
    return address
  }

  /// Reads a range with exactly one value.
  static func only(_ bytes: Span<UInt8>, _ range: ByteRange) throws(ParseError) -> NameAddress {
    var scanner = Scanner(bytes, range)
    let address = try parse(&scanner)
    try scanner.finish()
    return address
  }
}

extension Message {
  /// All values of an address header, over all its fields, in order.
  public func addresses(_ name: HeaderName) throws(ParseError) -> [NameAddress] {
    var out: [NameAddress] = []
    for field in fields where field.name == name {
      var scanner = Scanner(bytes.span, field.value)
      repeat {
        guard out.count < Limits.listValues else { throw ParseError(.listTooLong, at: scanner.position) }
        out.append(try NameAddress.parse(&scanner))
        scanner.skipBlanks()
      } while scanner.skip(.comma)
      guard scanner.atEnd else { throw ParseError(.trailing, at: scanner.position) }
    }
    return out
  }

  /// A header parameter of an address, quotes removed, nil if absent; `name` in lower case.
  public func parameter(_ name: StaticString, of address: NameAddress) -> ByteRange? {
    var scanner = Scanner(bytes.span, address.parameters)
    while let parameter = try? scanner.parameter() {
      if scanner.equals(parameter.name, name) { return parameter.value ?? .empty }
    }
    return nil
  }

  /// The display name, unescaped; nil if absent or empty.
  public func displayName(of address: NameAddress) -> String? {
    guard let range = address.displayName, !range.isEmpty else { return nil }
    return unescapeQuoted(bytes.slice(range))
  }
}
