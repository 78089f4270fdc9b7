import AppServer
import Bytes
import Foundation
import Platform
import Testing

@Suite(.serialized) struct AdminTests {
  func start(token: String? = nil) throws -> AdminServer {
    let token = token.map { Redacted(Array($0.utf8)) }
    return try AdminServer.start(.init(address: SocketAddress(.loopback, 0), token: token), logger: Fixture.logger) {
      request, answer in
      let text = "\(request.method) \(request.path) ?\(request.query) \(String(decoding: request.body, as: UTF8.self))"
      // From another thread, as control will.
      DispatchQueue.global().async { answer(.text(200, text)) }
    }
  }
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
    let post = "Host: 127.0.0.1:9090\r\nContent-Length: 2\r\n"
    #expect(try ask(server, "POST /v1/calls/abc/hangup", post, body: "{}") == "200 POST /v1/calls/abc/hangup ? {}\n")
    #expect(try ask(server, "DELETE /v1/calls").hasPrefix("405"))
    let big = "Host: localhost\r\nContent-Length: 70000\r\n"
    #expect(try ask(server, "POST /x", big, body: "").hasPrefix("413"))
  }

  @Test func `without a token only programs on this machine are answered, not web pages`() throws {
    let server = try start()
    defer { server.stop() }
    #expect(
      try ask(server, "POST /v1/calls/x/hangup", "Host: localhost\r\nOrigin: https://evil.example\r\n").hasPrefix("403"))
    #expect(try ask(server, "GET /v1/calls", "Host: rebound.example\r\n").hasPrefix("403"))
    #expect(try ask(server, "GET /v1/calls", "Host: [::1]:9090\r\n").hasPrefix("200"))
    #expect(try ask(server, "GET /healthz", "Host: anything\r\n").hasPrefix("200"))
  }

  @Test func `with a token every request but healthz needs it`() throws {
    let server = try start(token: "s3cret")
    defer { server.stop() }
    #expect(try ask(server, "GET /metrics").hasPrefix("401"))
    #expect(try ask(server, "GET /metrics", "Host: a\r\nAuthorization: Bearer wrong\r\n").hasPrefix("401"))
    #expect(try ask(server, "GET /metrics", "Host: a\r\nAuthorization: Bearer s3cret\r\n").hasPrefix("200"))
    #expect(try ask(server, "GET /healthz").hasPrefix("200"))
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
