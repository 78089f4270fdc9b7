/// RAck (RFC 3262 §7.2): which reliable provisional response a PRACK acknowledges.
public struct ResponseAcknowledgement: Hashable, Sendable {
  /// The RSeq of the response.
  public var response: UInt32
  /// The CSeq of the request that it answered.
  public var sequence: UInt32
  public var method: Method

  public init(response: UInt32, sequence: UInt32, method: Method) {
    (self.response, self.sequence, self.method) = (response, sequence, method)
  }
}

extension Message {
  /// RSeq (RFC 3262 §7.1): 1 to 2^32 − 1; nil if absent or unreadable.
  public var responseSequence: UInt32? {
    guard let field = field(.rseq) else { return nil }
    var scanner = Scanner(bytes.span, field.value)
    guard let number = try? scanner.number(upTo: .max), number > 0, scanner.atEnd else { return nil }
    return number
  }

  /// RAck; nil if absent.
  public var responseAcknowledgement: ResponseAcknowledgement? {
    get throws(ParseError) {
      guard let field = field(.rack) else { return nil }
      var scanner = Scanner(bytes.span, field.value)
      let response = try scanner.number(upTo: .max)
      scanner.skipBlanks()
      let sequence = try scanner.number(upTo: Limits.sequenceNumber)
      scanner.skipBlanks()
      let method = Method(bytes.span, try scanner.token())
      try scanner.finish()
      return ResponseAcknowledgement(response: response, sequence: sequence, method: method)
    }
  }
}
