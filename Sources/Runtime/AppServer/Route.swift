import HTTP
import JSONWebToken

/// One operation of an HTTP API: its method and path, its scope, and the limit of its body.
///
///     Route("transferCall", .post, "/v1/calls/{call}/transfer", .calls)
public struct Route: Sendable, Equatable {
  public enum Method: String, Sendable, CaseIterable { case get = "GET", post = "POST", put = "PUT", delete = "DELETE" }
  enum Part: Sendable, Equatable {
    /// Matched as sent: a percent-encoded spelling is another word.
    case word(String)
    /// Any segment that is not relative, decoded: an encoded `/` is part of it.
    case argument(String)
  }

  /// `operationId` of docs/reference/admin-api.yaml.
  public let operation: String
  public let method: Method
  public let path: String
  /// Nil: open to every client.
  public let scope: APIScope?
  /// The limit of a request's body, for a client with the scope.
  public let bodyBytes: Int
  /// A GET answers HEAD too, unless the read removes its resource.
  public let answersHead: Bool
  let parts: [Part]

  /// - Parameters:
  ///   - path: as in docs/reference/admin-api.yaml, arguments in braces.
  ///   - acceptsImports: the body may be as long as an import.
  public init(
    _ operation: String, _ method: Method, _ path: String, _ scope: APIScope?, acceptsImports: Bool = false,
    answersHead: Bool = true
  ) {
    (self.operation, self.method, self.path, self.scope) = (operation, method, path, scope)
    (bodyBytes, self.answersHead) = (acceptsImports ? Limits.importBytes : Limits.bodyBytes, answersHead && method == .get)
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
