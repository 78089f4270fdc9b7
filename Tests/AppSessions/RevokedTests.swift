import AppSessions
import JSONWebToken
import Testing
import TrunklineAppProtocol
import TrunklineBytes

/// Nothing is answered, and nothing that a device says is passed on, before control has said whether it may act.
@Suite struct RevokedTests {
  private func hello(_ bench: inout Bench) throws -> (ConnectionID, SessionID) {
    let id = bench.open()
    bench.send(.hello(Hello(.auth(Bench.token()), device: .init(id: "d1"))), on: id, id: number(1))
    guard case .connected(_, let session, _, resumed: false)? = bench.takeEvents().last else { throw Trouble("no .connected") }
    return (id, session)
  }

  private func start(_ bench: inout Bench, on id: ConnectionID, seq: Int = 1) {
    let start = CallStart(to: Handle(k: .phone, h: "+4915"), sdp: "v=0")
    bench.send(.callStart(start), on: id, id: number(10 + UInt64(seq)), seq: seq, call: callA)
  }

  @Test func `what comes behind a hello waits; of a revoked device nothing of it is passed on, and there is no welcome`() throws {
    var bench = Bench(ice: [ICEServer(urls: ["turn:t"])])
    let (id, session) = try hello(&bench)
    start(&bench, on: id)
    bench.send(.ping, on: id)
    #expect(bench.events.isEmpty && bench.actions.isEmpty, "nothing is answered before control has spoken")
    bench.perform(.refuse(session, .deviceRevoked(fatal: true)))
    let frames = bench.frames(id)
    guard frames.count == 1, case .message(.err(let failure)) = frames[0].body else { throw Trouble("\(frames)") }
    #expect(failure.code == .revoked && failure.fatal == true && frames[0].re == number(1))
    #expect(bench.closed(id) == .revoked && bench.machine.stats.refusals == [.deviceRevoked: 1])
    #expect(!bench.takeEvents().contains { if case .request = $0 { true } else { false } })
    #expect(bench.refusedLogins.last?.refusal == .deviceRevoked && bench.refusedLogins.last?.user == "alice")
    #expect(bench.machine.connectedCount == 0 && bench.machine.resumableCount == 0)
  }

  @Test func `what waited is taken in its order behind the welcome`() throws {
    var bench = Bench()
    let (id, session) = try hello(&bench)
    start(&bench, on: id)
    bench.send(.ping, on: id)
    bench.send(.callRinging(CallRinging()), on: id, seq: 2, call: callB)
    bench.perform(.welcome(session, calls: [], gone: [], live: []))
    let types = bench.frames(id).map(\.body)
    guard case .message(.welcome)? = types.first else { throw Trouble("no welcome") }
    #expect(types.dropFirst().contains(.message(.pong)))
    let events = bench.takeEvents()
    guard events.count == 2, case .request(_, session, _, .callStart, call: callA) = events[0],
      case .notification(_, session, .callRinging, call: callB) = events[1]
    else { throw Trouble("\(events)") }
  }

  @Test func `no more waits than the limit: the connection is closed with 1008, the session is gone`() throws {
    var bench = Bench()
    let (id, session) = try hello(&bench)
    for _ in 0..<Limits.earlyMessages { bench.send(.ping, on: id) }
    #expect(bench.closed(id) == nil)
    bench.send(.ping, on: id)
    #expect(bench.closed(id) == .policy)
    bench.perform(.welcome(session, calls: [], gone: [], live: []))
    #expect(bench.frames(id).isEmpty && bench.machine.stats.strayCommands == 1)
    var second = Bench()
    let (other, _) = try hello(&second)
    let start = CallStart(to: Handle(k: .phone, h: "+4915"), sdp: String(repeating: "a", count: 40_000))
    for seq in 1...2 { second.send(.callStart(start), on: other, id: number(UInt64(seq) + 1), seq: seq, call: callA) }
    #expect(second.closed(other) == .policy, "bytes count too")
  }

  @Test func `a user that a reload takes out between hello and welcome is not welcomed`() throws {
    var bench = Bench(ice: [ICEServer(urls: ["turn:t"])])
    let (id, session) = try hello(&bench)
    start(&bench, on: id)
    bench.reconfigure { $0.users = ["bob"] }
    bench.perform(.welcome(session, calls: [], gone: [], live: []))
    let (failure, code) = try bench.failure(id)
    #expect(failure.code == .revoked && code == .revoked)
    #expect(!bench.takeEvents().contains { if case .request = $0 { true } else { false } })
  }

  @Test func `the second socket of a device that was revoked in a call is refused, and the first goes on`() throws {
    var bench = Bench()
    let client = try bench.login(live: [callA])
    bench.perform(.revoke(client.device))
    let id = bench.open()
    bench.send(.hello(Hello(.auth(Bench.token()), device: .init(id: "d1"))), on: id, id: number(1))
    let (failure, _) = try bench.failure(id)
    #expect(failure.code == .revoked)
    #expect(bench.actions.contains(.close(id, .revoked)) && !bench.actions.contains(.close(client.connection, .replaced)))
    bench.send(.callHold(CallHold(on: true)), on: client.connection, id: number(3), seq: 1, call: callA)
    guard case .request(_, client.session, _, .callHold, call: callA)? = bench.takeEvents().last else {
      throw Trouble("the call is untouched")
    }
    bench.perform(.callDead(client.device, callA))
    #expect(bench.actions.contains(.close(client.connection, .revoked)))
  }

  @Test func `a request by HTTP waits for control, whose answer is passed on`() {
    var bench = Bench()
    let device = DeviceKey(user: "alice", device: "d1")
    bench.give(.httpLogin(HTTPRequestID(1), bearer: Bench.token()))
    #expect(bench.actions.isEmpty && bench.takeEvents() == [.httpLogin(HTTPRequestID(1), device)])
    bench.perform(.httpAnswer(HTTPRequestID(1), .ok))
    #expect(bench.actions == [.httpLogin(HTTPRequestID(1), device, accounts: ["default"])])
    bench.actions = []
    bench.give(.httpLogin(HTTPRequestID(2), bearer: Bench.token()))
    bench.perform(.httpAnswer(HTTPRequestID(2), .err(.deviceRevoked())))
    #expect(bench.actions == [.httpRefused(HTTPRequestID(2), .deviceRevoked())])
    bench.actions = []
    for (number, token) in [nil, "", "rubbish", Bench.token(lives: -31), Bench.token("mallory")].enumerated() {
      bench.give(.httpLogin(HTTPRequestID(UInt64(number) + 3), bearer: token))
      guard case .httpRefused(_, let failure)? = bench.actions.last, failure.code == .auth else {
        Issue.record("\(token ?? "none")")
        continue
      }
    }
    #expect(bench.takeEvents().count == 1, "control is asked for genuine tokens only")
  }
}
