import HTTP

/// A refusal of the admin API as problem details (RFC 9457): the code is for programs, the detail for their authors.
///
///     {"type":"about:blank","title":"Conflict","status":409,"detail":"no device has the call","code":"badState"}
public struct APIError: Error, Sendable, Equatable {
  public enum Code: String, Sendable, CaseIterable {
    /// The request cannot be read.
    case badRequest
    /// No token, or an unknown one; one without the scope.
    case unauthorized, forbidden
    /// An operator revoked the token's device.
    case revoked
    case unknownPage, unknownCall, unknownUser, unknownFile, unknownTrunk, unknownNode, unknownDevice, unknownTrace, unknownModule
    case badMethod
    /// Not in this state of the call; no device could answer a call to this user.
    case badState
    /// The first request with this idempotency key is not answered yet; the key belongs to another request.
    case inFlight, keyReused
    case emergency
    /// The number, or the requested caller's number.
    case notAllowed
    case noRoute
    case unsupported
    /// Its head or body.
    case tooLarge
    case tooMany
    case overload
    case server
    /// It existed, and is no longer stored.
    case gone

    public var status: Int {
      switch self {
      case .badRequest: 400
      case .unauthorized: 401
      case .forbidden, .revoked: 403
      case .unknownPage, .unknownCall, .unknownUser, .unknownFile, .unknownTrunk, .unknownNode, .unknownDevice, .unknownTrace,
        .unknownModule:
        404
      case .badMethod: 405
      case .badState, .inFlight: 409
      case .gone: 410
      case .tooLarge: 413
      case .keyReused, .emergency, .notAllowed, .noRoute, .unsupported: 422
      case .tooMany: 429
      case .server: 500
      case .overload: 503
      }
    }
  }
  public var code: Code
  public var message: String
  public init(_ code: Code, _ message: String) { (self.code, self.message) = (code, message) }

  public var response: HTTPResponse {
    var response = HTTPResponse.problem(code.status, code, message)
    if code == .tooMany || code == .inFlight || code == .overload { response.headers = [("Retry-After", "1")] }
    if code == .unauthorized { response.headers = [("WWW-Authenticate", "Bearer")] }
    return response
  }
}

extension HTTPResponse {
  /// `status` may be more specific than the code: 431 is `tooLarge`, as is 413.
  static func problem(_ status: Int, _ code: APIError.Code, _ detail: String) -> HTTPResponse {
    let title = ResponseHead.reason(status)
    let text =
      #"{"type":"about:blank","title":"\#(title)","status":\#(status),"#
      + #""detail":"\#(escaped(detail))","code":"\#(code.rawValue)"}"# + "\n"
    return HTTPResponse(status, contentType: "application/problem+json", body: Array(text.utf8))
  }

  /// A refusal before any handler: unreadable HTTP, or more than this server accepts.
  static func problem(_ status: Int, _ detail: String) -> HTTPResponse {
    let code: APIError.Code =
      switch status {
      case 413, 431: .tooLarge
      case 429: .tooMany
      case 503, 504: .overload
      default: .badRequest
      }
    return problem(status, code, detail)
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
