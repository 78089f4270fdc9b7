import AppSessions
import Foundation
import TestSockets
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklinePlatform

@testable import AppServer

@Suite(.serialized) struct WebSocketTests {
  @Test func `a session over a real socket: hello, welcome, an offer, its ack, a request and its answer`() throws {
    let fixture = try Fixture()
    let socket = try fixture.login()
    let offer = ServerMessage.callOffer(
      CallOffer(from: Handle(k: .phone, h: "+1"), to: Handle(k: .phone, h: "+2"), acct: "default", sdp: "v=0", gen: 1, exp: 0)
    )
    fixture.app.post(.send(alice, offer, call: someCall))
    #expect(socket.message() == ServerFrame(offer, seq: 1, call: someCall))
    socket.send(ClientFrame(.callAnswer(CallAnswer()), id: Identifier(high: 2, low: 2), seq: 1, ack: 1, call: someCall))
    #expect(fixture.waitFor { if case .offerAcked(alice, _, someCall) = $0 { true } else { false } } != nil)
    guard case .request(_, _, let token, .callAnswer, _)? = fixture.waitFor({ if case .request = $0 { true } else { false } })
    else {
      Issue.record("no request")
      return
    }
    fixture.app.post(.answer(token, .ok(Success(won: true))))
    #expect(socket.message() == ServerFrame(.ok(Success(won: true)), re: Identifier(high: 2, low: 2), ack: 1))
  }

  @Test func `no, another or misspelt sub-protocol is never upgraded`() throws {
    let fixture = try Fixture()
    for name in [nil, "other.v1", "trunkline.v2", "TRUNKLINE.V1", ""] as [String?] {
      let socket = try TestSocket(fixture.app.address)
      let status = socket.upgrade(subprotocol: name)
      #expect(status == nil || (400..<500).contains(status ?? 0), "\(name ?? "none"): \(status ?? 0)")
    }
    let several = try TestSocket(fixture.app.address)
    #expect(several.upgrade(subprotocol: "other.v1, trunkline.v1") == 101)
  }

  @Test func `another path is 404 and another origin 403, our own and the listed ones pass`() throws {
    let fixture = try Fixture { $0.origins = ["https://phone.example"] }
    let address = fixture.app.address
    #expect(try TestSocket(address).upgrade(path: "/v1/other") == 404)
    #expect(try TestSocket(address).upgrade(origin: "https://evil.example") == 403)
    #expect(try TestSocket(address).upgrade(origin: "null") == 403)
    #expect(try TestSocket(address).upgrade(origin: "https://phone.example") == 101)
    #expect(try TestSocket(address).upgrade(origin: "http://gateway.test") == 101)
    #expect(try TestSocket(address).upgrade(origin: "http://gateway.test.evil") == 403)
  }

  @Test func `binary is 1003, above 64 KiB 1009, deep or broken JSON 1007, and nobody else notices`() throws {
    let fixture = try Fixture()
    let bystander = try fixture.login("bob", "d1")
    let binary = try fixture.login("alice", "d1")
    binary.write(TestSocket.frame(2, [1, 2, 3]))
    #expect(binary.closeCode() == 1003)
    let big = try fixture.login("alice", "d2")
    big.write(TestSocket.frame(1, [UInt8](repeating: 0x20, count: 65_537)))
    #expect(big.closeCode() == 1009)
    let pieces = try fixture.login("alice", "d3")
    pieces.write(TestSocket.frame(1, [UInt8](repeating: 0x20, count: 40_000), final: false))
    pieces.write(TestSocket.frame(0, [UInt8](repeating: 0x20, count: 40_000)))
    #expect(pieces.closeCode() == 1009)
    for (n, text) in [String(repeating: "[", count: 60_000), "[]", "{", "{}", "\u{0}", ""].enumerated() {
      let socket = try fixture.login("alice", "e\(n)")
      socket.text(text)
      #expect(socket.closeCode() == 1007, "\(text.prefix(5))")
    }
    let invalid = try fixture.login("alice", "d5")
    invalid.write(TestSocket.frame(1, [0xff, 0xfe]))
    #expect(invalid.closeCode() == 1007)
    #expect(fixture.answersPing(bystander))
  }

  @Test func `a message may come in fragments and byte by byte`() throws {
    let fixture = try Fixture()
    let socket = try fixture.login()
    let ping = Array(#"{"t":"ping"}"#.utf8)
    socket.write(TestSocket.frame(1, Array(ping.prefix(3)), final: false))
    socket.write(TestSocket.frame(9, [7]))
    socket.write(TestSocket.frame(0, Array(ping.dropFirst(3).prefix(4)), final: false))
    socket.write(TestSocket.frame(0, Array(ping.dropFirst(7))))
    #expect(socket.message()?.body == .message(.pong))
    for byte in TestSocket.frame(1, ping) { socket.write([byte]) }
    #expect(socket.message()?.body == .message(.pong))
  }

  @Test(arguments: [
    ("expired", Fixture.token(lives: -60)), ("alg none", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSJ9."),
    ("forged", Fixture.token() + "x"), ("stranger", Fixture.token("mallory")), ("other device", Fixture.token("alice", "d9")),
  ])
  func `a bad token gets err auth and 4001`(name: String, token: String) throws {
    let fixture = try Fixture()
    let socket = try fixture.connect()
    socket.send(fixture.hello(token))
    guard case .message(.err(let failure))? = socket.message()?.body else {
      Issue.record("no err for \(name)")
      return
    }
    #expect(failure.code == .auth && failure.fatal == true)
    #expect(socket.closeCode() == 4001)
  }

  @Test func `a consumer that stops reading is closed with 4008 and cut, others go on`() throws {
    #expect(AppServer.Settings(address: SocketAddress(.loopback, 0), sessions: Fixture.sessions).closeTime == .seconds(5))
    let fixture = try Fixture { $0.closeTime = .milliseconds(100) }
    let slow = try fixture.login(receiveBuffer: 4_096)
    let fine = try fixture.login("bob", "d1")
    let filler = ServerMessage.quality(Quality(level: String(repeating: "x", count: 60_000)))
    for n in 0..<200 {
      fixture.app.post(.send(alice, filler, call: someCall))
      if n % 50 == 0 { #expect(fixture.answersPing(fine)) }
    }
    #expect(fixture.waitFor { if case .ended(alice, _) = $0 { true } else { false } } != nil)
    #expect(fixture.answersPing(fine))
    // Cut after `closeTime`: it is still not reading, then finds the end.
    let cut = Date(timeIntervalSinceNow: 9)
    while slow.write(TestSocket.frame(1, Array(#"{"t":"ping"}"#.utf8))), Date() < cut { Thread.sleep(forTimeInterval: 0.005) }
    #expect(Date() < cut)
    #expect(fixture.answersPing(fine))
  }

  @Test func `an outbox without acks overflows with 4008`() throws {
    let fixture = try Fixture()
    let socket = try fixture.login()
    for n in 0..<257 { fixture.app.post(.send(alice, .callProgress(CallProgress(.ringing, at: Int64(n))), call: someCall)) }
    #expect(socket.closeCode() == 4008)
  }

  @Test func `a silent client is pinged and then closed, one that answers pings stays`() throws {
    let fixture = try Fixture { $0.sessions.heartbeat = .milliseconds(150) }
    let silent = try fixture.login("alice", "d1")
    let alive = try fixture.login("alice", "d2")
    var pings = 0
    let end = Date(timeIntervalSinceNow: 0.9)
    while Date() < end, case .ping(let payload) = alive.next() {
      pings += 1
      alive.write(TestSocket.frame(10, payload))
    }
    #expect(pings >= 4)
    #expect(silent.closeCode() == 1001)
    #expect(fixture.answersPing(alive))
  }

  @Test func `more connections from one address than allowed are closed, and slots become free again`() throws {
    let fixture = try Fixture { $0.connectionsPerAddress = 3 }
    var sockets = try (0..<3).map { _ in try fixture.connect() }
    #expect(try TestSocket(fixture.app.address).upgrade() == nil)
    sockets[0].write(TestSocket.frame(8, [3, 232]))
    #expect(sockets[0].closeCode() == 1000)
    #expect(sockets[0].next() == .end)
    sockets.removeFirst()
    // The gateway sees our end a moment after we close.
    let limit = Date(timeIntervalSinceNow: 5)
    var status: Int?
    while status == nil, Date() < limit { status = try TestSocket(fixture.app.address).upgrade() }
    #expect(status == 101)
  }

  @Test func `more connections in all than allowed are closed`() throws {
    let fixture = try Fixture { $0.connections = 2 }
    let sockets = try (0..<2).map { _ in try fixture.connect() }
    #expect(try TestSocket(fixture.app.address).upgrade() == nil)
    #expect(sockets.count == 2)
  }

  @Test func `commands beyond the queue are refused and the device's session ends with 4008`() throws {
    let fixture = try Fixture()
    let socket = try fixture.login()
    let other = try fixture.login("bob", "d1")
    let stuck = DispatchSemaphore(value: 0)
    fixture.ears.holdThread(with: stuck)
    socket.send(ClientFrame(.callRinging(CallRinging()), seq: 1, call: someCall))
    #expect(fixture.waitFor { if case .notification = $0 { true } else { false } } != nil)
    var refused = 0
    for _ in 0..<70_000 where !fixture.app.post(.send(alice, .quality(Quality(level: "x")), call: someCall)) { refused += 1 }
    #expect(refused >= 70_000 - 65_536)
    stuck.signal()
    #expect(fixture.waitFor { if case .ended(alice, _) = $0 { true } else { false } } != nil)
    #expect(fixture.answersPing(other))
  }

  @Test func `a client's close with 1000 ends the session, a lost connection does not`() throws {
    let fixture = try Fixture()
    let first = try fixture.login("alice", "d1")
    first.write(TestSocket.frame(8, [3, 232]))
    #expect(fixture.waitFor { $0 == .ended(alice, sessionID($0)) } != nil)
    do { _ = try fixture.login("alice", "d2") }  // closed by deinit, without a close frame
    let second = DeviceKey(user: "alice", device: "d2")
    guard
      case .disconnected(_, let session)? = fixture.waitFor({ if case .disconnected(second, _) = $0 { true } else { false } })
    else {
      Issue.record("no .disconnected")
      return
    }
    _ = session
    #expect(try fixture.answersPing(fixture.login("bob", "d1")))
  }
  private func sessionID(_ event: SessionEvent) -> SessionID {
    if case .ended(_, let id) = event { id } else { SessionID("") }
  }

  @Test func `events that control refuses are offered again, in order`() throws {
    let fixture = try Fixture()
    let socket = try fixture.login()
    fixture.ears.refuseEvents(true)
    socket.send(ClientFrame(.callRinging(CallRinging()), seq: 1, call: someCall))
    socket.send(ClientFrame(.mediaReady(MediaReady()), seq: 2, call: someCall))
    #expect(fixture.answersPing(socket))
    fixture.ears.refuseEvents(false)
    #expect(fixture.waitFor { if case .notification(_, _, .mediaReady, _) = $0 { true } else { false } } != nil)
    #expect(fixture.waitFor { if case .notification(_, _, .callRinging, _) = $0 { true } else { false } } != nil)
  }

  @Test func `a second server on the port is refused with a reason, the first goes on`() throws {
    let fixture = try Fixture()
    let address = fixture.app.address
    let error = #expect(throws: SystemError.self) { try Fixture { $0.address = address } }
    #expect(error?.isAddressInUse == true)
    #expect(error?.setting == "listen.app")
    #expect(try fixture.answersPing(fixture.login()))
  }

  @Test func `a stop closes with 1012 and leaves no thread and no descriptor`() throws {
    let fixture = try Fixture()
    let sockets = try (0..<5).map { try fixture.login("alice", "d\($0)") }
    let idle = try TestSocket(fixture.app.address)
    fixture.app.stop()
    for socket in sockets { #expect(socket.closeCode() == 1012) }
    idle.write("G")  // what has said nothing is the kernel's until then
    #expect(idle.next() == .end)
    fixture.app.post(.drain)
    fixture.app.stop()
    let clean = try leavesNothing {
      let fixture = try Fixture()
      let socket = try fixture.login()
      fixture.app.stop()
      #expect(socket.closeCode() == 1012)
    }
    #expect(clean)
  }

  @Test func `rubbish instead of HTTP and half a request harm nobody`() throws {
    let fixture = try Fixture()
    let bystander = try fixture.login()
    let half = try TestSocket(fixture.app.address)
    half.write("GET /v1/connect HTT")
    for text in [
      "\u{16}\u{3}\u{1}", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", String(repeating: "A", count: 100_000), "\r\n\r\n\r\n",
    ] {
      let socket = try TestSocket(fixture.app.address)
      socket.write(text)
      _ = shutdown(socket.fd, Int32(SHUT_WR))
      while case .text = socket.next() {}
    }
    #expect(fixture.answersPing(bystander))
  }
}
