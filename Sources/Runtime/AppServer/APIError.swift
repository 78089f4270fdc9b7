public import WebServer

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

  public var problem: HTTPProblem { HTTPProblem(code.status, code: code.rawValue, message) }

  public var response: HTTPResponse {
    var response = problem.response
    if code == .tooMany || code == .inFlight || code == .overload { response.headers = [("Retry-After", "1")] }
    if code == .unauthorized { response.headers = [("WWW-Authenticate", "Bearer")] }
    return response
  }
}

extension HTTPRequest {
  /// A field of the query; nil if absent. A repeated or empty one is ambiguous and refused.
  public func queryValue(_ name: String) throws(APIError) -> String? {
    let values = target.pairs.filter { $0.name == name }
    guard let value = values.first?.value else { return nil }
    guard values.count == 1, !value.isEmpty else {
      throw APIError(.badRequest, "\(name): once in a query, and not empty")
    }
    return value
  }
}
