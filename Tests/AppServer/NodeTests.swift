import AppServer
import AppSessions
import Foundation
import TestSockets
import Testing
import TrunklineAppProtocol
import TrunklineBytes

/// A node in a cluster, over real sockets.
@Suite(.serialized) struct NodeTests {
  private let key = Array("a cluster's key of thirty-two bytes".utf8)
  private let others = [SessionNode("n2.1", url: "wss://phone.example/n/n2/v1/connect")]

  private func cluster(_ node: String) throws -> SessionCluster {
    try #require(SessionCluster(incarnation: "\(node).1", url: "wss://\(node).example/v1/connect", key: key))
  }

  private func wakeToken(_ node: String) throws -> String {
    try cluster(node).wakeTokens.token(
      Wake(call: someCall, device: alice, firstUseBefore: .distantFuture, expiresAt: 4_000_000_000_000))
  }

  /// `n1`, which knows `n2`.
  private func fixture() throws -> Fixture {
    let own = try cluster("n1")
    let fixture = try Fixture { ($0.sessions.cluster, $0.sessions.wakeTokens) = (own, own.wakeTokens) }
    fixture.app.post(.nodes(others))
    _ = try fixture.login("bob", "d1")  // its welcome was posted later
    return fixture
  }

  private func reject(_ fixture: Fixture, _ token: String) throws -> (head: String, body: [UInt8])? {
    let socket = try TestSocket(fixture.app.address)
    socket.write(
      "POST /v1/calls/\(someCall)/reject HTTP/1.1\r\nHost: n1.example\r\nAuthorization: Bearer \(token)\r\n"
        + "Content-Length: 0\r\n\r\n")
    return socket.response()
  }

  @Test func `a reject of another node's call is a 307 to its address, one of a dead node's goes to control`() throws {
    let fixture = try fixture()
    let (head, body) = try #require(try reject(fixture, wakeToken("n2")))
    #expect(head.hasPrefix("HTTP/1.1 307 Temporary Redirect\r\n"))
    #expect(head.split(separator: "\r\n").contains("location: https://phone.example/n/n2/v1/calls/\(someCall)/reject"), "\(head)")
    #expect(body == Array("{}".utf8))
    try expectReject(of: wakeToken("n3"), fixture, .err(Failure(.gone, reason: .gatewayRestart, msg: "the call is over")), 410)
  }

  @Test func `a page of another node, or of a listed origin, may reject across origins; another page may not`() throws {
    let own = try cluster("n1")
    let fixture = try Fixture {
      ($0.sessions.cluster, $0.sessions.wakeTokens, $0.origins) = (own, own.wakeTokens, ["https://phone.test"])
    }
    fixture.app.post(.nodes([SessionNode("n2.1", url: "wss://N2.example:443/v1/connect")]))
    _ = try fixture.login("bob", "d1")
    func ask(_ method: String, _ origin: String, _ more: String = "") throws -> [Substring] {
      let socket = try TestSocket(fixture.app.address)
      socket.write(
        "\(method) /v1/calls/\(someCall)/reject HTTP/1.1\r\nHost: n1.example\r\nOrigin: \(origin)\r\n\(more)Content-Length: 0\r\n\r\n"
      )
      return try #require(socket.response()).head.split(separator: "\r\n")
    }
    for origin in ["https://n2.example", "https://n1.example", "https://phone.test"] {
      let preflight = try ask("OPTIONS", origin, "Access-Control-Request-Method: POST\r\n")
      #expect(preflight.first == "HTTP/1.1 200 OK", "\(preflight)")
      #expect(
        Set(preflight).isSuperset(of: [
          "access-control-allow-origin: \(Substring(origin))", "access-control-allow-methods: POST",
          "access-control-allow-headers: authorization, content-type", "vary: Origin",
        ]), "\(preflight)")
      // a page can read each answer, the refusal of its token included
      let refused = try ask("POST", origin)
      #expect(refused.first?.hasPrefix("HTTP/1.1 401") == true && refused.contains("access-control-allow-origin: \(origin)"))
    }
    for origin in ["https://evil.test", "null", "http://n2.example", "https://n2.example.evil.test"] {
      let preflight = try ask("OPTIONS", origin)
      #expect(preflight.first?.hasPrefix("HTTP/1.1 405") == true && !preflight.contains { $0.hasPrefix("access-control") })
      #expect(try !ask("POST", origin).contains { $0.hasPrefix("access-control") })
    }
  }

  @Test func `pages may connect to all nodes, and pages of nodes to this one; an address that no header can hold is left out`()
    throws
  {
    let own = try cluster("n1")
    let fixture = try Fixture {
      ($0.sessions.cluster, $0.pages) = (own, ["/": Page(contentType: "text/html", bytes: [])])
    }
    fixture.app.post(
      .nodes([
        SessionNode("n2.1", url: "ws://10.0.0.2:8080/n/n2/v1/connect"),
        SessionNode("n3.1", url: "wss://x; script-src *;/v1/connect"),
        SessionNode("n4.1", url: "wss:///v1/connect"), SessionNode("n5.1", url: "gopher://n5/v1/connect"),
      ]))
    _ = try fixture.login("bob", "d1")
    let socket = try TestSocket(fixture.app.address)
    socket.write("GET / HTTP/1.1\r\nHost: phone.test\r\n\r\n")
    let page = try #require(socket.response()).head
    #expect(
      page.contains(
        "connect-src 'self' ws://phone.test http://10.0.0.2:8080 https://n1.example ws://10.0.0.2:8080 wss://n1.example;"),
      "\(page)")
    #expect(try TestSocket(fixture.app.address).upgrade(origin: "http://10.0.0.2:8080") == 101)
    #expect(try TestSocket(fixture.app.address).upgrade(origin: "http://10.0.0.2:8081") == 403)
  }

  @Test func `a reject of a call here goes to control`() throws {
    let fixture = try fixture()
    try expectReject(of: wakeToken("n1"), fixture, .ok, 200)
  }

  /// Control gets the reject, and its answer is returned.
  private func expectReject(of token: String, _ fixture: Fixture, _ answer: RequestAnswer, _ status: Int) throws {
    let socket = try TestSocket(fixture.app.address)
    socket.write(
      "POST /v1/calls/\(someCall)/reject HTTP/1.1\r\nHost: n1.example\r\nAuthorization: Bearer \(token)\r\nContent-Length: 0\r\n\r\n"
    )
    guard case .httpReject(let id, alice, _, someCall)? = fixture.waitFor({ if case .httpReject = $0 { true } else { false } })
    else {
      throw TestTrouble()
    }
    fixture.app.post(.httpAnswer(id, answer))
    let (head, body) = try #require(socket.response())
    #expect(head.hasPrefix("HTTP/1.1 \(status) "), "\(head)")
    if case .err(let failure) = answer { #expect(body == failure.json) }
  }

  @Test func `a wake of another node's call gets that node's address, and the socket closes with 1012`() throws {
    let fixture = try fixture()
    let socket = try fixture.connect()
    let hello = Hello(.wake(try wakeToken("n2")), device: .init(id: ""), caps: ["nodes"])
    socket.send(ClientFrame(.hello(hello), id: Identifier(high: 1, low: 1)))
    guard case .message(.err(let failure))? = socket.message()?.body else { throw TestTrouble() }
    #expect(failure.code == .overload && failure.url == others[0].url && failure.retryMs == 0)
    #expect(socket.closeCode() == 1_012)
  }

  @Test func `a session of another process is welcomed again in the same round trip, and leaves when it is elsewhere`() throws {
    var tokens: Welcome?
    do {
      let before = try fixture()
      let socket = try before.connect()
      socket.send(before.hello(Fixture.token()))
      guard case .message(.welcome(let welcome))? = socket.message()?.body else { throw TestTrouble() }
      tokens = welcome
    }
    let welcome = try #require(tokens)
    let after = try fixture()
    let socket = try after.connect()
    let resume = Hello.Resume(sid: welcome.sid, token: welcome.resumeToken, lastSeq: 3)
    socket.send(
      ClientFrame(.hello(Hello(.resume(resume), device: .init(id: "d1"), caps: ["nodes"])), id: Identifier(high: 1, low: 1)))
    guard case .message(.welcome(let again))? = socket.message()?.body else { throw TestTrouble() }
    #expect(!again.resumed && again.node == "n1" && again.calls == [] && again.sid != welcome.sid)
    after.app.post(.replace(alice, SessionID(again.sid)))
    #expect(socket.closeCode() == 4_009)
  }

  @Test func `changes of nodes, and sessions at other nodes, are received although the queue is full`() throws {
    let own = try cluster("n1")
    let fixture = try Fixture { ($0.sessions.cluster, $0.sessions.wakeTokens) = (own, own.wakeTokens) }
    let socket = try fixture.login()
    let bob = try fixture.login("bob", "d1")
    let bobsDevice = DeviceKey(user: "bob", device: "d1")
    guard
      case .connected(_, let session, _, _)? = fixture.waitFor({
        if case .connected(bobsDevice, _, _, _) = $0 { true } else { false }
      })
    else { throw TestTrouble() }
    let stuck = DispatchSemaphore(value: 0)
    fixture.ears.holdThread(with: stuck)
    socket.send(ClientFrame(.callRinging(CallRinging()), seq: 1, call: someCall))
    #expect(fixture.waitFor { if case .notification = $0 { true } else { false } } != nil)
    while fixture.app.post(.wakesOver(someCall)) {}
    #expect(!fixture.app.post(.nodes(others)))
    #expect(!fixture.app.post(.replace(bobsDevice, session)))
    stuck.signal()
    #expect(bob.closeCode() == 4_009)
    #expect(try reject(fixture, wakeToken("n2"))?.head.hasPrefix("HTTP/1.1 307 ") == true)
  }
}
