/// The headers that every user agent reads from every message, checked.
public struct Envelope: Sendable {
  public let via: Via
  public let from: NameAddress
  public let to: NameAddress
  public let callID: ByteRange
  public let cseq: CSeq
  /// Nil for responses.
  public let requestURI: URI?
  /// Nil if absent (RFC 2543 requests).
  public let maxForwards: Int?
}

extension Message {
  /// Reads the headers that the handling of a message depends on, and checks the structure of the whole message.
  ///
  /// Throws the first fault: a structural one from `init`, a required header that is missing or repeated, a value that
  /// violates its grammar. `ParseError.status` is the response code for a request: 505 for another version, 416 for a URI
  /// scheme, 400 else.
  public func checked() throws(ParseError) -> Envelope {
    if let defect { throw defect }
    let span = bytes.span
    try checkSingles()
    var uri: URI?
    var isKnownScheme = true
    if case .request(_, _, let range) = startLine {
      let parsed = try URI.parse(span, range, .requestURI)
      uri = parsed
      isKnownScheme = parsed.scheme != .other
      // RFC 3261 §19.1.1: no headers in a Request-URI
      if !parsed.headers.isEmpty { throw ParseError(.requestURI, at: parsed.headers.lower) }
    }
    guard let via = try Via.top(span, fields) else { throw missing }
    guard let fromField = field(.from), let toField = field(.to), let callIDField = field(.callID), let cseqField = field(.cseq)
    else { throw missing }
    let from = try NameAddress.only(span, fromField.value)
    let to = try NameAddress.only(span, toField.value)
    let callID = try CallID.parse(span, callIDField.value)
    let cseq = try CSeq.parse(span, cseqField.value)
    if case .request(let method, let name, _) = startLine, cseq.method != method || !sameBytes(cseq.methodRange, name) {
      throw ParseError(.cseq, at: cseqField.value.lower)
    }
    let maxForwards = try field(.maxForwards).map { field throws(ParseError) in try MaxForwards.parse(span, field.value) }
    // Contact is checked in the requests that use it; other requests ignore it.
    switch cseq.method {
    case .invite, .register, .update, .refer, .subscribe, .notify: _ = try contacts
    default: break
    }
    if !isKnownScheme { throw ParseError(.uriScheme, at: uri?.whole.lower ?? 0) }
    return Envelope(via: via, from: from, to: to, callID: callID, cseq: cseq, requestURI: uri, maxForwards: maxForwards)
  }

  private var missing: ParseError { ParseError(.missing, at: body.lower) }

  /// Checks that each header of `HeaderName.isSingle` is in one field at most.
  private func checkSingles() throws(ParseError) {
    var seen: UInt64 = 0
    for field in fields where field.name.isSingle {
      let bit: UInt64 = 1 &<< UInt64(field.name.rawValue & 63)
      guard seen & bit == 0 else {
        throw ParseError(field.name == .contentLength ? .contentLength : .repeated, at: field.nameRange.lower)
      }
      seen |= bit
    }
  }

  private func sameBytes(_ a: ByteRange, _ b: ByteRange) -> Bool { bytes.slice(a).elementsEqual(bytes.slice(b)) }
}
