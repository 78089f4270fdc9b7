import AppSessions
import JSONWebToken
import Testing
import TrunklineAppProtocol
import TrunklineBytes

/// A node in a cluster: its statements about itself, where it sends clients, and its answers for a dead node.
@Suite struct NodeTests {
  private let device = DeviceKey(user: "alice", device: "d1")
  private let second = SessionNode("n2.1690000000000", url: "wss://n2.example/v1/connect")
  private let third = SessionNode("n3.1690000000000", url: "wss://n3.example/v1/connect")

  // MARK: welcome

  @Test func `welcome names the node, its address and a spread, to a client that knows nodes`() throws {
    var bench = Bench(node: "n1")
    var client = try bench.login()
    #expect(client.welcome.node == "n1" && client.welcome.url == "wss://n1.example/v1/connect")
    #expect(client.welcome.spreadMs == 0 && client.welcome.caps == ["media.active", "nodes"])
    bench.give(.closed(client.connection, nil))
    let again = bench.resume(client, lastSeq: 0)
    guard case .message(.welcome(let welcome))? = bench.frames(again).first?.body else { throw Trouble("no welcome") }
    #expect(welcome.resumed && welcome.node == "n1" && welcome.spreadMs == 0)
    bench.caps = []
    client = try bench.login("bob")
    #expect(client.welcome.node == nil && client.welcome.url == nil && client.welcome.spreadMs == nil)
    #expect(client.welcome.caps == ["media.active"])
    var alone = Bench()
    alone.caps = ["nodes"]
    client = try alone.login()
    #expect(client.welcome.node == nil && client.welcome.caps == ["media.active"])
    #expect(client.welcome.resumeToken.count == 64, "a random number, as ever")
  }

  @Test func `the spread is the node's sessions at 2000 a second, a minute at most`() throws {
    for (sessions, expected) in [(1, 0), (200, 100), (600, 300)] {
      var bench = Bench(node: "n1")
      bench.reconfigure(cluster: bench.cluster, users: Set((0..<sessions).map { "u\($0)" }))
      var last: Client?
      for index in 0..<sessions { last = try bench.login("u\(index)") }
      #expect(last?.welcome.spreadMs == expected)
    }
  }

  // MARK: wake tokens of other nodes

  @Test func `a wake at the node of its call begins a session`() throws {
    var bench = Bench(node: "n1")
    bench.perform(.nodes([second, third]))
    let (id, session) = bench.wake(bench.wakeToken())
    guard case .connected(device, session, let info, resumed: false)? = bench.takeEvents().last else { throw Trouble("none") }
    #expect(info.onlyCall == callA && bench.closed(id) == nil)
  }

  @Test func `hello wake of one token at three nodes at once: one session, the others get its address`() throws {
    let token = Bench(node: "n2").wakeToken()
    let nodes = [Bench(node: "n1").seen(), second, third]
    var sessions = 0
    for name in ["n1", "n2", "n3"] {
      var bench = Bench(node: name)
      bench.perform(.nodes(nodes))
      let (id, session) = bench.wake(token)
      if session != nil {
        sessions += 1
        #expect(name == "n2" && bench.closed(id) == nil)
      } else {
        let (failure, code) = try bench.failure(id)
        #expect(failure.code == .overload && failure.url == "wss://n2.example/v1/connect" && failure.retryMs == 0)
        #expect(failure.fatal == true && code == .draining)
        #expect(bench.events == [] && bench.machine.stats.refusals == [.otherNode: 1])
      }
    }
    #expect(sessions == 1)
  }

  @Test func `a wake of a dead node begins a session for that call only, which ends by itself`() throws {
    let token = Bench(node: "n2").wakeToken()
    var bench = Bench(node: "n1")
    bench.perform(.nodes([third]))
    let (id, session) = bench.wake(token)
    guard case .connected(device, session, let info, resumed: false)? = bench.takeEvents().last else { throw Trouble("none") }
    #expect(info.onlyCall == callA)
    bench.perform(.welcome(try #require(session), calls: [], gone: [GoneCall(call: callA, over: CallOver(.unknown))], live: []))
    #expect(bench.frames(id).last?.body == .message(.callGone(CallOver(.unknown))))
    bench.send(.callHold(CallHold(on: true)), on: id, id: number(9), seq: 1, call: callB)
    #expect(try bench.failure(id).0.code == .auth)
    for _ in 0..<7 {
      bench.pass(.seconds(10))
      bench.send(.ping, on: id)
    }
    #expect(bench.closed(id) == .authFailed)
  }

  @Test func `an earlier process of this very node is dead, whatever is known of others`() throws {
    let token = Bench(node: "n1", started: 1_680_000_000_000).wakeToken()
    var bench = Bench(node: "n1")
    #expect(bench.wake(token).1 != nil)
  }

  @Test func `before other nodes are known, and for a node that has just begun, no node is considered dead`() throws {
    let cases: [(String, [SessionNode]?)] = [
      (Bench(node: "n2").wakeToken(), nil), (Bench(node: "n4", started: Bench.epoch * 1_000 - 5_000).wakeToken(), [second]),
    ]
    for (token, nodes) in cases {
      var bench = Bench(node: "n1")
      if let nodes { bench.perform(.nodes(nodes)) }
      let (failure, code) = try bench.failure(bench.wake(token).0)
      #expect(failure.code == .overload && failure.url == nil && (1_000..<2_000).contains(failure.retryMs ?? 0))
      #expect(code == .draining)
    }
  }

  @Test func `a dead node's token is accepted for an hour after its time, by the wall clock`() throws {
    let token = Bench(node: "n2").wakeToken()
    for (after, isTaken) in [(Int64(75 + 3_599), true), (75 + 3_601, false)] {
      var bench = Bench(node: "n1")
      bench.perform(.nodes([third]))
      bench.machine.setWallClock(unixMilliseconds: (Bench.epoch + after) * 1_000, at: bench.now)
      let (id, session) = bench.wake(token)
      #expect((session != nil) == isTaken && (bench.closed(id) == .authFailed) == !isTaken)
    }
    // the maker of the token uses a monotonic clock, which no step of the wall clock moves
    var maker = Bench(node: "n2")
    maker.machine.setWallClock(unixMilliseconds: (Bench.epoch + 36_000) * 1_000, at: maker.now)
    #expect(maker.wake(token).1 != nil)
    maker = Bench(node: "n2")
    maker.pass(.seconds(76))
    #expect(maker.wake(token).1 == nil)
  }

  @Test func `a dead node's wake does not replace a live session, which is notified of it`() throws {
    let token = Bench(node: "n2").wakeToken()
    var bench = Bench(node: "n1")
    bench.perform(.nodes([third]))
    let client = try bench.login()
    let (failure, code) = try bench.failure(bench.wake(token).0)
    #expect(failure.code == .gone && failure.reason == .unknown && failure.fatal == true && code == .replaced)
    #expect(bench.closed(client.connection) == nil)
    #expect(bench.takeEvents().last == .callLost(client.device, client.session, call: callA), "control says how it ended")
    bench.give(.closed(client.connection, nil))
    #expect(bench.wake(token).1 != nil)
  }

  @Test func `tokens of another cluster, of another kind and of a node that is alone are refused with 4001`() throws {
    var bench = Bench(node: "n1")
    bench.perform(.nodes([second]))
    var other = Bench(node: "n2", key: Array("another cluster's key, as long as it".utf8))
    let foreign = try other.login()
    #expect(bench.resumeCode(foreign, lastSeq: 0) == .authFailed)
    #expect(bench.wakeCode(other.wakeToken()) == .authFailed)
    let alone = Bench.wakes.token(Wake(call: callA, device: device, firstUseBefore: bench.now + .seconds(75)))
    #expect(bench.wakeCode(alone) == .authFailed)
    let client = try bench.login()
    #expect(bench.wakeCode(client.welcome.resumeToken) == .authFailed, "a resume token is no wake token")
    #expect(bench.resumeCode(client, lastSeq: 0, token: bench.wakeToken()) == .authFailed, "nor the other way round")
    for text in [client.welcome.resumeToken, bench.wakeToken()] {
      let id = bench.open()
      bench.send(.hello(Hello(.auth(text), device: .init(id: "d1"))), on: id, id: number(1))
      #expect(bench.closed(id) == .authFailed, "and neither is a login")
    }
    // a node without a cluster accepts none of them
    var single = Bench(wakes: Bench.wakes)
    #expect(single.resumeCode(client, lastSeq: 0) == .authFailed)
    #expect(single.wakeCode(bench.wakeToken()) == .authFailed)
  }

  @Test func `an invalid incarnation or key makes no cluster`() {
    for (incarnation, key) in [("n1", Bench.clusterKey), ("n1.x", Bench.clusterKey), ("n1.1", []), ("", Bench.clusterKey)] {
      #expect(SessionCluster(incarnation: incarnation, url: "wss://n1.example/v1/connect", key: key) == nil)
    }
    let long = String(repeating: "n", count: Limits.incarnationBytes) + ".1"
    #expect(SessionCluster(incarnation: long, url: "wss://n1.example/v1/connect", key: Bench.clusterKey) == nil)
    #expect(SessionCluster(incarnation: "a.b.1690000000000", url: "", key: Bench.clusterKey) != nil)
  }

  // MARK: call.wake and replace

  @Test func `call wake goes un-numbered to a connected client that knows nodes, and to no other client`() throws {
    let wake = ServerMessage.callWake(CallWake(call: callA, exp: 1, gw: "wss://n2.example/v1/connect", wake: "w"))
    var bench = Bench(node: "n1")
    let client = try bench.login()
    bench.perform(.send(client.device, wake, call: callA))
    #expect(bench.frames(client.connection) == [ServerFrame(wake, call: callA)])
    bench.give(.closed(client.connection, nil))
    bench.perform(.send(client.device, wake, call: callA))
    let again = bench.resume(client, lastSeq: 0)
    #expect(bench.frames(again).count == 1, "not kept for a resume")
    bench.caps = []
    let old = try bench.login("bob")
    bench.perform(.send(old.device, wake, call: callA))
    #expect(bench.frames(old.connection).isEmpty && bench.machine.stats.strayCommands == 1)
  }

  @Test func `a session that has a newer one elsewhere is closed with 4009, a newer one here is not`() throws {
    var bench = Bench(node: "n1")
    let old = try bench.login()
    let new = try bench.login()
    bench.perform(.replace(device, old.session))
    #expect(bench.closed(new.connection) == nil)
    _ = bench.takeEvents()
    bench.perform(.replace(device, new.session))
    #expect(bench.closed(new.connection) == .replaced)
    #expect(bench.takeEvents() == [.disconnected(device, new.session), .ended(device, new.session)])
  }

  // MARK: overload and drain

  @Test func `an overload names the open node with the fewest sessions, which counts one more each time`() throws {
    var bench = Bench(node: "n1", sessions: 1)
    _ = try bench.login("bob")
    func refused() throws -> (Failure, CloseCode?) {
      let id = bench.open()
      bench.send(.hello(Hello(.auth(Bench.token()), device: .init(id: "d1"))), on: id, id: number(1))
      return try bench.failure(id)
    }
    var (failure, code) = try refused()
    #expect(failure.code == .overload && failure.url == nil && code == .tryAgainLater)
    #expect((5_000..<10_000).contains(failure.retryMs ?? 0))
    let own = bench.seen(sessions: 0)
    var (second, third) = (second, third)
    (second.sessions, third.sessions) = (3, 4)
    let full = SessionNode("n4.1", url: "wss://n4.example/v1/connect", isOpen: false)
    bench.perform(.nodes([own, third, second, full]))
    var told: [String?] = []
    for _ in 0..<4 { told.append(try refused().0.url) }
    #expect(told == [second.url, second.url, third.url, second.url])
    (failure, code) = try refused()
    #expect(failure.retryMs == 0 && failure.fatal == true && code == .tryAgainLater)
  }

  @Test func `without a cluster, an overload and a drain are reported as ever`() throws {
    var bench = Bench()
    let client = try bench.login()
    bench.perform(.nodes([second]))
    bench.perform(.drain)
    #expect(bench.frames(client.connection).map(\.body) == [.message(.bye(Bye(code: 1_012)))])
    #expect(bench.closed(client.connection) == .draining)
    let id = bench.open()
    bench.send(.hello(Hello(.auth(Bench.token()), device: .init(id: "d1"))), on: id, id: number(1))
    let (failure, code) = try bench.failure(id)
    #expect(failure == Failure(.overload, msg: "draining", fatal: true) && code == .draining)
  }

  @Test func `a drain sends idle sessions away over time, names other nodes, and keeps those with calls`() throws {
    var bench = Bench(node: "n1")
    bench.perform(.nodes([second, third]))
    bench.reconfigure(cluster: bench.cluster, users: Set((0..<400).map { "u\($0)" } + ["alice", "bob"]))
    let busy = try bench.login(live: [callA])
    var idle: [Client] = []
    for index in 0..<400 { idle.append(try bench.login("u\(index)")) }
    _ = bench.takeEvents()
    bench.perform(.drain)
    bench.perform(.drain)
    var left: [Int] = []
    for _ in 0..<5 {
      left.append(idle.filter { bench.closed($0.connection) == nil }.count)
      bench.pass(.milliseconds(50))
    }
    #expect(left.first == 300 || left.first == 301, "the busy one may be among the first hundred")
    #expect(zip(left, left.dropFirst()).allSatisfy { $0 - $1 <= 100 } && left.last == 0)
    let byes = idle.flatMap { client in
      bench.frames(client.connection).compactMap { if case .message(.bye(let bye)) = $0.body { bye } else { nil } }
    }
    #expect(byes.count == 400 && byes.allSatisfy { $0.code == 1_012 && $0.afterMs == 0 })
    #expect(Set(byes.map(\.url)) == [second.url, third.url])
    #expect(byes.filter { $0.url == second.url }.count == 200)
    // the session's own device resumes for its call; another one cannot
    #expect(bench.closed(busy.connection) == nil)
    let again = try bench.login(live: [callA])
    let id = bench.open()
    bench.send(.hello(Hello(.auth(Bench.token("bob")), device: .init(id: "d1"))), on: id, id: number(1))
    let (failure, code) = try bench.failure(id)
    #expect(failure.url != nil && code == .draining)
    bench.perform(.callDead(device, callA))
    #expect(bench.closed(again.connection) == .draining)
    #expect(bench.machine.connectedCount == 0 && bench.machine.resumableCount == 0)
  }

  @Test func `a drain goes in no order of names or age`() throws {
    var bench = Bench(node: "n1")
    let users = (0..<300).map { "u\($0)" }
    bench.reconfigure(cluster: bench.cluster, users: Set(users))
    let clients = try users.map { try bench.login($0) }
    bench.perform(.drain)
    let first = clients.indices.filter { bench.closed(clients[$0].connection) != nil }
    #expect(first.count == 100 && (60...240).contains(first.reduce(0, +) / 100), "\(first)")
    bench.pass(.milliseconds(100))
    #expect(clients.allSatisfy { bench.closed($0.connection) == .draining })
    #expect(bench.frames(clients[0].connection).last?.body == .message(.bye(Bye(code: 1_012, afterMs: 0))), "nobody to name")
  }

  @Test func `while draining a wake of a call here is accepted, one of a dead node's is redirected`() throws {
    var bench = Bench(node: "n1")
    bench.perform(.nodes([third]))
    bench.perform(.drain)
    let (failure, code) = try bench.failure(bench.wake(Bench(node: "n2").wakeToken()).0)
    #expect(failure.code == .overload && failure.url == third.url && code == .draining)
    let client = try bench.woken(bench.wakeToken(), live: [callA])
    #expect(bench.closed(client.connection) == nil)
    bench.perform(.callDead(device, callA))
    #expect(bench.closed(client.connection) == .draining)
  }

  // MARK: POST /v1/calls/<id>/reject

  private func reject(_ bench: inout Bench, _ token: String, call: Identifier = callA) -> SessionMachine.Action? {
    bench.actions = []
    bench.give(.httpReject(HTTPRequestID(1), call: call, bearer: token, body: []))
    return bench.actions.first
  }

  @Test func `a reject of another node's call is sent there by 307, its path prefix kept`() throws {
    let path = "/v1/calls/\(callA)/reject"
    let cases: [(String, String?)] = [
      ("wss://n2.example/v1/connect", "https://n2.example" + path),
      ("ws://10.0.0.2:8080/v1/connect", "http://10.0.0.2:8080" + path),
      ("wss://phone.example/n/n2/v1/connect", "https://phone.example/n/n2" + path),
      ("wss://[2001:db8::2]/v1/connect", "https://[2001:db8::2]" + path),
      ("wss://n2.example/elsewhere", nil), ("https://n2.example/v1/connect", nil), ("", nil),
      ("wss://n2.example/\r\nSet-Cookie: a=b/v1/connect", nil), ("wss://n2.exämple/v1/connect", nil),
      ("wss://" + String(repeating: "n", count: 2_048) + "/v1/connect", nil),
    ]
    let token = Bench(node: "n2").wakeToken()
    for (url, location) in cases {
      var bench = Bench(node: "n1")
      bench.perform(.nodes([SessionNode("n2.1690000000000", url: url)]))
      let action = reject(&bench, token)
      if let location {
        #expect(action == .httpRedirect(HTTPRequestID(1), location: location))
        #expect(bench.machine.stats.httpAnswers == [307: 1])
      } else {
        guard case .httpAnswer(_, status: 503, _)? = action else { throw Trouble("\(url): \(String(describing: action))") }
      }
      #expect(bench.events == [])
    }
  }

  @Test func `a reject of a dead node's call goes to control, of another call it is 401, of a node that is not known yet 503`()
    throws
  {
    let token = Bench(node: "n2").wakeToken()
    var bench = Bench(node: "n1")
    guard case .httpAnswer(_, status: 503, _)? = reject(&bench, token) else { throw Trouble("not known yet") }
    bench.perform(.nodes([second]))
    guard case .httpAnswer(_, status: 401, _)? = reject(&bench, token, call: callB) else { throw Trouble("another call") }
    bench.perform(.nodes([third]))
    #expect(reject(&bench, token) == nil)
    #expect(bench.takeEvents() == [.httpReject(HTTPRequestID(1), device, CallReject(), call: callA)])
    bench.perform(.httpAnswer(HTTPRequestID(1), .err(Failure(.gone, reason: .gatewayRestart))))
    let own = bench.wakeToken()
    #expect(reject(&bench, own) == nil)
    #expect(bench.takeEvents() == [.httpReject(HTTPRequestID(1), device, CallReject(), call: callA)])
  }

  @Test func `nodes beyond the limit are ignored`() throws {
    var bench = Bench(node: "n1", sessions: 0)
    let many = (1...Limits.nodes).map { SessionNode("m\($0).1", url: "", sessions: 1) }
    bench.perform(.nodes(many + [second]))
    let id = bench.open()
    bench.send(.hello(Hello(.auth(Bench.token()), device: .init(id: "d1"))), on: id, id: number(1))
    #expect(try bench.failure(id).0.url == nil)
  }
}
