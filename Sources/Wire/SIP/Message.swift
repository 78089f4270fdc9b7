/// A SIP message as it was received: its bytes and a table of the positions of its fields. Headers are parsed on access.
///
/// Parsing is in two steps, so that a request with a fault can still be answered: `init` finds start line, fields and body and
/// throws only if there is nothing to answer; `checked()` reads everything a user agent relies on and throws the first fault with
/// the status code for it. Costs one array (the fields) besides the bytes handed in; about 1 µs per kilobyte.
public struct Message: Sendable {
  /// The bytes as received, but for folded lines, whose line ends have become spaces.
  public let bytes: [UInt8]
  public let startLine: StartLine
  public let fields: [HeaderField]
  public let body: ByteRange
  /// The first structural fault that did not keep us from reading on.
  public let defect: ParseError?

  /// Reads one datagram, or one message that `StreamFramer` has cut out.
  /// - Parameter onStream: Content-Length is required (RFC 3261 §20.14).
  public init(_ message: consuming [UInt8], onStream: Bool = false) throws(ParseError) {
    var bytes = message
    guard bytes.count <= Limits.messageBytes else { throw ParseError(.messageTooLarge, at: Limits.messageBytes) }
    var reader = HeadReader()
    try reader.read(bytes.span)
    if !reader.folds.isEmpty { for index in reader.folds where index < bytes.count { bytes[index] = 32 } }
    reader.frameBody(bytes.span, onStream: onStream)
    self.bytes = bytes
    startLine = reader.startLine
    fields = reader.fields
    body = reader.body
    defect = reader.defect
  }

  public var isRequest: Bool { if case .request = startLine { true } else { false } }

  /// The request's method, nil for a response.
  public var method: Method? { if case .request(let method, _, _) = startLine { method } else { nil } }

  /// The method as written, also an unknown one; empty for a response.
  public var methodName: String { if case .request(_, let name, _) = startLine { text(name) } else { "" } }

  /// The response's status code, nil for a request.
  public var statusCode: Int? { if case .response(let code, _) = startLine { code } else { nil } }

  public var reasonPhrase: String { if case .response(_, let reason) = startLine { text(reason) } else { "" } }

  /// A part of the message as text; invalid UTF-8 is repaired.
  public func text(_ range: ByteRange) -> String { bytes.text(range) }

  /// The first field of a header.
  public func field(_ name: HeaderName) -> HeaderField? {
    for field in fields where field.name == name { return field }
    return nil
  }

  public func fields(_ name: HeaderName) -> [HeaderField] { fields.filter { $0.name == name } }

  public func count(_ name: HeaderName) -> Int { fields.reduce(0) { $0 + ($1.name == name ? 1 : 0) } }

  /// The first value of a header that we have no row for; the name in any case.
  public func unknownField(_ name: String) -> HeaderField? {
    let wanted = name.lowercased()
    return fields.first { $0.name == .other && text($0.nameRange).lowercased() == wanted }
  }
}
