import HTTP

/// A refusal as problem details (RFC 9457): the code is for programs, the detail for their authors.
///
///     {"type":"about:blank","title":"Conflict","status":409,"detail":"no device has the call","code":"badState"}
public struct HTTPProblem: Error, Sendable, Equatable {
  /// The codes of the server's own refusals; an API may have more.
  public enum Code: String, Sendable, CaseIterable {
    case badRequest, badMethod, unknownPage, tooLarge, tooMany, overload
    /// What is usual for it; the status may be more specific.
    public var status: Int {
      switch self {
      case .badRequest: 400
      case .unknownPage: 404
      case .badMethod: 405
      case .tooLarge: 413
      case .tooMany: 429
      case .overload: 503
      }
    }
    /// The code of a refusal before any handler: unreadable HTTP, or more than this server accepts.
    init(of status: Int) {
      self =
        switch status {
        case 413, 431: .tooLarge
        case 429: .tooMany
        case 503, 504: .overload
        default: .badRequest
        }
    }
  }

  public var status: Int
  public var code: String
  public var detail: String

  public init(_ status: Int, code: String, _ detail: String) { (self.status, self.code, self.detail) = (status, code, detail) }
  public init(_ code: Code, _ detail: String) { self.init(code.status, code: code.rawValue, detail) }
  /// A refusal of the server with this status.
  init(status: Int, _ detail: String) { self.init(status, code: Code(of: status).rawValue, detail) }

  public var response: HTTPResponse {
    let text =
      #"{"type":"about:blank","title":"\#(ResponseHead.reason(status))","status":\#(status),"#
      + #""detail":"\#(Self.escaped(detail))","code":"\#(code)"}"# + "\n"
    return HTTPResponse(status, contentType: "application/problem+json", body: Array(text.utf8))
  }

  /// Text of a request may be part of a detail (RFC 8259 §7).
  private static func escaped(_ text: String) -> String {
    var escaped = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": escaped += "\\\(scalar)"
      case _ where scalar.value < 32 || scalar.value == 127: escaped += " "
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }
}
