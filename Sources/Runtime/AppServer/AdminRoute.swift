public import JSONWebToken
public import WebServer

/// A request of an operator at the admin port: `/healthz`, `/readyz`, `/metrics`, `/v1/calls…`.
public typealias AdminRequest = HTTPRequest
public typealias AdminResponse = HTTPResponse

/// An operation of the admin API, as in docs/reference/admin-api.yaml.
public typealias AdminRoute = Route<APIScope>
public typealias AdminRoutes = RouteTable<APIScope>

extension Route where Scope == APIScope {
  /// An operation whose body may be as long as an import, for a client with the scope.
  public init(importing operation: String, _ method: Method, _ path: String, _ scope: APIScope) {
    self.init(operation, method, path, scope, bodyBytes: Limits.importBytes)
  }
}
