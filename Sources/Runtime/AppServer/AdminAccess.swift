import HTTP
import JSONWebToken
import Synchronization
import TrunklineBytes
import TrunklinePlatform
import WebServer

/// Identifies clients of the admin port: by token, or without one from this machine alone. The route decides what they may
/// request.
final class AdminAccess: Sendable {
  /// A client and its rights.
  struct Client: Sendable {
    /// The token's name; empty without one.
    var name: String
    fileprivate var scopes: Set<APIScope>

    func check(_ route: AdminRoute) throws(APIError) {
      guard let scope = route.scope, !scopes.contains(scope) else { return }
      throw APIError(.forbidden, "\(route.operation) needs the scope \(scope.rawValue)")
    }
  }

  private struct State {
    var tokens: [APIToken]
    var rates: [String: TokenBucket] = [:]
  }
  private let state: Mutex<State>

  init(_ tokens: [APIToken]) { state = Mutex(State(tokens: tokens)) }

  /// Valid from the next request on; rates restart.
  func replace(_ tokens: [APIToken]) {
    state.withLock { state in
      state.tokens = tokens
      state.rates = [:]
    }
  }

  /// The limit of a request's body: more than the usual only if the client has the route's scope.
  func bodyBytes(of head: RequestHead, _ routes: AdminRoutes) -> Int {
    guard case .row(let row, _) = routes.match(head.method, head.target), row.route.bodyBytes > WebServer.Limits.bodyBytes else {
      return WebServer.Limits.bodyBytes
    }
    let given = Self.secret(head.first("authorization"))
    let mayBeLong = state.withLock { state in
      // Without tokens: not a request of a page, which is refused once it is complete.
      guard !state.tokens.isEmpty, let scope = row.route.scope else {
        return !Self.isOfPage(head.fields.map { ($0.name, $0.value) })
      }
      return Self.token(given, in: state).map { $0.scopes.contains(scope) } ?? false
    }
    return mayBeLong ? row.route.bodyBytes : WebServer.Limits.bodyBytes
  }

  /// The sink that reads a request's body as it arrives, if the client may send a long one.
  func sink(of head: RequestHead, _ routes: AdminRoutes) -> (any BodySink)? {
    guard case .row(let row, _) = routes.match(head.method, head.target), let sink = row.sink,
      bodyBytes(of: head, routes) > WebServer.Limits.bodyBytes
    else { return nil }
    return sink(head)
  }

  /// Whether `sink` returns one. Makes no sink.
  func hasSink(_ head: RequestHead, _ routes: AdminRoutes) -> Bool {
    guard case .row(let row, _) = routes.match(head.method, head.target), row.sink != nil else { return false }
    return bodyBytes(of: head, routes) > WebServer.Limits.bodyBytes
  }

  func client(of request: HTTPRequest, at now: Instant) throws(APIError) -> Client {
    let result = state.withLock { state -> Result<Client, APIError> in
      do throws(APIError) {
        return .success(try Self.client(of: request, &state, now))
      } catch {
        return .failure(error)
      }
    }
    return try result.get()
  }

  /// Deducts one more request from the client's rate, if it has one; false: none is left at `now`.
  func spend(_ client: String, at now: Instant) -> Bool {
    state.withLock { state in state.rates[client]?.consume(at: now) ?? true }
  }

  /// Whether the request has a valid token; if none is configured, no request has.
  func knows(_ request: HTTPRequest) -> Bool {
    let given = Self.secret(request.authorization?.exposed)
    return state.withLock { Self.token(given, in: $0) != nil }
  }

  /// For an answer that lasts: the request's token must stay valid and keep the scope. Rates apply to requests only.
  func licence(of request: HTTPRequest, _ route: AdminRoute) -> StreamLicence {
    var request = request
    request.body = []
    return StreamLicence(client: request.client) { [self, request] in
      state.withLock { state in
        do throws(APIError) {
          try Self.identify(request, state).client.check(route)
          return nil
        } catch {
          return error.problem
        }
      }
    }
  }

  /// The token is nil if none is configured.
  private static func identify(_ request: HTTPRequest, _ state: State) throws(APIError) -> (client: Client, token: APIToken?) {
    guard !state.tokens.isEmpty else {
      try checkLocal(request)
      return (Client(name: "", scopes: Set(APIScope.allCases)), nil)
    }
    guard let token = token(secret(request.authorization?.exposed), in: state) else {
      throw APIError(.unauthorized, "authorization: Bearer <token>")
    }
    return (Client(name: token.name, scopes: token.scopes), token)
  }

  private static func client(of request: HTTPRequest, _ state: inout State, _ now: Instant) throws(APIError) -> Client {
    let (client, token) = try identify(request, state)
    guard let token else { return client }
    if let rate = token.perSecond {
      var bucket = state.rates[token.name] ?? TokenBucket(perSecond: rate, at: now)
      let isAllowed = bucket.consume(at: now)
      state.rates[token.name] = bucket
      guard isAllowed else { throw APIError(.tooMany, "the token exceeded its per_second requests") }
    }
    return client
  }

  /// The bearer token of an Authorization field (RFC 6750 §2.1); nil: it has none.
  private static func secret(_ authorization: String?) -> [UInt8]? {
    let (given, bearer) = (Array((authorization ?? "").utf8), Array("Bearer ".utf8))
    return given.starts(with: bearer) ? Array(given.dropFirst(bearer.count)) : nil
  }

  /// Compares all tokens, even after a match.
  private static func token(_ secret: [UInt8]?, in state: State) -> APIToken? {
    secret.flatMap { secret in state.tokens.filter { $0.matches(secret) }.first }
  }

  /// A page of another site can make its browser send requests without our pages: `<img src>` has no Origin, and reaches the port
  /// over loopback or an SSH tunnel. The browser states it (Fetch Metadata Request Headers §2.4). Without a token only a page of
  /// the port itself, or a person who types the address, may send; a request with a token is not the browser's own.
  static func checkPage(_ request: HTTPRequest) throws(APIError) {
    guard secret(request.authorization?.exposed) == nil, isOfPage(request.fields) else { return }
    throw APIError(.forbidden, "requests from a page of another site are refused (Sec-Fetch-Site)")
  }

  /// By the browser's own statement: a page can neither set nor omit this field.
  private static func isOfPage(_ fields: [(name: String, value: String)]) -> Bool {
    fields.contains { $0.name == "sec-fetch-site" && !["same-origin", "none"].contains($0.value.lowercased()) }
  }

  /// Without a token only programs on this machine are accepted: a web page could reach loopback through its user's browser, by
  /// name (DNS rebinding) or across origins.
  private static func checkLocal(_ request: HTTPRequest) throws(APIError) {
    guard request.peer.unmapped.isLoopback else {
      throw APIError(.forbidden, "set listen.admin token_file to send requests from another machine")
    }
    guard request.origin == nil, isPlain(host: request.host) else { throw APIError(.forbidden, "web pages are refused") }
  }

  private static func isPlain(host: String) -> Bool {
    if let address = SocketAddress(host) { return address.ip.isLoopback }
    return host == "localhost" || host.hasPrefix("localhost:") || IPAddress(host)?.isLoopback ?? false
  }
}
