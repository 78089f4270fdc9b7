import AppSessions
import JSONWebToken
import Testing
import TrunklineAppProtocol
import TrunklineBytes

/// What login tokens grant, at the door.
@Suite struct GrantTests {
  private static let rules = GrantRules(
    numbers: ["+1555", "+49"], maxNumbers: 2, allow: ["+1", "+49"], maxCalls: 2, callsPerHour: 20)

  private func bench(_ rules: GrantRules? = rules) -> Bench {
    var bench = Bench(users: .any)
    bench.reconfigure { ($0.users, $0.grants) = (.any, rules) }
    return bench
  }

  private func token(_ grant: TokenGrant?, _ user: String = "carol") throws -> String {
    try Bench.signer.sign(Claims(sub: user, dev: "d1", aud: ["trunkline"], exp: Bench.epoch + 3_600, grant: grant))
  }

  private func hello(_ grant: TokenGrant?, _ bench: inout Bench) throws -> ConnectionID {
    let id = bench.open()
    bench.send(.hello(Hello(.auth(try token(grant)), device: .init(id: "d1"))), on: id, id: number(1))
    return id
  }

  @Test func `control hears of the grant before it hears of the session`() throws {
    var bench = bench()
    let grant = TokenGrant(
      numbers: ["+15551230001", "+4989"], allow: ["+1", "+4989"], maxCalls: 2, callsPerHour: 0, issuedAt: Bench.epoch)
    _ = try hello(grant, &bench)
    let events = bench.takeEvents()
    guard case .granted(let key, let session, grant)? = events.first, case .connected(key, session, _, false)? = events.last
    else { throw Trouble("\(events)") }
    #expect(key == DeviceKey(user: "carol", device: "d1") && events.count == 2)
  }

  @Test func `a token without the claim needs no rules`() throws {
    var bench = bench(nil)
    _ = try hello(nil, &bench)
    guard case .connected? = bench.takeEvents().first else { throw Trouble("refused") }
  }

  private static let refused: [(TokenGrant, GrantRules?, String)] = [
    (TokenGrant(), nil, "trunkline: tokens may grant nothing here: see users[].claims"),
    (
      TokenGrant(numbers: ["+15551", "+4420"]), rules,
      "trunkline.numbers[1]: +4420 is not one that users[].claims.numbers lets a token grant"
    ),
    (
      TokenGrant(numbers: ["+15551", "+15552", "+15553"]), rules,
      "trunkline.numbers: has more than 2: see users[].claims.max_numbers"
    ),
    (TokenGrant(allow: ["+"]), rules, "trunkline.allow[0]: \"+\" is wider than users[].allow of any"),
    (TokenGrant(allow: ["+49", ""]), rules, "trunkline.allow[1]: \"\" is wider than users[].allow of any"),
    (TokenGrant(maxCalls: 3), rules, "trunkline.max_calls: is more than the 2 of any"),
    (TokenGrant(callsPerHour: 21), rules, "trunkline.calls_per_hour: is more than the 20 of any"),
    (
      TokenGrant(diversions: ["busy": .init(code: 486)]), rules, "trunkline.diversions: need users[].claims.diversions: true"
    ),
  ]

  @Test(arguments: 0..<refused.count) func `more than the configuration allows is refused, never narrowed`(row: Int) throws {
    let (grant, rules, why) = Self.refused[row]
    var bench = bench(rules)
    let id = try hello(grant, &bench)
    let (failure, code) = try bench.failure(id)
    #expect(failure == Failure(.auth, msg: why, fatal: true) && code == .authFailed)
    #expect(
      bench.events.isEmpty && bench.refusedLogins.map(\.refusal) == [.tokenClaims] && bench.refusedLogins[0].user == "carol")
  }

  @Test func `a refresh grants anew, and one with too much is refused while the session goes on`() throws {
    var bench = bench()
    let id = try hello(nil, &bench)
    guard case .connected(_, let session, _, _)? = bench.takeEvents().last else { throw Trouble("refused") }
    bench.perform(.welcome(session, calls: [], gone: [], live: []))
    _ = bench.frames(id)
    let grant = TokenGrant(numbers: ["+15551230001"], issuedAt: Bench.epoch + 1)
    bench.send(.authRefresh(AuthRefresh(auth: try token(grant))), on: id, id: number(2))
    #expect(bench.takeEvents() == [.granted(DeviceKey(user: "carol", device: "d1"), session, grant)])
    bench.send(.authRefresh(AuthRefresh(auth: try token(TokenGrant(maxCalls: 3)))), on: id, id: number(3))
    #expect(bench.takeEvents().isEmpty && bench.closed(id) == nil)
    guard case .message(.err(let failure))? = bench.frames(id).last?.body else { throw Trouble("no err") }
    #expect(failure.code == .auth)
  }

  @Test func `what control cannot grant ends the hello with 4001 and its reason`() throws {
    var bench = bench()
    let id = try hello(TokenGrant(numbers: ["+15551230001"]), &bench)
    guard case .connected(let key, let session, _, _)? = bench.takeEvents().last else { throw Trouble("refused") }
    let failure = Failure(.auth, msg: "trunkline.numbers[0]: taken", fatal: true)
    bench.perform(.refuse(session, failure))
    let (told, code) = try bench.failure(id)
    #expect(told == failure && code == .authFailed)
    #expect(bench.takeEvents() == [.disconnected(key, session), .ended(key, session)])
    #expect(bench.refusedLogins.map(\.refusal) == [.tokenClaims])
    bench.perform(.welcome(session, calls: [], gone: [], live: []))
    #expect(bench.frames(id).isEmpty && bench.machine.stats.strayCommands == 1)
  }

  @Test func `a session that stands is closed when its last call is over`() throws {
    var bench = bench()
    let id = try hello(nil, &bench)
    guard case .connected(let key, let session, _, _)? = bench.takeEvents().last else { throw Trouble("refused") }
    bench.perform(.welcome(session, calls: [], gone: [], live: [callA]))
    bench.perform(.refuse(session, Failure(.auth, msg: "taken")))
    #expect(bench.closed(id) == nil)
    bench.perform(.callDead(key, callA))
    #expect(bench.closed(id) == .authFailed)
  }
}
