import Bytes
import HTTP
import JSONWebToken
import Platform
import Synchronization

/// Who may ask the admin port for what: by token, or without any from this machine alone.
final class AdminAccess: Sendable {
  /// Which scope a path needs; the first row that fits holds. `/` and `/healthz` need none.
  static let rows: [(method: String?, path: String, scope: APIScope)] = [
    ("POST", "/v1/calls", .calls),
    ("POST", "/v1/devices", .users),
    ("POST", "/v1/push", .users),
    // names and numbers of people
    (nil, "/v1/directory", .users),
    (nil, "/v1/users", .users),
    // the signalling of calls, with numbers
    (nil, "/v1/traces", .admin),
    ("POST", "", .admin),
    (nil, "", .read),
  ]

  private struct State {
    var tokens: [APIToken]
    var rates: [String: TokenBucket] = [:]
  }
  private let state: Mutex<State>

  init(_ tokens: [APIToken]) { state = Mutex(State(tokens: tokens)) }

  /// From the next request on; rates begin anew.
  func replace(_ tokens: [APIToken]) {
    state.withLock { state in
      state.tokens = tokens
      state.rates = [:]
    }
  }

  /// GET and POST everywhere; PUT and DELETE where something is replaced or goes.
  static func takes(_ method: String, of path: String) -> Bool {
    if ["GET", "HEAD", "POST"].contains(method) { return true }
    if path.hasPrefix("/v1/directory/") { return method == "PUT" || method == "DELETE" }
    return method == "DELETE" && path.hasPrefix("/v1/users/")
  }

  /// The most of a request's body: imports are long, of who may make one.
  func bodyBytes(of head: RequestHead) -> Int {
    guard head.path.hasPrefix("/v1/directory/"), head.method == "PUT" || head.method == "POST" else { return Limits.bodyBytes }
    let given = Array((head.first("authorization") ?? "").utf8.dropFirst("Bearer ".utf8.count))
    let isKnown = state.withLock { state in
      state.tokens.isEmpty || !state.tokens.filter { $0.scopes.contains(.users) && $0.matches(given) }.isEmpty
    }
    return isKnown ? Limits.importBytes : Limits.bodyBytes
  }

  static func scope(of path: String, _ method: String) -> APIScope {
    rows.first { row in
      (row.method == nil || row.method == method) && (row.path.isEmpty || path == row.path || path.hasPrefix(row.path + "/"))
    }?.scope ?? .admin
  }

  /// The name of the token; empty without one.
  func client(of request: HTTPRequest, at now: Instant) throws(APIError) -> String {
    // Neither says anything of a call; the page asks for the rest with the token.
    if request.path == "/healthz" || request.path == "/" { return "" }
    let result = state.withLock { state -> Result<String, APIError> in
      do throws(APIError) {
        return .success(try Self.client(of: request, &state, now))
      } catch {
        return .failure(error)
      }
    }
    return try result.get()
  }

  private static func client(of request: HTTPRequest, _ state: inout State, _ now: Instant) throws(APIError) -> String {
    guard !state.tokens.isEmpty else {
      try checkLocal(request)
      return ""
    }
    let given = request.authorization.map { Array($0.exposed.utf8) } ?? []
    let bearer = Array("Bearer ".utf8)
    // each is compared, whichever is right
    let known = state.tokens.filter { $0.matches(Array(given.dropFirst(bearer.count))) }
    guard given.starts(with: bearer), let token = known.first else {
      throw APIError(.unauthorized, "authorization: Bearer <token>")
    }
    if let rate = token.perSecond {
      var bucket = state.rates[token.name] ?? TokenBucket(perSecond: rate, at: now)
      let isTaken = bucket.take(at: now)
      state.rates[token.name] = bucket
      guard isTaken else { throw APIError(.tooMany, "more than per_second requests of this token") }
    }
    let scope = scope(of: request.path, request.method)
    guard token.scopes.contains(scope) else {
      throw APIError(.forbidden, "\(request.method) of this path needs the scope \(scope.rawValue)")
    }
    return token.name
  }

  /// Without a token only programs on this machine: a web page could reach loopback through its user's browser, by name
  /// (DNS rebinding) or across origins.
  private static func checkLocal(_ request: HTTPRequest) throws(APIError) {
    guard request.peer.unmapped.isLoopback else {
      throw APIError(.forbidden, "set listen.admin token_file to ask from another machine")
    }
    guard request.origin == nil, isPlain(host: request.host) else { throw APIError(.forbidden, "not from a web page") }
  }

  private static func isPlain(host: String) -> Bool {
    if let address = SocketAddress(host) { return address.ip.isLoopback }
    return host == "localhost" || host.hasPrefix("localhost:") || IPAddress(host)?.isLoopback ?? false
  }
}
