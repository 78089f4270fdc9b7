/// A refusal of the admin API: `{"error":{"code":"badState","message":"…"}}`. The code is for programs, the message for their authors.
public struct APIError: Error, Sendable, Equatable {
  public enum Code: String, Sendable, CaseIterable {
    /// The request cannot be read.
    case badRequest
    /// No token, or none that is known; one without the scope.
    case unauthorized, forbidden
    case unknownPage, unknownCall, unknownUser, unknownFile
    case badMethod
    /// Not in this state of the call; nobody could answer a call to this user.
    case badState
    /// The first request with this idempotency key is not answered yet; it was another request.
    case inFlight, keyReused
    case emergency
    /// The number, or the caller's number that was asked for.
    case notAllowed
    case noRoute
    case unsupported
    case tooMany
    case overload
    case server
    /// It was there, and is kept no longer.
    case gone

    public var status: Int {
      switch self {
      case .badRequest: 400
      case .unauthorized: 401
      case .forbidden: 403
      case .unknownPage, .unknownCall, .unknownUser, .unknownFile: 404
      case .badMethod: 405
      case .badState, .inFlight: 409
      case .gone: 410
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
    var response = HTTPResponse(code.status, contentType: "application/json", body: Array(text.utf8))
    if code == .tooMany || code == .inFlight || code == .overload { response.headers = [("Retry-After", "1")] }
    if code == .unauthorized { response.headers = [("WWW-Authenticate", "Bearer")] }
    return response
  }

  /// What a request says may stand in the message: it is escaped (RFC 8259 §7).
  private var text: String {
    var escaped = ""
    for scalar in message.unicodeScalars {
      switch scalar {
      case "\"", "\\": escaped += "\\\(scalar)"
      case _ where scalar.value < 32 || scalar.value == 127: escaped += " "
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return "{\"error\":{\"code\":\"\(code.rawValue)\",\"message\":\"\(escaped)\"}}\n"
  }
}
