import HTTP

/// One operation of an HTTP API: its method and path, its scope, and the limit of its body.
///
///     Route("transferCall", .post, "/v1/calls/{call}/transfer", Scope.calls)
public struct Route<Scope: Sendable & Equatable>: Sendable, Equatable {
  public enum Method: String, Sendable, CaseIterable { case get = "GET", post = "POST", put = "PUT", delete = "DELETE" }
  enum Part: Sendable, Equatable {
    /// Matched as sent: a percent-encoded spelling is another word.
    case word(String)
    /// Any segment that is not relative, decoded: an encoded `/` is part of it.
    case argument(String)
  }

  /// `operationId` of the API's description (OpenAPI).
  public let operation: String
  public let method: Method
  public let path: String
  /// The right that a client needs; nil: open to every client.
  public let scope: Scope?
  /// The limit of a request's body, for a client with the scope.
  public let bodyBytes: Int
  /// A GET answers HEAD too, unless the read removes its resource.
  public let answersHead: Bool
  let parts: [Part]

  /// - Parameters:
  ///   - path: as in the API's description, arguments in braces.
  ///   - bodyBytes: the longest body.
  public init(
    _ operation: String, _ method: Method, _ path: String, _ scope: Scope?, bodyBytes: Int = Limits.bodyBytes,
    answersHead: Bool = true
  ) {
    (self.operation, self.method, self.path, self.scope) = (operation, method, path, scope)
    (self.bodyBytes, self.answersHead) = (bodyBytes, answersHead && method == .get)
    parts = path.split(separator: "/").map { part in
      part.hasPrefix("{") ? .argument(String(part.dropFirst().dropLast())) : .word(String(part))
    }
  }

  /// The methods that the route accepts.
  var methods: [String] { [method.rawValue] + (answersHead ? ["HEAD"] : []) }

  /// The path's arguments; nil: another path.
  func arguments(of segments: [RequestTarget.Segment]) -> [String: String]? {
    guard segments.count == parts.count else { return nil }
    var out: [String: String] = [:]
    for (part, segment) in zip(parts, segments) {
      switch part {
      case .word(let word): guard segment.raw == word else { return nil }
      case .argument(let name):
        guard !segment.isRelative else { return nil }
        out[name] = segment.text
      }
    }
    return out
  }
}
