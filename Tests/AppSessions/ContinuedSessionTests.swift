import AppSessions
import JSONWebToken
import Testing
import TrunklineAppProtocol
import TrunklineBytes

/// A resume in a cluster: a session that this node does not have continues as a new one, in the same round trip.
@Suite struct ContinuedSessionTests {
  private let second = Bench(node: "n2").seen()
  private let third = Bench(node: "n3").seen()

  /// Another node, which knows `nodes`.
  private func other(_ nodes: [SessionNode]) -> Bench {
    var bench = Bench(node: "n1")
    bench.perform(.nodes(nodes))
    return bench
  }

  @Test func `at its own node a session is resumed as ever, also by a token of before a refresh`() throws {
    var bench = Bench(node: "n2")
    let client = try bench.login(lives: 200, live: [callA])
    bench.perform(.send(client.device, offer, call: callA))
    bench.give(.closed(client.connection, nil))
    let id = bench.resume(client, lastSeq: 0)
    let frames = bench.frames(id)
    guard case .message(.welcome(let welcome))? = frames.first?.body else { throw Trouble("no welcome") }
    #expect(welcome.resumed && welcome.sid == client.welcome.sid && frames.dropFirst().map(\.seq) == [1])
    bench.send(.authRefresh(AuthRefresh(auth: Bench.token(lives: 1_000))), on: id, id: number(3))
    bench.give(.closed(id, nil))
    #expect(bench.resumeCode(client, lastSeq: 0) == nil)
    guard case .message(.welcome(let later))? = bench.frames(ConnectionID(3)).first?.body else { throw Trouble("no welcome") }
    #expect(later.resumed && later.resumeToken != welcome.resumeToken, "the new one has the new login's time")
  }

  @Test func `a login's resume elsewhere is welcomed with a new session, whether its node lives or is dead`() throws {
    for nodes in [[second, third], [third], []] {
      var home = Bench(node: "n2")
      home.caps = ["nodes", "quality"]
      let client = try home.login(lives: 100)
      var bench = other(nodes)
      let (new, info) = try bench.resumeAsNew(client, lastSeq: 17)
      #expect(new.device == client.device && new.session != client.session && new.welcome.replayFrom == 1)
      #expect(new.welcome.node == "n1" && new.welcome.calls == [])
      #expect(info.onlyCall == nil && info.accounts == ["default"])
      #expect(bench.machine.stats.continued == 1 && bench.machine.stats.refusals.isEmpty)
      // the new session still has the login's own expiry
      for _ in 0..<11 {
        bench.pass(.seconds(10))
        bench.send(.ping, on: new.connection)
      }
      #expect(bench.frames(new.connection).contains { if case .message(.authExpiring) = $0.body { true } else { false } })
      for _ in 0..<2 {
        bench.pass(.seconds(10))
        bench.send(.ping, on: new.connection)
      }
      #expect(bench.closed(new.connection) == .authFailed)
    }
  }

  @Test func `a node that was restarted, a session that is over, and one that cannot be replayed go on as new`() throws {
    var home = Bench(node: "n2")
    let client = try home.login()
    var restarted = Bench(node: "n2", started: 1_691_000_000_000)
    _ = try restarted.resumeAsNew(client)
    home.perform(.send(client.device, offer, call: callA))
    home.send(.ack, on: client.connection, ack: 1)
    home.give(.closed(client.connection, nil))
    let (again, _) = try home.resumeAsNew(client, lastSeq: 0)
    #expect(again.session != client.session)
    home.give(.closed(again.connection, nil))
    home.pass(.seconds(121))
    #expect(home.takeEvents().last == .ended(again.device, again.session))
    _ = try home.resumeAsNew(again)
  }

  @Test func `it replaces the session that its device has there`() throws {
    var home = Bench(node: "n2")
    let client = try home.login()
    var bench = other([second])
    let old = try bench.login()
    _ = bench.takeEvents()
    let id = bench.resume(client, lastSeq: 0)
    #expect(bench.closed(old.connection) == .replaced && bench.closed(id) == nil)
    #expect(
      bench.takeEvents().prefix(2) == [.disconnected(old.device, old.session), .ended(old.device, old.session)])
  }

  @Test func `forged, another device's, of a user who is gone, expired: 4001`() throws {
    var home = Bench(node: "n2")
    let client = try home.login(lives: 100)
    let token = client.welcome.resumeToken
    let parts = token.split(separator: ".").map(String.init)
    let none = Base64URL.encode(Array(#"{"alg":"none"}"#.utf8)) + "." + parts[1] + "."
    for text in [
      none, parts[0] + "." + parts[1] + ".", "", "..", String(token.dropLast(2)) + "AA", String(repeating: "x", count: 8_192),
    ] {
      var bench = other([second])
      #expect(bench.resumeCode(client, lastSeq: 0, token: text) == .authFailed, "\(text.prefix(80))")
      #expect(bench.takeEvents() == [])
      #expect(home.resumeCode(client, lastSeq: 0, token: text) == .authFailed, "nor where the session is")
    }
    var bench = other([second])
    var wrong = client
    wrong.device.device = "d2"
    #expect(bench.resumeCode(wrong, lastSeq: 0) == .authFailed)
    wrong = client
    wrong.welcome.sid = "another session's"
    #expect(bench.resumeCode(wrong, lastSeq: 0) == .authFailed)
    #expect(bench.machine.stats.refusals == [.deviceMismatch: 1, .resumeUnknown: 1])
    bench.reconfigure(cluster: bench.cluster, users: ["bob"])
    #expect(bench.resumeCode(client, lastSeq: 0) == .authFailed)
    bench = other([second])
    bench.machine.setWallClock(unixMilliseconds: (Bench.epoch + 129) * 1_000, at: bench.now)
    #expect(bench.resumeCode(client, lastSeq: 0) == nil, "in its leeway")
    bench = other([second])
    bench.machine.setWallClock(unixMilliseconds: (Bench.epoch + 131) * 1_000, at: bench.now)
    #expect(bench.resumeCode(client, lastSeq: 0) == .authFailed)
  }

  // MARK: sessions that a wake token began

  @Test func `a woken session whose node is dead continues for its call only`() throws {
    var home = Bench(node: "n2")
    let client = try home.woken(home.wakeToken(), live: [callA])
    var bench = other([third])
    bench.pass(.seconds(1_200))
    let (new, info) = try bench.resumeAsNew(client)
    #expect(info.onlyCall == callA)
    bench.send(.callHold(CallHold(on: true)), on: new.connection, id: number(9), seq: 1, call: callB)
    #expect(try bench.failure(new.connection).0.code == .auth)
    bench.give(.closed(new.connection, nil))
    _ = bench.takeEvents()
    // and again at a node that does not know the dead one
    var last = Bench(node: "n3")
    last.perform(.nodes([]))
    #expect(try last.resumeAsNew(new).1.onlyCall == callA)
  }

  @Test func `a woken session whose node lives is sent there: its call does`() throws {
    var home = Bench(node: "n2")
    let client = try home.woken(home.wakeToken(), live: [callA])
    var bench = other([second])
    let (failure, code) = try bench.failure(bench.resume(client, lastSeq: 0))
    #expect(failure.code == .overload && failure.url == second.url && failure.retryMs == 0 && code == .draining)
    bench = Bench(node: "n1")
    #expect(try bench.failure(bench.resume(client, lastSeq: 0)).0.url == nil, "nothing heard yet")
  }

  @Test func `a woken session of a dead node does not replace a login`() throws {
    var home = Bench(node: "n2")
    let client = try home.woken(home.wakeToken(), live: [callA])
    var bench = other([third])
    let login = try bench.login()
    let (failure, code) = try bench.failure(bench.resume(client, lastSeq: 0))
    #expect(failure.code == .gone && code == .replaced && bench.closed(login.connection) == nil)
    #expect(bench.takeEvents().last == .callLost(login.device, login.session, call: callA), "control says how it ended")
  }

  @Test func `a woken session that a refresh made a login continues as one at its node`() throws {
    var home = Bench(node: "n2")
    let client = try home.woken(home.wakeToken(), live: [callA])
    home.send(.authRefresh(AuthRefresh(auth: Bench.token())), on: client.connection, id: number(3))
    home.send(.callRinging(CallRinging()), on: client.connection, seq: 1, call: callA)
    home.give(.closed(client.connection, nil))
    let (_, info) = try home.resumeAsNew(client, lastSeq: 9)
    #expect(info.onlyCall == nil)
  }

  // MARK: load, drain, size

  @Test func `an overload and a drain send a resume on, too`() throws {
    var home = Bench(node: "n2")
    let client = try home.login()
    var full = Bench(node: "n1", sessions: 0)
    full.perform(.nodes([third]))
    let (failure, code) = try full.failure(full.resume(client, lastSeq: 0))
    #expect(failure.code == .overload && failure.url == third.url && code == .tryAgainLater)
    var draining = other([third])
    draining.perform(.drain)
    let (second, closed) = try draining.failure(draining.resume(client, lastSeq: 0))
    #expect(second.code == .overload && second.url == third.url && closed == .draining)
  }

  @Test(arguments: [
    (["default"], true), ([], true), (["sales", "home \"quoted\" \u{1}"], true),
    ((1...9).map { "account-\($0)-" + String(repeating: "\u{1}\"ä", count: 40) }, false),
    ((1...64).map { "a\($0)" }, true),
  ])
  func `a token has the accounts, as many as fit into 1 KB`(accounts: [String], fits: Bool) throws {
    var home = Bench(node: "n2")
    let id = home.open()
    let token = try Bench.signer.sign(
      Claims(sub: "alice", dev: "d1", aud: ["trunkline"], exp: Bench.epoch + 3_600, acct: accounts.isEmpty ? nil : accounts))
    home.send(.hello(Hello(.auth(token), device: .init(id: "d1"))), on: id, id: number(1))
    guard case .connected(let device, let session, let info, resumed: false)? = home.takeEvents().last else {
      throw Trouble("not connected")
    }
    home.perform(.welcome(session, calls: [], gone: [], live: []))
    guard case .message(.welcome(let welcome))? = home.frames(id).first?.body else { throw Trouble("no welcome") }
    #expect(welcome.resumeToken.utf8.count <= 1_024)
    var bench = other([second])
    let client = Client(connection: id, device: device, session: session, welcome: welcome)
    let (_, again) = try bench.resumeAsNew(client)
    #expect(fits ? again.accounts == info.accounts : info.accounts.starts(with: again.accounts) && !again.accounts.isEmpty)
  }

  @Test func `names of the longest kind still make a token that can be read`() throws {
    let user = String(repeating: "\u{1}", count: 256)
    let device = String(repeating: "\u{2}", count: 256)
    var home = Bench(node: "n2")
    home.reconfigure(cluster: home.cluster, users: [user])
    let client = try home.login(user, device)
    #expect(client.welcome.resumeToken.utf8.count < 8_192)
    var bench = other([second])
    bench.reconfigure(cluster: bench.cluster, users: [user])
    _ = try bench.resumeAsNew(client)
  }
}
