/// Why bytes from the network are not the message they should be.
public struct ParseError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Where in the message, in bytes from its start.
  public let offset: Int
  /// The rule that was broken, in words.
  public let rule: Rule
  /// The status code that answers a request with this fault: 400, 416, 505 or 513.
  public var status: Int { rule.status }

  public init(_ rule: Rule, at offset: Int) { (self.rule, self.offset) = (rule, offset) }

  public var description: String { "byte \(offset): \(rule.rawValue)" }

  public enum Rule: String, Sendable, CaseIterable {
    case messageTooLarge = "message or head is too large"
    case startLine = "start line is neither a request line nor a status line"
    case version = "SIP version is not 2.0"
    case requestURI = "Request-URI is not a URI"
    case uriScheme = "URI scheme is not known"
    case uri = "malformed URI"
    case lineEnd = "CR or LF outside a line end, or no empty line after the head"
    case headerName = "header field without name or colon"
    case tooManyFields = "too many header fields"
    case fieldTooLong = "header field is too long"
    case listTooLong = "too many values or parameters"
    case missing = "a required header field is missing"
    case repeated = "a header field that may occur once occurs again"
    case contentLength = "Content-Length is not a number, differs from another, or is missing on a stream"
    case bodyTooShort = "body is shorter than Content-Length"
    case number = "number is malformed or out of range"
    case token = "token expected"
    case quotedString = "quoted string is not closed"
    case parameter = "malformed parameter"
    case host = "malformed host or port"
    case address = "malformed name-addr"
    case via = "malformed Via"
    case cseq = "malformed CSeq, or its method is not the request's"
    case callID = "malformed Call-ID"
    case trailing = "unexpected characters after the value"
    case multipart = "malformed multipart body"

    var status: Int {
      switch self {
      case .version: 505
      case .uriScheme: 416
      case .messageTooLarge: 513
      default: 400
      }
    }
  }
}
