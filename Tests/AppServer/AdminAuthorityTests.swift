import Foundation
import JSONWebToken
import Synchronization
import TestSockets
import Testing
import TrunklineBytes
import TrunklinePlatform
import WebServer

@testable import AppServer

/// The token is checked for the whole answer, and connections without one exclude no client.
@Suite(.serialized) struct AdminAuthorityTests {
  /// Sends `tick` for each request, until `amount` octets are sent.
  private final class Ticks: ResponseStream {
    private let left: Mutex<Int>
    private let chunk: [UInt8]
    init(_ amount: Int, chunk: Int = 5) {
      left = Mutex(amount)
      self.chunk = [UInt8](repeating: 0x74, count: chunk)
    }
    func next() -> [UInt8]? {
      left.withLock { left in
        guard left > 0 else { return [] }
        left -= chunk.count
        return chunk
      }
    }
    func last(_ why: HTTPProblem) -> [UInt8] { Array("LAST \(why.code)\n".utf8) }
  }

  private static let held = Mutex<[AdminRequest.Answer]>([])
  private static let isHeld = DispatchSemaphore(value: 0)
  private static func start(token: String? = nil, tokens: [APIToken] = [], amount: Int = 5, chunk: Int = 5) throws -> AdminServer
  {
    @Sendable func stream() -> HTTPResponse {
      var response = HTTPResponse(200, contentType: "text/event-stream", body: [])
      response.stream = Ticks(amount, chunk: chunk)
      return response
    }
    let rows = AdminRoutes([
      .init(AdminRoute("health", .get, "/healthz", nil)) { _, answer in answer(.text(200, "well")) },
      .init(AdminRoute("metrics", .get, "/metrics", .read)) { _, answer in answer(.text(200, "metrics")) },
      .init(AdminRoute("events", .get, "/v1/events", .read)) { _, answer in answer(stream()) },
      .init(AdminRoute("later", .get, "/v1/later", .read)) { _, answer in
        held.withLock { $0.append { _ in answer(stream()) } }
        isHeld.signal()
      },
      .init(AdminRoute(importing: "put", .put, "/v1/directory/{scope}", .users)) { _, answer in answer(.text(200, "put")) },
    ])
    return try AdminServer.start(
      .init(address: SocketAddress(.loopback, 0), token: token.map { Redacted(Array($0.utf8)) }, tokens: tokens), routes: rows,
      logger: Fixture.logger)
  }
  private func token(_ name: String, _ secret: String, _ scopes: Set<APIScope> = [.read]) -> APIToken {
    APIToken(name: name, secrets: [Redacted(Array(secret.utf8))], scopes: scopes)
  }
  private func ask(_ server: AdminServer, _ path: String, _ bearer: String? = nil, receiveBuffer: Int32? = nil) throws
    -> TestSocket
  {
    let socket = try TestSocket(server.address, receiveBuffer: receiveBuffer)
    let authorization = bearer.map { "Authorization: Bearer \($0)\r\n" } ?? ""
    socket.write("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\(authorization)\r\n")
    return socket
  }
  private func status(_ socket: TestSocket) -> String {
    socket.response()?.head.split(separator: " ").dropFirst().first.map(String.init) ?? "closed"
  }

  @Test func `a stream ends with the reason when its token is removed, or its scope`() throws {
    let server = try Self.start(tokens: [token("crm", "crm-secret"), token("bi", "bi-secret"), token("ops", "ops-secret")])
    defer { server.stop() }
    let streams = try ["crm", "bi", "ops"].map { try ask(server, "/v1/events", $0 + "-secret") }
    for stream in streams { #expect(status(stream) == "200" && stream.text(5) == "ttttt") }
    server.replace([token("bi", "bi-secret", [.calls]), token("ops", "ops-secret")])
    #expect(streams[0].rest() == "LAST unauthorized\n" && streams[1].rest() == "LAST forbidden\n")
    server.replace([token("ops", "ops-secret"), token("other", "other-secret")])
    server.replace([token("ops", "another-secret")])
    #expect(streams[2].rest() == "LAST unauthorized\n", "the secret is the token, not its name")
  }

  @Test func `a stream without a token ends when one is asked for`() throws {
    let server = try Self.start()
    defer { server.stop() }
    let stream = try ask(server, "/v1/events")
    #expect(status(stream) == "200" && stream.text(5) == "ttttt")
    server.replace([token("crm", "crm-secret")])
    #expect(stream.rest() == "LAST unauthorized\n")
  }

  @Test func `a token is removed in the middle of a request: of its head, its body, its answer`() throws {
    let server = try Self.start(tokens: [token("crm", "crm-secret", [.read, .users])])
    defer { server.stop() }
    let head = try TestSocket(server.address)
    head.write("GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bea")
    let body = try TestSocket(server.address)
    body.write("PUT /v1/directory/a HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer crm-secret\r\nContent-Length: 100000\r\n\r\nxxx")
    let later = try ask(server, "/v1/later", "crm-secret")
    #expect(Self.isHeld.wait(timeout: .now() + 10) == .success)
    let kept = try ask(server, "/metrics", "crm-secret")
    #expect(status(kept) == "200")
    server.replace([token("bi", "bi-secret")])
    for answer in Self.held.withLock({ $0 }) { answer(.text(200, "")) }
    Self.held.withLock { $0 = [] }
    head.write("rer crm-secret\r\n\r\n")
    body.write([UInt8](repeating: 0x78, count: 99_997))
    kept.write("GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer crm-secret\r\n\r\n")
    for socket in [head, body, later, kept] {
      guard let (head, body) = socket.response() else {
        Issue.record("closed without an answer")
        continue
      }
      #expect(
        head.hasPrefix("HTTP/1.1 401 ") && String(decoding: body, as: UTF8.self).contains("\"code\":\"unauthorized\""), "\(head)")
    }
  }

  @Test func `streams that read nothing hold no slot for ever: the idlest of their token is closed, and another token gets in`()
    throws
  {
    let server = try Self.start(tokens: [token("a", "a-secret"), token("b", "b-secret"), token("c", "c-secret")])
    defer { server.stop() }
    let all = try (0..<16).map { try ask(server, "/v1/events", $0 < 8 ? "a-secret" : "b-secret") }
    for stream in all { #expect(status(stream) == "200") }
    let ninth = try ask(server, "/v1/events", "a-secret")
    #expect(status(ninth) == "200" && ninth.text(5) == "ttttt")
    for stream in all { #expect(stream.text(5) == "ttttt") }
    #expect(TestSocket.firstReadable(Array(all.prefix(8)))?.rest() == "LAST tooMany\n")
    let third = try ask(server, "/v1/events", "c-secret")
    #expect(status(third) == "200" && third.text(5) == "ttttt")
    #expect(try status(ask(server, "/healthz")) == "200", "streams are no connections of their address's share")
  }

  @Test func `64 kept-alive connections without a token, from one address, shut out no probe and no program`() throws {
    let server = try Self.start(token: "own-token")
    defer { server.stop() }
    let trusted = try ask(server, "/metrics", "own-token")
    #expect(status(trusted) == "200")
    var idle: [TestSocket] = []
    for _ in 0..<64 {
      let socket = try ask(server, "/healthz")
      #expect(status(socket) == "200", "each is answered: the one that was idle for the longest time gave way")
      idle.append(socket)
    }
    #expect(try status(ask(server, "/healthz")) == "200" && status(ask(server, "/metrics", "own-token")) == "200")
    trusted.write("GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer own-token\r\n\r\n")
    #expect(status(trusted) == "200", "who has a token keeps its connection")
    #expect(idle[0].next() == .end, "it was closed")
  }

  @Test func `connections in the middle of a request's head exclude no client either`() throws {
    let server = try Self.start(token: "own-token")
    defer { server.stop() }
    var slow: [TestSocket] = []
    for _ in 0..<64 {
      let socket = try ask(server, "/healthz")
      #expect(status(socket) == "200")
      socket.write("GET /healthz HT")
      slow.append(socket)
    }
    #expect(try status(ask(server, "/metrics", "own-token")) == "200" && status(ask(server, "/healthz")) == "200")
  }
}

extension TestSocket {
  /// Reads the next octets as text.
  func text(_ count: Int) -> String { octets(count).map { String(decoding: $0, as: UTF8.self) } ?? "nothing for 10 s" }
  /// Reads all octets until the peer closes.
  func rest() -> String { text(.max) }
}
