import AppSessions
import JSONWebToken
import Testing
import TrunklineAppProtocol
import TrunklineBytes

@Suite struct HelloTests {
  func hello(_ proof: Hello.Proof, device: String = "d1") -> ClientMessage { .hello(Hello(proof, device: .init(id: device))) }

  @Test func `welcome has the key that browsers subscribe with, also of a resume, and none where there is none`() throws {
    var bench = Bench()
    #expect(try bench.login("bob").welcome.push == nil)
    bench.reconfigure { $0.webPushKey = "BKey" }
    let client = try bench.login()
    #expect(client.welcome.push == .init(webpush: "BKey"))
    bench.give(.closed(client.connection, nil))
    let id = bench.resume(client, lastSeq: 0)
    guard case .message(.welcome(let again))? = bench.frames(id).first?.body else { throw Trouble("no welcome") }
    #expect(again.resumed && again.push == .init(webpush: "BKey"))
  }

  @Test func `hello with a token is welcomed by control, with the snapshot, then the calls gone`() throws {
    var bench = Bench(ice: [ICEServer(urls: ["stun:s"])])
    let id = bench.open()
    let info = Hello(
      .auth(Bench.token()), device: .init(id: "d1", platform: "ios", model: "m", os: "18", sdk: "1"), caps: ["media.active"],
      state: .bg)
    bench.send(.hello(info), on: id, id: number(9))
    guard case .connected(let device, let session, let seen, resumed: false)? = bench.takeEvents().first else {
      Issue.record("no .connected")
      return
    }
    #expect(device == DeviceKey(user: "alice", device: "d1"))
    #expect(seen == DeviceInfo(platform: "ios", model: "m", os: "18", sdk: "1", caps: ["media.active"], state: .bg))
    #expect(bench.actions.isEmpty, "nothing goes out before control's welcome")
    let snapshot = CallSnapshot(
      call: callA, dir: .incoming, state: .ringing, from: Handle(k: .phone, h: "+1"), to: Handle(k: .phone, h: "+2"),
      acct: "default",
      sdp: "v=0", gen: 1, at: 5)
    bench.perform(
      .welcome(session, calls: [snapshot], gone: [GoneCall(call: callB, over: CallOver(.callerCancelled))], live: [callA]))
    let frames = bench.frames(id)
    guard case .message(.welcome(let welcome))? = frames.first?.body else {
      Issue.record("no welcome")
      return
    }
    #expect(frames[0].re == number(9) && frames[0].seq == nil && frames[0].ack == nil)
    #expect(welcome.sid == session.text && welcome.resumed == false && welcome.replayFrom == 1 && welcome.hb == 15_000)
    #expect(
      welcome.calls == [snapshot] && welcome.ice == [ICEServer(urls: ["stun:s"])] && welcome.time == Bench.epoch * 1_000)
    #expect(welcome.resumeToken.utf8.count == 64)
    #expect(frames.count == 2)
    #expect(frames[1] == ServerFrame(.callGone(CallOver(.callerCancelled)), seq: 1, call: callB))
  }

  static let bad: [(String, SessionRefusal, String)] = [
    ("expired", .tokenExpired, Bench.token(lives: -31)),
    ("exp in milliseconds", .tokenExpiryInMilliseconds, Bench.token(lives: Bench.epoch * 999)),
    ("another audience", .tokenAudience, other(aud: "x")),
    ("unknown user", .unknownUser, Bench.token("mallory")), ("another device", .deviceMismatch, Bench.token("alice", "d2")),
    ("alg none", .tokenAlgorithm, "eyJhbGciOiJub25lIn0.e30."),
    ("forged", .tokenSignature, String(Bench.token().dropLast(4)) + "AAAA"),
    ("rubbish", .tokenMalformed, "rubbish"),
  ]
  static func other(aud: String) -> String {
    try! Bench.signer.sign(Claims(sub: "alice", dev: "d1", aud: [aud], exp: Bench.epoch + 60))
  }

  @Test(arguments: bad) func `a token refused gets err auth, fatal, with re, then 4001`(
    name: String, why: SessionRefusal, token: String
  ) {
    var bench = Bench()
    let id = bench.open()
    bench.send(hello(.auth(token)), on: id, id: number(3))
    let frames = bench.frames(id)
    guard case .message(.err(let failure))? = frames.first?.body else {
      Issue.record("no err for \(name)")
      return
    }
    #expect(failure.code == .auth && failure.fatal == true && frames.first?.re == number(3))
    #expect(bench.closed(id) == .authFailed)
    #expect(bench.events.isEmpty)
    #expect(bench.machine.stats.refusals == [why: 1])
  }

  @Test func `a refused login is told with its reason; a user only of a token that is genuine`() {
    var bench = Bench()
    for (_, why, token) in Self.bad {
      let id = bench.open()
      bench.send(hello(.auth(token)), on: id, id: number(3))
      let login = bench.refusedLogins.last
      #expect(login?.refusal == why && login?.device == "d1" && login?.why.isEmpty == false && login?.address != nil)
      let user: String? = why == .unknownUser ? "mallory" : why == .deviceMismatch ? "alice" : nil
      #expect(login?.user == user, "\(why)")
    }
    #expect(bench.refusedLogins.count == Self.bad.count)
  }

  @Test func `a wake token is refused while nobody verifies them`() {
    var bench = Bench()
    let id = bench.open()
    bench.send(hello(.wake("w")), on: id, id: number(3))
    #expect(bench.closed(id) == .authFailed)
    #expect(bench.machine.stats.refusals == [.wakeToken: 1])
  }

  @Test func `another first message, or a malformed hello, closes with 4001`() {
    var bench = Bench()
    let ping = bench.open()
    bench.send(.ping, on: ping)
    #expect(bench.closed(ping) == .authFailed)
    let unknown = bench.open()
    bench.text(#"{"t":"whatever"}"#, on: unknown)
    #expect(bench.closed(unknown) == .authFailed)
    let two = bench.open()
    bench.text(
      #"{"t":"hello","id":"00000000-0000-0000-0000-000000000001","d":{"auth":"a","wake":"b","device":{"id":"d"}}}"#, on: two)
    #expect(bench.closed(two) == .authFailed)
    #expect(bench.frames(two).first?.re == number(1))
  }

  @Test func `five seconds without hello close with 4001`() {
    var bench = Bench()
    let id = bench.open()
    bench.pass(.milliseconds(4_999))
    #expect(bench.closed(id) == nil)
    bench.pass(.milliseconds(1))
    #expect(bench.closed(id) == .authFailed)
    bench.give(.closed(id, nil))
    #expect(bench.machine.connectionCount == 0)
    #expect(bench.machine.nextDeadline == nil || bench.takeEvents().isEmpty)
  }

  @Test func `a newer connection of the same device replaces the older, which ends`() throws {
    var bench = Bench()
    let old = try bench.login()
    let id = bench.open()
    bench.send(hello(.auth(Bench.token())), on: id, id: number(4))
    #expect(bench.closed(old.connection) == .replaced)
    let events = bench.takeEvents()
    #expect(events.count == 3)
    #expect(events[0] == .disconnected(old.device, old.session))
    #expect(events[1] == .ended(old.device, old.session))
    guard case .connected(old.device, let session, _, resumed: false) = events[2] else {
      Issue.record("no .connected")
      return
    }
    #expect(session != old.session)
    // What control sent before it knew of the new session is dropped: the snapshot stands for it.
    bench.perform(.send(old.device, offer, call: callA))
    bench.perform(.welcome(session, calls: [], gone: [], live: []))
    bench.perform(.send(old.device, progress(1), call: callA))
    let frames = bench.frames(id)
    #expect(frames.count == 2)
    #expect(frames[1].seq == 1)
    // The old socket's end changes nothing.
    bench.give(.closed(old.connection, nil))
    #expect(bench.takeEvents().isEmpty)
    #expect(bench.machine.connectedCount == 1)
  }

  @Test func `devices of one user and of others stand side by side`() throws {
    var bench = Bench()
    let one = try bench.login("alice", "d1")
    let two = try bench.login("alice", "d2")
    let bob = try bench.login("bob", "d1")
    for client in [one, two, bob] {
      bench.send(.ping, on: client.connection)
      #expect(bench.frames(client.connection).map(\.body) == [.message(.pong)])
    }
    #expect(bench.machine.connectedCount == 3)
  }

  @Test func `one user has at most 32 devices, the 33rd is told tooMany`() throws {
    var bench = Bench()
    for n in 0..<32 { _ = try bench.login("alice", "d\(n)") }
    let id = bench.open()
    bench.send(hello(.auth(Bench.token("alice", "d32")), device: "d32"), on: id, id: number(4))
    guard case .message(.err(let failure))? = bench.frames(id).first?.body else {
      Issue.record("no err")
      return
    }
    #expect(failure.code == .tooMany)
    #expect(bench.closed(id) == .tryAgainLater)
    _ = try bench.login("bob", "d1")
    _ = try bench.login("alice", "d31")
  }

  @Test func `a session without socket and call gives way to a device that is there, the longest away first`() throws {
    var bench = Bench()
    var clients: [Client] = []
    for n in 0..<32 { clients.append(try bench.login("alice", "d\(n)", live: n == 5 ? [callA] : [])) }
    for n in [5, 9, 7] {
      bench.give(.closed(clients[n].connection, nil))
      bench.pass(.milliseconds(10))
    }
    func isThere(_ n: Int) -> Bool {
      var copy = bench
      return copy.resumeCode(clients[n], lastSeq: 0) == nil
    }
    #expect(isThere(9) && isThere(7))
    _ = try bench.login("alice", "e1")
    #expect(!isThere(9) && isThere(7))
    bench.pass(.seconds(1))
    _ = try bench.login("alice", "e2")
    #expect(!isThere(7) && isThere(5))
    bench.pass(.seconds(1))
    // one with a call stays
    let id = bench.open()
    bench.send(hello(.auth(Bench.token("alice", "e3")), device: "e3"), on: id, id: number(4))
    guard case .message(.err(let failure))? = bench.frames(id).first?.body else { throw Trouble("no err") }
    #expect(failure.code == .tooMany)
  }

  @Test func `beyond the most sessions in all hello gets overload and 1013, until one has ended`() throws {
    var bench = Bench()
    bench.reconfigure { $0.sessions = 2 }
    let first = try bench.login("alice", "d1")
    _ = try bench.login("alice", "d2")
    let id = bench.open()
    bench.send(hello(.auth(Bench.token("alice", "d3")), device: "d3"), on: id, id: number(4))
    guard case .message(.err(let failure))? = bench.frames(id).first?.body else {
      Issue.record("no err")
      return
    }
    #expect(failure.code == .overload)
    #expect(bench.closed(id) == .tryAgainLater)
    bench.give(.closed(first.connection, .normal))
    _ = try bench.login("alice", "d3")
  }

  @Test func `a command that did not fit the queue ends the device's session`() throws {
    var bench = Bench()
    let client = try bench.login()
    bench.give(.commandLost(client.device))
    #expect(bench.closed(client.connection) == .overflow)
    let id = bench.open()
    bench.send(hello(.auth(Bench.token())), on: id, id: number(4))
    guard case .connected(_, let session, _, _)? = bench.takeEvents().last else {
      Issue.record("no .connected")
      return
    }
    bench.give(.welcomeLost(session))
    #expect(bench.closed(id) == .tryAgainLater)
    #expect(bench.takeEvents() == [.disconnected(client.device, session), .ended(client.device, session)])
  }

  @Test func `a socket that closes before control's welcome leaves nothing`() {
    var bench = Bench()
    let id = bench.open()
    bench.send(hello(.auth(Bench.token())), on: id, id: number(4))
    guard case .connected(let device, let session, _, _)? = bench.takeEvents().first else {
      Issue.record("no .connected")
      return
    }
    bench.give(.closed(id, nil))
    #expect(bench.takeEvents() == [.disconnected(device, session), .ended(device, session)])
    bench.perform(.welcome(session, calls: [], gone: [], live: []))
    #expect(bench.actions.isEmpty)
    #expect(bench.machine.connectedCount == 0 && bench.machine.resumableCount == 0)
  }

  @Test func `hello a second time is badRequest`() throws {
    var bench = Bench()
    let client = try bench.login()
    bench.send(hello(.auth(Bench.token())), on: client.connection, id: number(8))
    guard case .message(.err(let failure))? = bench.frames(client.connection).first?.body else {
      Issue.record("no err")
      return
    }
    #expect(failure.code == .badRequest)
  }
}
