import Foundation
import Synchronization
import TestSockets
import Testing
import TrunklineBytes
import TrunklinePlatform

@testable import WebServer

/// The server without a gateway: its routes, its own WebSocket endpoint, and what it does when its owner stops it.
@Suite(.serialized) struct WebServerTests {
  private enum Right: Sendable { case read, write }

  private static let routes = RouteTable<Right>([
    .init(Route("list", .get, "/things", .read)) { _, answer in answer(.text(200, "all")) },
    .init(Route("get", .get, "/things/{thing}", .read)) { request, answer in answer(.text(200, request.argument("thing"))) },
    .init(Route("put", .put, "/things/{thing}", .write, bodyBytes: 1 << 20)) { _, answer in answer(.text(200, "put")) },
  ])

  private func problem(_ method: String, _ target: String) throws -> (status: Int, allow: String?) {
    guard case .refused(let response) = Self.routes.match(method, try HTTPRequest(method, target: target).target) else {
      return (200, nil)
    }
    return (response.status, response.headers.first { $0.name == "Allow" }?.value)
  }

  @Test func `a table's rows have rights of any type, and what fits no row is refused as problem details`() throws {
    guard case .row(let row, let arguments) = Self.routes.match("PUT", try HTTPRequest("PUT", target: "/things/a%2Fb").target)
    else {
      return #expect(Bool(false))
    }
    #expect(row.route.scope == .write && row.route.bodyBytes == 1 << 20 && arguments == ["thing": "a/b"])
    #expect(try problem("DELETE", "/things/x") == (405, "GET, HEAD, PUT"))
    #expect(try problem("GET", "/%74hings") == (400, nil))
    #expect(try problem("GET", "/things/../x") == (400, nil))
    #expect(try problem("GET", "/other") == (404, nil))
  }

  @Test func `a problem is JSON whatever its detail has`() throws {
    let response = HTTPProblem(.badRequest, "a \"word\", a \\ and a\nline").response
    let json = try #require(try JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any])
    #expect(json["detail"] as? String == "a \"word\", a \\ and a line" && json["code"] as? String == "badRequest")
    #expect(response.status == 400 && response.contentType == "application/problem+json")
    for (status, code) in [(413, "tooLarge"), (431, "tooLarge"), (429, "tooMany"), (504, "overload"), (400, "badRequest")] {
      let problem = HTTPProblem(status: status, "")
      #expect(problem.status == status && problem.code == code)
    }
  }

  @Test func `the endpoint's path, sub-protocol and origins decide what is upgraded, and a refusal names their settings`() throws
  {
    let fixture = try Fixture()
    #expect(try fixture.echoes(fixture.connect()))
    #expect(try TestSocket(fixture.address).upgrade(subprotocol: "other") == 400)
    #expect(try TestSocket(fixture.address).upgrade(origin: "https://friend.example") == 101)
    #expect(try TestSocket(fixture.address).upgrade(origin: "https://stranger.example") == 403)
    let socket = try TestSocket(fixture.address)
    socket.write(
      "GET /other HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: trunkline.v1\r\n\r\n")
    let answer = try #require(socket.response())
    #expect(answer.head.hasPrefix("HTTP/1.1 404") && String(decoding: answer.body, as: UTF8.self).contains("path sets that path"))
  }

  @Test func `without an endpoint an upgrade is refused, and its path is a page like any other`() throws {
    let server = try Fixture.plain { $1(.text(200, "page")) }
    defer { server.stop() }
    #expect(try TestSocket(server.address).upgrade() == 400)
    let socket = try TestSocket(server.address)
    socket.write("GET /v1/connect HTTP/1.1\r\nHost: a\r\n\r\n")
    #expect(socket.response()?.head.hasPrefix("HTTP/1.1 200") == true)
  }

  @Test func `the owner's close has the owner's code, a message beyond the limit 1009, a stop 1012`() throws {
    let fixture = try Fixture()
    let (closing, long, last) = (try fixture.connect(), try fixture.connect(), try fixture.connect())
    closing.text("close")
    #expect(closing.closeCode() == 4_001)
    long.write(TestSocket.frame(1, [UInt8](repeating: 97, count: 65_537)))
    #expect(long.closeCode() == 1_009)
    #expect(fixture.echoes(last))
    fixture.server.stop()
    #expect(last.closeCode() == 1_012)
  }

  /// `answer` may come after the server has stopped, and twice.
  @Test func `requests that come at once while the thread is busy are all answered, also on more than half of the connections`()
    throws
  {
    let (entered, release) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let server = try Fixture.plain { request, answer in
      if request.target.path == "/busy" {
        entered.signal()
        release.wait()
      }
      answer(.text(200, "here"))
    }
    defer { server.stop() }
    func ask(_ path: String) throws -> TestSocket {
      let socket = try TestSocket(server.address)
      socket.write("GET \(path) HTTP/1.1\r\nHost: test\r\n\r\n")
      return socket
    }
    let first = try ask("/busy")
    entered.wait()
    let others = try (0..<60).map { _ in try ask("/") }
    release.signal()
    for socket in [first] + others { #expect(socket.response()?.head.hasPrefix("HTTP/1.1 200") == true) }
  }

  @Test func `answers after the end, a second one, and a second stop do nothing`() throws {
    let held = Mutex<[HTTPRequest.Answer]>([])
    let isHeld = DispatchSemaphore(value: 0)
    let server = try Fixture.plain { _, answer in
      held.withLock { $0.append(answer) }
      isHeld.signal()
    }
    let socket = try TestSocket(server.address)
    socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    isHeld.wait()
    for answer in held.withLock({ $0 }) {
      answer(.text(200, "first"))
      answer(.text(200, "second"))
    }
    #expect(socket.response()?.head.hasPrefix("HTTP/1.1 200") == true)
    server.stop()
    #expect(socket.next() == .end)
    for answer in held.withLock({ $0 }) { answer(.text(200, "late")) }
    server.wake()
    server.distrust()
    server.stop()
  }

  @Test func `an address in use is an error with the setting's name`() throws {
    let fixture = try Fixture()
    var settings = Fixture.settings()
    (settings.address, settings.setting) = (fixture.address, "listen.test")
    #expect {
      _ = try HTTPServer.start(settings, logger: Fixture.logger, delegate: HandlerDelegate { $1(.text(200, "")) })
    } throws: { "\($0)".contains("listen.test") }
  }
}
