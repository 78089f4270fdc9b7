import AppSessions
import JSONWebToken
import Testing
import TrunklineAppProtocol
import TrunklineBytes

@Suite struct ExpiryTests {
  /// Passes time with a client that pings.
  func pass(_ seconds: Int, _ bench: inout Bench, _ id: ConnectionID) {
    for _ in 0..<seconds {
      bench.pass(.seconds(1))
      bench.send(.ping, on: id)
    }
  }
  func expiring(_ frames: [ServerFrame]) -> [Int64] {
    frames.compactMap { if case .message(.authExpiring(let d)) = $0.body { d.at } else { nil } }
  }

  @Test func `a token's end is announced once, a minute before, and closes with 4001`() throws {
    var bench = Bench()
    let client = try bench.login(lives: 140)
    pass(79, &bench, client.connection)
    #expect(expiring(bench.frames(client.connection)).isEmpty)
    pass(2, &bench, client.connection)
    #expect(expiring(bench.frames(client.connection)) == [(Bench.epoch + 140) * 1_000])
    pass(88, &bench, client.connection)
    #expect(bench.closed(client.connection) == nil, "the leeway of 30 s counts here too")
    pass(2, &bench, client.connection)
    #expect(bench.closed(client.connection) == .authFailed)
    #expect(expiring(bench.frames(client.connection)).isEmpty)
    #expect(bench.takeEvents() == [.disconnected(client.device, client.session), .ended(client.device, client.session)])
  }

  @Test(arguments: [(5, 3), (20, 10), (59, 30), (60, 30), (100, 50)])
  func `a short token's end is announced at half of what it has, once, however often it comes again`(lives: Int, after: Int)
    throws
  {
    var bench = Bench()
    let client = try bench.login(lives: Int64(lives))
    pass(after - 1, &bench, client.connection)
    #expect(expiring(bench.frames(client.connection)).isEmpty)
    var told: [Int64] = []
    for n in 0..<(lives - after) {
      pass(1, &bench, client.connection)
      // what a backend with a cache does, and a client that asks it for each second
      bench.send(
        .authRefresh(AuthRefresh(auth: Bench.token(lives: Int64(lives)))), on: client.connection, id: number(UInt64(70 + n)))
      told += expiring(bench.frames(client.connection))
    }
    #expect(told == [(Bench.epoch + Int64(lives)) * 1_000])
  }

  @Test func `auth.refresh is not among the answers that are kept, and has a separate rate`() throws {
    var bench = Bench()
    let client = try bench.login(lives: 40_000)
    var refused = 0
    for n in 0..<3_000 {
      bench.pass(.milliseconds(100))
      bench.send(.authRefresh(AuthRefresh(auth: Bench.token(lives: 400))), on: client.connection, id: number(UInt64(1_000 + n)))
      for frame in bench.frames(client.connection) {
        if case .message(.err(let failure)) = frame.body {
          #expect(failure.code == .tooMany && failure.msg == "auth.refresh came too often")
          refused += 1
        }
      }
    }
    #expect((2_800..<2_900).contains(refused), "ten at once, then one in two seconds: \(refused)")
    _ = bench.takeEvents()
    bench.send(.callAnswer(CallAnswer(ageMs: 5)), on: client.connection, id: number(50), seq: 1, call: callA)
    #expect(bench.takeEvents().count == 1)
  }

  @Test func `auth.refresh moves the end`() throws {
    var bench = Bench()
    let client = try bench.login(lives: 100)
    pass(90, &bench, client.connection)
    _ = bench.frames(client.connection)
    bench.send(.authRefresh(AuthRefresh(auth: Bench.token(lives: 400))), on: client.connection, id: number(70))
    #expect(bench.frames(client.connection).map(\.body) == [.message(.ok(Success()))])
    pass(249, &bench, client.connection)
    #expect(expiring(bench.frames(client.connection)).isEmpty)
    pass(3, &bench, client.connection)
    #expect(expiring(bench.frames(client.connection)) == [(Bench.epoch + 400) * 1_000])
    #expect(bench.closed(client.connection) == nil)
  }

  @Test func `auth.refresh of another user, device or key is refused without harm`() throws {
    var bench = Bench()
    let client = try bench.login()
    for (n, token) in [Bench.token("bob", "d1"), Bench.token("alice", "d2"), "x.y.z"].enumerated() {
      bench.send(.authRefresh(AuthRefresh(auth: token)), on: client.connection, id: number(70 + UInt64(n)))
      guard case .message(.err(let failure))? = bench.frames(client.connection).first?.body else {
        Issue.record("no err")
        continue
      }
      #expect(failure.code == .auth && failure.fatal == nil)
    }
    #expect(bench.closed(client.connection) == nil)
  }

  @Test func `with a live call the socket stays, requests of that call go on, others get err auth`() throws {
    var bench = Bench()
    let client = try bench.login(lives: 100, live: [callA])
    pass(200, &bench, client.connection)
    #expect(bench.closed(client.connection) == nil)
    _ = bench.frames(client.connection)
    bench.send(.callMute(CallMute(on: true)), on: client.connection, id: number(80), seq: 1, call: callA)
    #expect(bench.takeEvents().count == 1)
    bench.send(
      .callStart(CallStart(to: Handle(k: .phone, h: "+1"), sdp: "v")), on: client.connection, id: number(81), seq: 2,
      call: callB)
    bench.send(.deviceState(DeviceState(state: .bg)), on: client.connection, id: number(82))
    bench.send(.callRinging(CallRinging()), on: client.connection, seq: 3, call: callB)
    #expect(bench.takeEvents().isEmpty)
    let codes = bench.frames(client.connection).map { frame -> ErrorCode? in
      if case .message(.err(let failure)) = frame.body { failure.code } else { nil }
    }
    #expect(codes == [.auth, .auth])
    bench.perform(.send(client.device, .callEnded(CallOver(.remoteHangup)), call: callA))
    bench.perform(.callDead(client.device, callA))
    #expect(bench.frames(client.connection).count == 1, "the terminal message goes out first")
    #expect(bench.closed(client.connection) == .authFailed)
  }

  @Test func `an expired session with a live call is upgraded by auth.refresh`() throws {
    var bench = Bench()
    let client = try bench.login(lives: 100, live: [callA])
    pass(200, &bench, client.connection)
    bench.send(.authRefresh(AuthRefresh(auth: Bench.token(lives: 1_000))), on: client.connection, id: number(80))
    bench.perform(.callDead(client.device, callA))
    pass(10, &bench, client.connection)
    #expect(bench.closed(client.connection) == nil)
  }

  @Test func `an expired session with a live call can be resumed, without one it cannot`() throws {
    var bench = Bench()
    let client = try bench.login(lives: 60, live: [callA])
    bench.give(.closed(client.connection, nil))
    bench.pass(.seconds(300))
    let id = bench.resume(client, lastSeq: 0)
    #expect(bench.closed(id) == nil)
    bench.give(.closed(id, nil))
    bench.perform(.callDead(client.device, callA))
    #expect(bench.resumeCode(client, lastSeq: 0) == .authFailed)
  }

  @Test func `a drain closes idle sessions with 1012, those with calls after their last`() throws {
    var bench = Bench()
    let idle = try bench.login("alice", "d1")
    let busy = try bench.login("alice", "d2", live: [callA])
    bench.perform(.drain)
    #expect(bench.closed(idle.connection) == .draining)
    #expect(bench.frames(idle.connection).map(\.body) == [.message(.bye(Bye(code: 1_012)))])
    #expect(bench.closed(busy.connection) == nil)
    // The busy device may come back with the session, and with a token.
    let resumed = bench.resume(busy, lastSeq: 0)
    #expect(bench.closed(resumed) == nil)
    _ = bench.takeEvents()
    let again = bench.open()
    bench.send(.hello(Hello(.auth(Bench.token("alice", "d2")), device: .init(id: "d2"))), on: again, id: number(5))
    guard case .connected(_, let session, _, resumed: false)? = bench.takeEvents().last else {
      Issue.record("no .connected")
      return
    }
    bench.perform(.welcome(session, calls: [], gone: [], live: [callA]))
    #expect(bench.closed(again) == nil)
    let stranger = bench.open()
    bench.send(.hello(Hello(.auth(Bench.token("bob")), device: .init(id: "d1"))), on: stranger, id: number(5))
    #expect(bench.closed(stranger) == .draining)
    bench.perform(.callDead(busy.device, callA))
    #expect(bench.closed(again) == .draining)
  }

  @Test func `with any, whoever has a valid token logs in, and without it again goes`() throws {
    var bench = Bench(users: .any)
    let somebody = try bench.login("whoever")
    bench.reconfigure { $0.users = .any }
    #expect(bench.closed(somebody.connection) == nil)
    bench.reconfigure { $0.users = ["alice"] }
    #expect(bench.closed(somebody.connection) == .revoked)
  }

  @Test func `a user removed by a reload is closed with 4003, after the last call`() throws {
    var bench = Bench()
    let alice = try bench.login("alice", "d1")
    let bob = try bench.login("bob", "d1", live: [callA])
    var output = SessionMachine.Output()
    let settings = SessionSettings(verifier: TokenVerifier(keys: Bench.keys, audience: "trunkline"), users: ["alice"])
    bench.machine.reconfigure(settings, at: bench.now, into: &output)
    #expect(output.actions.isEmpty && output.events.isEmpty)
    bench.send(.callEnd(CallEnd()), on: bob.connection, id: number(8), seq: 1, call: callB)
    guard case .message(.err(let failure))? = bench.frames(bob.connection).first?.body else {
      Issue.record("no err")
      return
    }
    #expect(failure.code == .revoked)
    bench.perform(.callDead(bob.device, callA))
    #expect(bench.closed(bob.connection) == .revoked)
    bench.send(.ping, on: alice.connection)
    #expect(bench.frames(alice.connection).count == 1)
  }

  @Test func `a thousand sessions come and go without a trace`() throws {
    var bench = Bench(users: .listed(Set((0..<1_000).map { "u\($0)" })))
    for round in 0..<2 {
      var clients: [Client] = []
      for n in 0..<1_000 { clients.append(try bench.login("u\(n)", "d", lives: 36_000)) }
      for (n, client) in clients.enumerated() {
        bench.send(.callRinging(CallRinging()), on: client.connection, seq: 1, call: callA)
        bench.give(.closed(client.connection, n % 2 == 0 ? .normal : nil))
      }
      bench.pass(.seconds(121))
      #expect(
        bench.machine.connectedCount == 0 && bench.machine.resumableCount == 0 && bench.machine.connectionCount == 0,
        "\(round)")
      bench.actions = []
      _ = bench.takeEvents()
    }
    bench.pass(.seconds(3_600))
    #expect(bench.machine.nextDeadline == nil)
  }
}
