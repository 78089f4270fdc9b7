/// One value of Via (RFC 3261 §20.42, RFC 3581).
public struct Via: Hashable, Sendable {
  /// `UDP`, `TCP`, `TLS`, as written.
  public var transport: ByteRange
  /// sent-by, with the brackets of an IPv6 address.
  public var host: ByteRange
  public var port: UInt16?
  public var branch: ByteRange?
  public var received: ByteRange?
  public var maddr: ByteRange?
  /// `rport` is there, with or without a value.
  public var wantsRport: Bool
  public var rport: UInt16?
  /// The parameter name `rport`, behind which a server writes the port; nil if absent.
  public var rportName: ByteRange?
  /// The whole value as written.
  public var whole: ByteRange

  /// Reads one value and stops behind it, at a comma or the end.
  static func parse(_ scanner: inout Scanner) throws(ParseError) -> Via {
    scanner.skipBlanks()
    let start = scanner.position
    guard scanner.equals(try scanner.token(.via), "sip") else { throw ParseError(.via, at: start) }
    scanner.skipBlanks()
    try scanner.expect(.slash, .via)
    scanner.skipBlanks()
    guard scanner.equals(try scanner.token(.via), "2.0") else { throw ParseError(.via, at: start) }
    scanner.skipBlanks()
    try scanner.expect(.slash, .via)
    scanner.skipBlanks()
    let transport = try scanner.token(.via)
    guard scanner.next.isBlank else { throw ParseError(.via, at: scanner.position) }
    scanner.skipBlanks()
    let (host, port) = try scanner.hostPort(blanks: true)
    var via = Via(transport: transport, host: host, port: port, wantsRport: false, whole: .empty)
    var end = scanner.position
    while let parameter = try scanner.parameter() {
      end = scanner.position
      try via.parse(parameter, scanner)
    }
    via.whole = ByteRange(from: start, to: end)
    return via
  }

  private mutating func parse(_ parameter: Parameter, _ scanner: borrowing Scanner) throws(ParseError) {
    if scanner.equals(parameter.name, "branch") {
      branch = parameter.value
    } else if scanner.equals(parameter.name, "rport") {
      wantsRport = true
      rportName = parameter.name
      if let value = parameter.value {
        var digits = Scanner(scanner.bytes, value)
        rport = UInt16(truncatingIfNeeded: try digits.number(upTo: 65_535, .via))
      }
    } else if scanner.equals(parameter.name, "received") {
      received = parameter.value
    } else if scanner.equals(parameter.name, "maddr") {
      maddr = parameter.value
    }
  }

  /// The first value of the first Via field.
  static func top(_ bytes: Span<UInt8>, _ fields: [HeaderField]) throws(ParseError) -> Via? {
    for field in fields where field.name == .via {
      var scanner = Scanner(bytes, field.value)
      let via = try parse(&scanner)
      scanner.skipBlanks()
      guard scanner.atEnd || scanner.next == .comma else { throw ParseError(.trailing, at: scanner.position) }
      return via
    }
    return nil
  }
}

extension Message {
  /// The topmost Via, nil if there is none.
  public var topVia: Via? { get throws(ParseError) { try Via.top(bytes.span, fields) } }

  /// All Via values, topmost first.
  public var vias: [Via] {
    get throws(ParseError) {
      var out: [Via] = []
      for field in fields where field.name == .via {
        var scanner = Scanner(bytes.span, field.value)
        repeat {
          guard out.count < Limits.listValues else { throw ParseError(.listTooLong, at: scanner.position) }
          out.append(try Via.parse(&scanner))
          scanner.skipBlanks()
        } while scanner.skip(.comma)
        guard scanner.atEnd else { throw ParseError(.trailing, at: scanner.position) }
      }
      return out
    }
  }
}
