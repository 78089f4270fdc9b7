/// CSeq (RFC 3261 §20.16).
public struct CSeq: Hashable, Sendable {
  /// Below 2^31.
  public let number: UInt32
  public let method: Method
  public let methodRange: ByteRange

  static func parse(_ bytes: Span<UInt8>, _ range: ByteRange) throws(ParseError) -> CSeq {
    var scanner = Scanner(bytes, range)
    let number = try scanner.number(upTo: Limits.sequenceNumber, .cseq)
    guard scanner.next.isBlank else { throw ParseError(.cseq, at: scanner.position) }
    scanner.skipBlanks()
    let method = try scanner.token(.cseq)
    try scanner.finish()
    return CSeq(number: number, method: Method(bytes, method), methodRange: method)
  }
}

extension Message {
  public var cseq: CSeq? {
    get throws(ParseError) { try field(.cseq).map { field throws(ParseError) in try CSeq.parse(bytes.span, field.value) } }
  }
}
