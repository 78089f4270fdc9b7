import Bytes
import HTTP
import JSONWebToken
import Platform
import Synchronization

/// Who asks at the admin port: by token, or without any from this machine alone. What they may ask for is the route's to say.
final class AdminAccess: Sendable {
  /// Who asks, and what it may do.
  struct Client: Sendable {
    /// Of the token; empty without one.
    var name: String
    fileprivate var scopes: Set<APIScope>

    func check(_ route: Route) throws(APIError) {
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

  /// From the next request on; rates begin again.
  func replace(_ tokens: [APIToken]) {
    state.withLock { state in
      state.tokens = tokens
      state.rates = [:]
    }
  }

  /// The most of a request's body: of one that is longer than usual only for who may make it.
  func bodyBytes(of head: RequestHead, _ routes: RouteTable) -> Int {
    guard case .row(let row, _) = routes.match(head.method, head.target), row.route.bodyBytes > Limits.bodyBytes else {
      return Limits.bodyBytes
    }
    let given = Self.secret(head.first("authorization"))
    let mayBeLong = state.withLock { state in
      // without a token: not what a page sends, which is refused once it is whole
      guard !state.tokens.isEmpty, let scope = row.route.scope else {
        return !Self.isOfPage(head.fields.map { ($0.name, $0.value) })
      }
      return Self.token(given, in: state).map { $0.scopes.contains(scope) } ?? false
    }
    return mayBeLong ? row.route.bodyBytes : Limits.bodyBytes
  }

  /// What takes a request's body as it comes: of who may make a long one.
  func sink(of head: RequestHead, _ routes: RouteTable) -> (any BodySink)? {
    guard case .row(let row, _) = routes.match(head.method, head.target), let sink = row.sink,
      bodyBytes(of: head, routes) > Limits.bodyBytes
    else { return nil }
    return sink(head)
  }

  /// Whether `sink` has one. Costs no sink.
  func hasSink(_ head: RequestHead, _ routes: RouteTable) -> Bool {
    guard case .row(let row, _) = routes.match(head.method, head.target), row.sink != nil else { return false }
    return bodyBytes(of: head, routes) > Limits.bodyBytes
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

  /// As much as one request, of the rate of a client that has one; false: none is left at `now`.
  func spend(_ client: String, at now: Instant) -> Bool {
    state.withLock { state in state.rates[client]?.consume(at: now) ?? true }
  }

  /// Whether it comes with a token that is good now; where none is set, none does.
  func knows(_ request: HTTPRequest) -> Bool {
    let given = Self.secret(request.authorization?.exposed)
    return state.withLock { Self.token(given, in: $0) != nil }
  }

  /// Of a request that is answered for longer: its token, as it was shown, must be good and have the scope for as long. Rates are for requests.
  func licence(of request: HTTPRequest, _ route: Route) -> StreamLicence {
    var request = request
    request.body = []
    return StreamLicence(client: request.client) { [self, request] in
      state.withLock { state in
        do throws(APIError) {
          try Self.identify(request, state).client.check(route)
          return nil
        } catch {
          return error
        }
      }
    }
  }

  /// The token is nil where none is set.
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

  /// Of an Authorization field; nil: it has no bearer token (RFC 6750 §2.1).
  private static func secret(_ authorization: String?) -> [UInt8]? {
    let (given, bearer) = (Array((authorization ?? "").utf8), Array("Bearer ".utf8))
    return given.starts(with: bearer) ? Array(given.dropFirst(bearer.count)) : nil
  }

  /// Each is compared, whichever is right.
  private static func token(_ secret: [UInt8]?, in state: State) -> APIToken? {
    secret.flatMap { secret in state.tokens.filter { $0.matches(secret) }.first }
  }

  /// A page of another site makes its browser ask without a word of ours: `<img src>` has no Origin, and reaches the port over loopback or an SSH
  /// tunnel. The browser says so (Fetch Metadata Request Headers §2.4). Only a page of the port itself, or a person who types the address, asks
  /// without a token; with one, it is no browser's own doing.
  static func checkPage(_ request: HTTPRequest) throws(APIError) {
    guard secret(request.authorization?.exposed) == nil, isOfPage(request.fields) else { return }
    throw APIError(.forbidden, "requests from a page of another site are refused (Sec-Fetch-Site)")
  }

  /// By the browser's own word: a page can neither set nor leave out this field.
  private static func isOfPage(_ fields: [(name: String, value: String)]) -> Bool {
    fields.contains { $0.name == "sec-fetch-site" && !["same-origin", "none"].contains($0.value.lowercased()) }
  }

  /// Without a token only programs on this machine: a web page could reach loopback through its user's browser, by name
  /// (DNS rebinding) or across origins.
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
