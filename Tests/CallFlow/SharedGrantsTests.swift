import AppSessions
import JSONWebToken
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

extension UserGrants {
  /// All steps of a comparison.
  mutating func compare(_ known: [String: Int64], at now: Int64) -> [Change] {
    beginComparison(known)
    var changes: [Change] = []
    while isComparing { changes += compareNext(most: 1, at: now).changes }
    return changes
  }
}

/// What login tokens grant, where a shared store owns it.
@Suite struct SharedGrantsTests {
  private static let rules = GrantRules(numbers: ["+"], maxNumbers: 10)
  private static let day: Int64 = 86_400_000

  private func row(_ user: String, _ numbers: [String], _ issuedAt: Int64, seen: Int64 = 0) -> SharedGrant {
    SharedGrant(user: user, grant: TokenGrant(numbers: numbers, issuedAt: issuedAt), issuedAt: issuedAt, seen: seen)
  }
  private func erased(_ user: String, _ at: Int64) -> SharedGrant {
    SharedGrant(user: user, grant: nil, issuedAt: at, seen: 0)
  }
  private func copy(_ rows: SharedGrant...) -> UserGrants {
    var out = UserGrants()
    _ = out.apply(rows, Self.rules, at: 0)
    return out
  }

  @Test func `rows are applied as they are, in one step whatever comes first`() {
    for order in [[0, 1], [1, 0]] {
      var here = copy(row("alice", ["+1", "+2"], 10))
      let rows = [row("alice", ["+1"], 10), row("bob", ["+2"], 20)]
      let changes = here.apply(order.map { rows[$0] }, Self.rules, at: 0)
      #expect(here.owner(of: "+2")?.user == "bob" && here["alice"]?.numbers == ["+1"])
      #expect(Set(changes.map(\.user)) == ["alice", "bob"])
      #expect(here.apply(rows, Self.rules, at: 0).isEmpty)
    }
  }

  @Test func `a number that moved has a user after each row`() {
    var here = copy(row("alice", ["+1"], 10))
    for row in [row("bob", ["+1"], 20), row("alice", [], 10)] {
      _ = here.apply([row], Self.rules, at: 0)
      #expect(here.owner(of: "+1")?.user == "bob")
    }
  }

  @Test func `the shared store decides: a number goes back from a token that was accepted here`() throws {
    var here = copy(row("alice", ["+1", "+3"], 10))
    let changes = try here.accept(TokenGrant(numbers: ["+1"], issuedAt: 20), of: "bob", at: 0)
    #expect(here.owner(of: "+1")?.user == "bob" && here.unshared("bob", after: changes) == row("bob", ["+1"], 20))
    // bob's next token was read elsewhere before this one came to the shared store
    _ = here.apply([row("bob", [], 21), row("alice", ["+1", "+3"], 10)], Self.rules, at: 0)
    #expect(here.owner(of: "+1")?.user == "alice" && here["bob"]?.numbers == [])
  }

  @Test func `what is old, or what the configuration does not allow, is not applied`() {
    var here = UserGrants()
    let rows = [
      row("old", ["+1"], 1), row("wide", ["+1999"], 1, seen: 30 * Self.day), row("good", ["+15"], 1, seen: 30 * Self.day),
    ]
    let changes = here.apply(rows, GrantRules(numbers: ["+15"]), at: 30 * Self.day)
    #expect(here.userCount == 1 && changes.map(\.user) == ["good"])
    #expect(here.apply([row("a", ["+15"], 1)], nil, at: 0).isEmpty)
  }

  @Test func `an erased user goes, and an earlier row changes nothing, unless a later token is here`() {
    var here = copy(row("alice", ["+1"], 10))
    #expect(here.apply([erased("alice", 9), row("alice", ["+2"], 9)], Self.rules, at: 0).isEmpty)
    #expect(here.owner(of: "+1")?.user == "alice")
    #expect(here.apply([erased("alice", 10)], Self.rules, at: 0) == [.removed(user: "alice")])
  }

  @Test func `what the shared store lacks is served and stale, until a login writes it; what has expired there goes`() throws {
    var here = copy(row("a", ["+1"], 1), row("b", ["+2"], 2), row("c", ["+3"], 3, seen: 40 * Self.day))
    let now = 31 * Self.day
    #expect(here.compare(["b": 2], at: now) == [.removed(user: "a")])
    #expect(here.stale == ["c"] && here.owner(of: "+3")?.user == "c" && here.owner(of: "+1") == nil)
    #expect(here.lost(at: now + 9 * Self.day + 5_000).map { "\($0)" } == "(users: 1, age: 5.0 seconds)")
    let known = try here.accept(TokenGrant(numbers: ["+3"], issuedAt: 3), of: "c", at: now)
    #expect(known.isEmpty && here.unshared("c", after: known) == row("c", ["+3"], 3, seen: 40 * Self.day))
    _ = here.apply([row("c", ["+3"], 3, seen: 40 * Self.day)], Self.rules, at: now)
    #expect(here.stale.isEmpty && here.unshared("c", after: []) == nil && here.lost(at: now) == nil)
    // the shared store has an earlier token
    _ = here.compare(["b": 2, "c": 2], at: now)
    #expect(here.stale == ["c"] && here.remove("c") == [.removed(user: "c")] && here.stale.isEmpty)
  }

  // MARK: in the machine

  private func world() -> Surroundings {
    Surroundings { configuration, routing in
      configuration.isClustered = true
      routing.directory = UserDirectory(
        routing.users, anyone: Routing.User(id: "", numbers: []), grantRules: GrantRules(numbers: ["+1"]))
    }
  }
  private func login(_ user: String, _ grant: TokenGrant, _ world: Surroundings) {
    let key = DeviceKey(user: user, device: user + "-phone")
    world.feed(.app(.granted(key, SessionID(user), grant)))
    world.feed(.app(.connected(key, SessionID(user), DeviceInfo(caps: ["media.active"]), resumed: false)))
  }
  /// All that the shared store has.
  private func read(_ rows: [SharedGrant], known: [String: Int64], _ world: Surroundings) {
    world.feed(.sharedGrants(.comparison(known: known)))
    world.feed(.sharedGrants(.rows(rows, isAll: true)))
  }
  private func shared(_ world: Surroundings) -> [SharedGrant] {
    world.actions.flatMap { if case .shareGrants(let grants) = $0 { grants } else { [] as [SharedGrant] } }
  }

  @Test func `a grant is written to the shared store, its rows ring here, and go with an erased user`() {
    let world = world()
    login("carol", TokenGrant(numbers: ["+15557"], issuedAt: 5), world)
    #expect(shared(world).map(\.user) == ["carol"])
    world.feed(.sharedGrants(.rows([row("dora", ["+15557"], 6, seen: 1_700_000_000_000)], isAll: false)))
    #expect(world.machine.routing.route(called: "15557", trunk: "carrier")?.user == "dora")
    #expect(shared(world).count == 1, "no node writes another user's row")
    #expect(world.operate { .devices(.forget(user: "dora", $0)) } == .forgotten(devices: 0, grants: 1))
    #expect(world.machine.routing.route(called: "15557", trunk: "carrier") == nil)
    #expect(shared(world).last?.user == "dora" && shared(world).last?.grant == nil)
    // at another node, of a user that is not known here
    world.operate { .devices(.forget(user: "erin", $0)) }
    #expect(shared(world).last?.user == "erin")
  }

  @Test func `what the shared store has lost is written for users with a session here, and by the next login of others`() {
    let world = world()
    let (grant, other) = (TokenGrant(numbers: ["+15557"], issuedAt: 5), TokenGrant(numbers: ["+15558"], issuedAt: 6))
    login("carol", grant, world)
    login("dora", other, world)
    let dora = DeviceKey(user: "dora", device: "dora-phone")
    world.feed(.app(.disconnected(dora, SessionID("dora"))))
    world.feed(.app(.ended(dora, SessionID("dora"))))
    read([], known: ["carol": 5, "dora": 6], world)
    login("carol", grant, world)
    #expect(shared(world).map(\.user) == ["carol", "dora"] && world.machine.staleGrants == 0)
    // a row that the shared store has takes a number from one that it has lost, until that is written
    let taken = row("erin", ["+15557"], 1, seen: 1_700_000_000_000)
    read([taken], known: ["erin": 1], world)
    #expect(shared(world).map(\.user) == ["carol", "dora", "carol"] && world.machine.staleGrants == 2)
    #expect(shared(world).last?.grant == grant)
    #expect(world.machine.routing.route(called: "15558", trunk: "carrier")?.user == "dora")
    login("dora", other, world)
    #expect(shared(world).map(\.user) == ["carol", "dora", "carol", "dora"])
    let now = shared(world).last?.seen ?? 0
    let rows = [row("carol", ["+15557"], 5, seen: now), row("dora", ["+15558"], 6, seen: now)]
    world.feed(.sharedGrants(.rows(rows, isAll: false)))
    #expect(world.machine.staleGrants == 0)
    #expect(world.machine.routing.route(called: "15557", trunk: "carrier")?.user == "carol")
  }

  @Test func `a token without iat is refused in a cluster: nobody could tell which of two is the later one`() {
    let world = world()
    login("carol", TokenGrant(numbers: ["+15557"]), world)
    var said = ""
    for case .app(.refuse(_, let failure)) in world.actions { said = failure.msg ?? "" }
    #expect(said.contains("iat") && shared(world).isEmpty && world.machine.routing.directory.grants.isEmpty)
  }

  @Test func `until grants of the others were read once, a number that nobody has here may be theirs: 503`() {
    let world = Surroundings { configuration, routing in
      configuration.isClustered = true
      routing.directory = UserDirectory(
        routing.users, anyone: Routing.User(id: "", numbers: []), grantRules: GrantRules(numbers: ["+1"]))
      routing.inbound = [.init(trunk: "carrier", target: .users)]
    }
    world.invite(to: "+15557")
    world.expectRecord(.overload, by: .gateway)
    world.feed(.sharedGrants(.comparison(known: [:])))
    world.invite(to: "+15557")
    world.feed(.sharedGrants(.rows([], isAll: true)))
    world.invite(to: "+15557")
    #expect(world.records.map(\.end.reason) == [.overload, .overload, .notFound])
  }

  @Test func `a number that no user has here is 503 with Retry-After while others may know it, and an edge tries the next node`()
  {
    let world = Surroundings { configuration, routing in
      configuration.isClustered = true
      routing.directory = UserDirectory(
        routing.users, anyone: Routing.User(id: "", numbers: []), grantRules: GrantRules(numbers: ["+1"]))
      routing.inbound = [.init(trunk: "carrier", target: .users)]
    }
    var refused: [Int: Int?] = [:]
    func answer(isFromEdge: Bool) -> String {
      world.actions = []
      world.invite(to: "+15557", isFromEdge: isFromEdge)
      for case .sip(.refuse(_, let code, _, _, let retryAfter)) in world.actions {
        refused[code] = retryAfter
        return "\(code) \(retryAfter ?? 0)"
      }
      return "none"
    }
    read([], known: [:], world)
    #expect(answer(isFromEdge: true) == "404 0" && answer(isFromEdge: false) == "404 0")
    world.feed(.grantsUncertain(true))
    #expect(answer(isFromEdge: true) == "503 30" && answer(isFromEdge: false) == "503 30")
    #expect(world.refusals.map(\.reason) == [.unlocated], "the edge's INVITE has no record here")
    #expect(world.records.map(\.end.reason) == [.notFound, .notFound, .overload])
    world.feed(.grantsUncertain(false))
    #expect(answer(isFromEdge: true) == "404 0")
  }

  @Test func `the digest of lost users depends on the users alone`() {
    func copy(_ users: [String], without: [String] = []) -> UInt64 {
      var out = UserGrants()
      _ = out.apply(users.map { row($0, [], 1) }, Self.rules, at: 0)
      _ = out.compare([:], at: 0)
      for user in without { _ = out.remove(user) }
      return out.staleDigest
    }
    #expect(copy(["a", "b", "c"]) == copy(["c", "a", "b", "d"], without: ["d"]) && copy(["a"]) != copy(["b"]))
    #expect(copy(["a"]) != 0 && copy(["a"], without: ["a"]) == 0)
  }
}
