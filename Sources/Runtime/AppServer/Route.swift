import HTTP
import JSONWebToken

/// One operation of an HTTP API: what it is asked for by, who may ask, and how long its body may be.
///
///     Route("transferCall", .post, "/v1/calls/{call}/transfer", .calls)
public struct Route: Sendable, Equatable {
  public enum Method: String, Sendable, CaseIterable { case get = "GET", post = "POST", put = "PUT", delete = "DELETE" }
  enum Part: Sendable, Equatable {
    /// Is matched as sent: a spelling of it that is percent-encoded is another word.
    case word(String)
    /// Any segment that is not relative, decoded: an encoded `/` is part of it.
    case argument(String)
  }

  /// `operationId` of docs/reference/admin-api.yaml.
  public let operation: String
  public let method: Method
  public let path: String
  /// Nil: no authentication.
  public let scope: APIScope?
  /// The most of a request's body, of who has the scope.
  public let bodyBytes: Int
  /// A GET answers HEAD too, unless what it reads is gone then.
  public let answersHead: Bool
  let parts: [Part]

  /// - Parameters:
  ///   - path: as docs/reference/admin-api.yaml has it, arguments in braces.
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

  /// What a request's method has to be.
  var methods: [String] { [method.rawValue] + (answersHead ? ["HEAD"] : []) }

  /// The path's arguments; nil: it is another path.
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
