/// Call-ID (RFC 3261 §20.8): `word [@ word]`, compared byte by byte.
enum CallID {
  static func parse(_ bytes: Span<UInt8>, _ range: ByteRange) throws(ParseError) -> ByteRange {
    var scanner = Scanner(bytes, range)
    guard !scanner.run(.word).isEmpty else { throw ParseError(.callID, at: scanner.position) }
    if scanner.skip(.at), scanner.run(.word).isEmpty { throw ParseError(.callID, at: scanner.position) }
    guard scanner.atEnd else { throw ParseError(.callID, at: scanner.position) }
    return range
  }
}

extension Message {
  /// The Call-ID as written; empty if absent.
  public var callID: String { field(.callID).map { text($0.value) } ?? "" }
}
