import Foundation
import JSONWebToken
import TestSockets
import Testing
import TrunklineBytes
import TrunklinePlatform
import WebServer

@testable import AppServer

@Suite(.serialized) struct AdminTests {
  func start(token: String? = nil, tokens: [APIToken] = []) throws -> AdminServer {
    let token = token.map { Redacted(Array($0.utf8)) }
    return try AdminServer.start(
      .init(address: SocketAddress(.loopback, 0), token: token, tokens: tokens), routes: Self.routes, logger: Fixture.logger)
  }

  /// Rows of each scope whose handler says what it got.
  private static let routes = AdminRoutes(
    [
      AdminRoute("open", .get, "/healthz", nil), AdminRoute("metrics", .get, "/metrics", .read),
      AdminRoute("list", .get, "/v1/calls", .read),
      AdminRoute("make", .post, "/v1/calls", .calls), AdminRoute("hangUp", .post, "/v1/calls/{call}/hangup", .calls),
      AdminRoute("trace", .get, "/v1/traces/{trace}", .admin), AdminRoute("disable", .post, "/v1/trunks/{trunk}/disable", .admin),
      AdminRoute(importing: "replace", .put, "/v1/directory/{scope}", .users),
      AdminRoute("empty", .delete, "/v1/directory/{scope}", .users),
    ].map { route in
      AdminRoutes.Row(route) { request, answer in
        let body = String(decoding: request.body, as: UTF8.self)
        let text = "\(request.method) \(request.path) ?\(request.target.query) \(body)"
        // From another thread, as control will.
        DispatchQueue.global().async { answer(.text(200, text)) }
      }
    })

  func ask(_ server: AdminServer, _ request: String, _ headers: String = "Host: localhost\r\n", body: String = "") throws
    -> String
  {
    let socket = try TestSocket(server.address)
    socket.write("\(request) HTTP/1.1\r\n\(headers)\r\n\(body)")
    guard let (head, body) = socket.response() else { return "closed" }
    return "\(head.split(separator: " ").dropFirst().first ?? "") \(String(decoding: body, as: UTF8.self))"
  }

  @Test func `requests reach the handler, which may answer later`() throws {
    let server = try start()
    defer { server.stop() }
    #expect(try ask(server, "GET /v1/calls?limit=5") == "200 GET /v1/calls ?limit=5 \n")
    #expect(try ask(server, "POST /v1/calls/abc/hangup") == "200 POST /v1/calls/abc/hangup ? \n")
    let post = "Host: 127.0.0.1:7060\r\nContent-Length: 2\r\n"
    #expect(try ask(server, "POST /v1/calls/abc/hangup", post, body: "{}") == "200 POST /v1/calls/abc/hangup ? {}\n")
    #expect(try ask(server, "DELETE /v1/calls").hasPrefix("405"))
    let big = "Host: localhost\r\nContent-Length: 70000\r\n"
    #expect(try ask(server, "POST /x", big, body: "").hasPrefix("413"))
  }

  @Test func `a path without a row has no page, for a token of any scope`() throws {
    let server = try start(token: "s3cret")
    defer { server.stop() }
    for (request, status) in [
      ("GET /nothing", "404"), ("POST /v1/callsign", "404"), ("GET /v1/calls/", "400"), ("GET //v1/calls", "400"),
      ("GET /%2fv1/calls", "400"), ("GET /v1/traces/%2e%2e", "400"), ("GET /v1%c0%afcalls", "400"), ("OPTIONS *", "404"),
      ("GET http://localhost//v1/calls", "400"), ("GET http://localhost/v1/calls", "200"),
    ] {
      #expect(try ask(server, request, bearer: "s3cret").hasPrefix(status), "\(request)")
      if !request.contains("%c0") { #expect(try ask(server, request).hasPrefix("401"), "\(request)") }
    }
  }

  @Test func `without a token only programs on this machine are answered, not web pages`() throws {
    let server = try start()
    defer { server.stop() }
    #expect(
      try ask(server, "POST /v1/calls/x/hangup", "Host: localhost\r\nOrigin: https://evil.example\r\n").hasPrefix("403"))
    #expect(try ask(server, "GET /v1/calls", "Host: rebound.example\r\n").hasPrefix("403"))
    #expect(try ask(server, "GET /v1/calls", "Host: [::1]:7060\r\n").hasPrefix("200"))
    #expect(try ask(server, "GET /healthz", "Host: anything\r\n").hasPrefix("200"))
  }

  @Test(
    arguments: ["cross-site", "same-site", "Cross-Site", "none\r\nSec-Fetch-Site: cross-site", "something"], [nil, "s3cret"])
  func `a page of another site asks nothing without a token, by an image or a form, also over a tunnel`(
    site: String, token: String?
  ) throws {
    let server = try start(token: token)
    defer { server.stop() }
    let fields = "Host: localhost:7060\r\nSec-Fetch-Site: \(site)\r\n"
    for line in ["GET /v1/calls", "GET /metrics", "GET /v1/traces/1", "POST /v1/calls/x/hangup", "GET /healthz", "GET /nothing"] {
      #expect(try ask(server, line, fields + "Content-Length: 0\r\n").hasPrefix("403"), "\(line)")
    }
    if let token {
      #expect(try ask(server, "GET /v1/calls", fields + "Authorization: Bearer \(token)\r\n").hasPrefix("200"))
      #expect(try ask(server, "GET /v1/calls", fields + "Authorization: Bearer wrong\r\n").hasPrefix("401"))
    }
  }

  @Test func `the status page's own requests, and an address that a person types, are answered`() throws {
    let server = try start()
    defer { server.stop() }
    for site in ["same-origin", "none"] {
      #expect(try ask(server, "GET /v1/calls", "Host: localhost:7060\r\nSec-Fetch-Site: \(site)\r\n").hasPrefix("200"))
    }
    #expect(
      try ask(server, "GET /v1/calls", "Host: rebound.example:7060\r\nSec-Fetch-Site: same-origin\r\n").hasPrefix("403"),
      "DNS rebinding: to the browser it is the page's own site")
  }

  @Test func `with a token every request but healthz needs it`() throws {
    let server = try start(token: "s3cret")
    defer { server.stop() }
    #expect(try ask(server, "GET /metrics").hasPrefix("401"))
    #expect(try ask(server, "GET /metrics", "Host: a\r\nAuthorization: Bearer wrong\r\n").hasPrefix("401"))
    #expect(try ask(server, "GET /metrics", "Host: a\r\nAuthorization: Bearer s3cret\r\n").hasPrefix("200"))
    #expect(try ask(server, "GET /healthz").hasPrefix("200"))
  }

  private func token(_ name: String, _ secrets: [String], _ scopes: Set<APIScope>, perSecond: Int? = nil) -> APIToken {
    APIToken(name: name, secrets: secrets.map { Redacted(Array($0.utf8)) }, scopes: scopes, perSecond: perSecond)
  }
  private func ask(_ server: AdminServer, _ request: String, bearer: String) throws -> String {
    try ask(server, request, "Host: a\r\nAuthorization: Bearer \(bearer)\r\n")
  }

  @Test func `a token may do what its scopes say, and no scope implies another`() throws {
    let server = try start(tokens: APIScope.allCases.map { token($0.rawValue, ["secret-\($0)"], [$0]) })
    defer { server.stop() }
    let needs: [(String, APIScope)] = [
      ("GET /v1/calls?limit=1", .read), ("GET /metrics", .read), ("POST /v1/calls", .calls), ("POST /v1/calls/x/hangup", .calls),
      ("GET /v1/traces/1", .admin), ("POST /v1/trunks/a/disable", .admin), ("PUT /v1/directory/user:a", .users),
      ("DELETE /v1/directory/user:a", .users),
    ]
    for (request, scope) in needs {
      for other in APIScope.allCases {
        let answer = try ask(server, request, bearer: "secret-\(other)")
        #expect(answer.hasPrefix(other == scope ? "200" : "403"), "\(request) with \(other): \(answer)")
      }
    }
    let refused = try ask(server, "POST /v1/calls", bearer: "secret-read")
    #expect(
      refused
        == #"403 {"type":"about:blank","title":"Forbidden","status":403,"detail":"make needs the scope calls","code":"forbidden"}"#
        + "\n")
    for wrong in ["", "secret-", "secret-reads", "Secret-read"] {
      #expect(try ask(server, "GET /v1/calls", bearer: wrong).hasPrefix("401"), "\(wrong)")
    }
    #expect(
      try ask(server, "GET /v1/calls").hasPrefix(#"401 {"type":"about:blank","title":"Unauthorized""#),
      "loopback alone is not enough")
    #expect(try ask(server, "GET /healthz").hasPrefix("200"))
  }

  @Test func `an import may be long, of who may make one; nobody else's body may`() throws {
    let server = try start(tokens: [token("crm", ["users-secret"], [.users]), token("bi", ["read-secret"], [.read])])
    defer { server.stop() }
    let body = String(repeating: "x", count: 200_000)
    func put(_ bearer: String, _ line: String = "PUT /v1/directory/user:a", length: Int = 200_000) throws -> String {
      try ask(
        server, line, "Host: a\r\nAuthorization: Bearer \(bearer)\r\nContent-Length: \(length)\r\n",
        body: length > 200_000 ? "" : body)
    }
    #expect(try put("users-secret") == "200 PUT /v1/directory/user:a ? \(body)\n")
    #expect(try put("read-secret").hasPrefix("413") && put("").hasPrefix("413"))
    #expect(try put("users-secret", "POST /v1/calls").hasPrefix("413"))
    #expect(try put("users-secret", length: Limits.importBytes + 1).hasPrefix("413"))
    for line in ["PUT /v1/calls", "DELETE /v1/calls/x/hangup", "PATCH /v1/directory/user:a"] {
      #expect(try ask(server, line, bearer: "users-secret").hasPrefix("405"), "\(line)")
    }
  }

  @Test func `a token is changed without a gap, and the gateway's own token stays`() throws {
    let server = try start(token: "own-token", tokens: [token("crm", ["old-secret"], [.read])])
    defer { server.stop() }
    func isTaken(_ bearer: String) throws -> Bool { try ask(server, "GET /v1/calls", bearer: bearer).hasPrefix("200") }
    #expect(try isTaken("old-secret") && !isTaken("new-secret") && isTaken("own-token"))
    server.replace([token("crm", ["old-secret", "new-secret"], [.read])])
    #expect(try isTaken("old-secret") && isTaken("new-secret") && isTaken("own-token"))
    server.replace([token("crm", ["new-secret"], [.read])])
    #expect(try !isTaken("old-secret") && isTaken("new-secret") && isTaken("own-token"))
    server.replace([])
    #expect(
      try !isTaken("new-secret") && isTaken("own-token")
        && ask(server, "POST /v1/trunks/a/disable", bearer: "own-token").hasPrefix("200"))
  }

  @Test func `a token's rate is its own`() throws {
    let access = AdminAccess([
      token("slow", ["slow-secret"], [.read], perSecond: 2), token("other", ["other-secret"], [.read], perSecond: 2),
      token("free", ["free-secret"], [.read]),
    ])
    func code(_ bearer: String, at milliseconds: Int64) -> APIError.Code? {
      do {
        var request = try HTTPRequest("GET", target: "/v1/calls")
        request.authorization = Redacted("Bearer " + bearer)
        _ = try access.client(of: request, at: Instant(nanoseconds: 1_000_000_000 + milliseconds * 1_000_000))
        return nil
      } catch {
        return (error as? APIError)?.code
      }
    }
    #expect((0..<3).map { _ in code("slow-secret", at: 0) } == [nil, nil, .tooMany])
    #expect(code("other-secret", at: 0) == nil && code("free-secret", at: 0) == nil)
    #expect(code("slow-secret", at: 500) == nil && code("slow-secret", at: 500) == .tooMany)
    #expect((0..<100).allSatisfy { _ in code("free-secret", at: 600) == nil })
    #expect(APIError(.tooMany, "x").response.headers.map(\.name) == ["Retry-After"])
  }

  @Test func `a refusal is JSON whatever its message says`() throws {
    let response = APIError(.badRequest, "a \"quote\" \\ \u{0}\u{1f}\n\u{7f} é 🎈").response
    struct Problem: Decodable { var type, title, detail, code: String, status: Int }
    let read = try JSONDecoder().decode(Problem.self, from: Data(response.body))
    #expect(read.code == "badRequest" && read.detail.hasSuffix("é 🎈") && read.status == 400 && read.title == "Bad Request")
    #expect(response.status == 400 && response.contentType == "application/problem+json")
    for code in APIError.Code.allCases {
      let body = String(decoding: APIError(code, "x").response.body, as: UTF8.self)
      for word in ["Refused", "Failed", "OK"] { #expect(!body.contains("\"title\":\"\(word)\""), "\(code) has no reason phrase") }
    }
  }

  @Test func `what the server refuses by itself is a problem, too`() throws {
    let server = try start()
    defer { server.stop() }
    for (text, status, code) in [
      ("GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n", "400", "badRequest"), ("rubbish\r\n\r\n", "400", "badRequest"),
      ("POST /v1/calls HTTP/1.1\r\nHost: a\r\nContent-Length: 70000\r\n\r\n", "413", "tooLarge"),
      ("GET / HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "x", count: 17_000))", "431", "tooLarge"),
      ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", "505", "badRequest"),
      ("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\n\r\n", "400", "badRequest"),
    ] {
      let socket = try TestSocket(server.address)
      socket.write(text)
      let (head, body) = try #require(socket.response())
      #expect(
        head.hasPrefix("HTTP/1.1 \(status) ") && head.lowercased().contains("content-type: application/problem+json"), "\(head)")
      #expect(String(decoding: body, as: UTF8.self).contains("\"code\":\"\(code)\""), "\(text.prefix(40))")
    }
  }

  @Test func `an upgrade is refused and a stop leaves no thread and no descriptor`() throws {
    let clean = try leavesNothing {
      let server = try start()
      let socket = try TestSocket(server.address)
      #expect(socket.upgrade() != 101)
      let waiting = try TestSocket(server.address)
      server.stop()
      waiting.write("G")  // what has said nothing is the kernel's until then
      #expect(waiting.next() == .end)
    }
    #expect(clean)
  }
}
