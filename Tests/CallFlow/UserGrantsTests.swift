import AppSessions
import JSONWebToken
import Testing
import TrunklineAppProtocol
import TrunklineBytes

@testable import CallFlow
@testable import CallModel

/// Numbers that login tokens carry.
@Suite struct UserGrantsTests {
  private static let day: Int64 = 86_400_000

  @Test func `a later token takes a number from another user, in one step and for good`() throws {
    var grants = UserGrants()
    _ = try grants.accept(TokenGrant(numbers: ["+15551", "+15552"], issuedAt: 10), of: "alice", at: 0)
    let changes = try grants.accept(TokenGrant(numbers: ["0015552"], issuedAt: 11), of: "bob", at: 0)
    #expect(Set(changes.map(\.user)) == ["alice", "bob"])
    #expect(grants.owner(of: "15552")?.user == "bob" && grants.owner(of: "+15552")?.number == "0015552")
    #expect(grants["alice"]?.numbers == ["+15551"])
    // alice comes back with the token that she has
    #expect(try grants.accept(TokenGrant(numbers: ["+15551", "+15552"], issuedAt: 10), of: "alice", at: 0).isEmpty)
    #expect(grants.owner(of: "+15552")?.user == "bob" && grants.owner(of: "+15551")?.user == "alice")
    // and bob, whose new token grants nothing: no user has the number
    _ = try grants.accept(TokenGrant(issuedAt: 12), of: "bob", at: 0)
    #expect(grants.owner(of: "+15552") == nil && grants.numberCount == 1)
  }

  @Test func `a token that is not later than another user's is a fault, and changes nothing`() throws {
    for (first, second) in [(10, 10), (10, 9), (0, 0)] as [(Int64, Int64)] {
      var grants = UserGrants()
      _ = try grants.accept(TokenGrant(numbers: ["+15551"], issuedAt: first), of: "alice", at: 0)
      #expect(throws: UserGrants.Fault.ownedByOther(1)) {
        try grants.accept(TokenGrant(numbers: ["+15552", "15551"], issuedAt: second), of: "bob", at: 0)
      }
      #expect(grants.owner(of: "+15551")?.user == "alice" && grants["bob"] == nil && grants.numberCount == 1)
    }
  }

  @Test func `an earlier token of the same user changes nothing, a later one replaces`() throws {
    var grants = UserGrants()
    _ = try grants.accept(TokenGrant(numbers: ["+15551"], maxCalls: 1, issuedAt: 10), of: "alice", at: 0)
    #expect(try grants.accept(TokenGrant(numbers: ["+15552"], issuedAt: 9), of: "alice", at: 0).isEmpty)
    #expect(grants["alice"]?.numbers == ["+15551"])
    _ = try grants.accept(TokenGrant(numbers: ["+15552"], issuedAt: 11), of: "alice", at: 0)
    #expect(grants.owner(of: "+15551") == nil && grants.owner(of: "+15552")?.user == "alice" && grants["alice"]?.maxCalls == nil)
  }

  @Test func `a user who is erased has nothing, and the store hears of it once`() throws {
    var grants = UserGrants()
    _ = try grants.accept(TokenGrant(numbers: ["+15551"], issuedAt: 10), of: "alice", at: 0)
    #expect(grants.remove("alice") == [.removed(user: "alice")] && grants.remove("alice").isEmpty)
    #expect(grants.owner(of: "+15551") == nil && grants.isEmpty)
  }

  @Test func `a store hears of changes, and of an appearance once an hour`() throws {
    var grants = UserGrants()
    let grant = TokenGrant(numbers: ["+15551"], issuedAt: 10)
    #expect(try grants.accept(grant, of: "alice", at: 0) == [.stored(.init(user: "alice", grant: grant, seen: 0))])
    #expect(try grants.accept(grant, of: "alice", at: 3_600_000).isEmpty)
    #expect(
      try grants.accept(grant, of: "alice", at: 3_600_001) == [.stored(.init(user: "alice", grant: grant, seen: 3_600_001))])
  }

  @Test func `a full table forgets whom no token named for 30 days, then says so`() throws {
    var grants = UserGrants(users: 2, numbers: 3)
    _ = try grants.accept(TokenGrant(numbers: ["1", "2"], issuedAt: 1), of: "alice", at: 0)
    _ = try grants.accept(TokenGrant(numbers: ["3"], issuedAt: 1), of: "bob", at: 5 * Self.day)
    #expect(throws: UserGrants.Fault.full) {
      try grants.accept(TokenGrant(numbers: ["4"], issuedAt: 1), of: "carol", at: 29 * Self.day)
    }
    #expect(throws: UserGrants.Fault.full) {
      try grants.accept(TokenGrant(numbers: ["3", "5"], issuedAt: 2), of: "bob", at: 29 * Self.day)
    }
    let changes = try grants.accept(TokenGrant(numbers: ["4"], issuedAt: 1), of: "carol", at: 30 * Self.day)
    #expect(changes.first == .removed(user: "alice") && grants.owner(of: "1") == nil && grants.owner(of: "4")?.user == "carol")
  }

  @Test func `what a store held is what was there, without what is old`() throws {
    var stored: [String: UserGrants.Entry] = [:]
    var grants = UserGrants()
    func keep(_ changes: [UserGrants.Change]) {
      for change in changes {
        switch change {
        case .stored(let entry): stored[entry.user] = entry
        case .removed(let user): stored[user] = nil
        }
      }
    }
    keep(try grants.accept(TokenGrant(numbers: ["1"], issuedAt: 1), of: "old", at: 0))
    keep(try grants.accept(TokenGrant(numbers: ["2", "3"], issuedAt: 1), of: "alice", at: 20 * Self.day))
    keep(try grants.accept(TokenGrant(numbers: ["3"], issuedAt: 2), of: "bob", at: 20 * Self.day))
    var later = UserGrants()
    #expect(later.load(Array(stored.values), at: 31 * Self.day) == [.removed(user: "old")])
    #expect(later.owner(of: "2")?.user == "alice" && later.owner(of: "3")?.user == "bob" && later.userCount == 2)
    // a store of two writes of which only one was kept
    var torn = UserGrants()
    let both = [
      UserGrants.Entry(user: "alice", grant: TokenGrant(numbers: ["2", "3"], issuedAt: 1), seen: 0),
      UserGrants.Entry(user: "bob", grant: TokenGrant(numbers: ["3"], issuedAt: 2), seen: 0),
    ]
    #expect(torn.load(both, at: 0).map(\.user) == ["alice"])
    #expect(torn["alice"]?.numbers == ["2"] && torn.owner(of: "3")?.user == "bob")
  }

  @Test func `whatever comes, each number is one user's, who has it in its grant`() throws {
    var random = SplitMix64(seed: 3)
    var grants = UserGrants(users: 5, numbers: 12)
    var stored: [String: UserGrants.Entry] = [:]
    for step in 0..<4_000 {
      let user = "u\(Int.random(in: 0..<7, using: &random))"
      let grant = TokenGrant(
        numbers: (0..<Int.random(in: 0..<4, using: &random)).map { _ in "+\(Int.random(in: 0..<9, using: &random))" }.uniqued(),
        issuedAt: Int64.random(in: 0..<Int64(step / 20 + 2), using: &random))
      for change in (try? grants.accept(grant, of: user, at: Int64(step) * Self.day / 8)) ?? [] {
        switch change {
        case .stored(let entry): stored[entry.user] = entry
        case .removed(let user): stored[user] = nil
        }
      }
      #expect(grants.userCount <= 5 && grants.numberCount <= 12)
      for (user, entry) in stored {
        #expect(grants[user] == entry.grant)
        for number in entry.grant.numbers { #expect(grants.owner(of: number)?.user == user) }
      }
      #expect(grants.userCount == stored.count && grants.numberCount == stored.values.map(\.grant.numbers.count).reduce(0, +))
    }
  }

  // MARK: in the directory and the machine

  private func world(_ rules: GrantRules? = GrantRules(numbers: ["+1"])) -> Surroundings {
    Surroundings { _, routing in
      var anyone = Routing.User(id: "", numbers: [])
      anyone.allowance.calls = 5
      routing.directory = UserDirectory(routing.users, anyone: anyone, grantRules: rules)
    }
  }

  private func login(_ user: String, _ grant: TokenGrant, _ world: Surroundings) -> DeviceKey {
    let key = DeviceKey(user: user, device: user + "-phone")
    world.feed(.app(.granted(key, SessionID(user), grant)))
    world.feed(.app(.connected(key, SessionID(user), DeviceInfo(caps: ["media.active"]), resumed: false)))
    return key
  }

  @Test func `a granted number rings its user, and after it has moved the other one`() throws {
    let world = world()
    let carol = login("carol", TokenGrant(numbers: ["+15557"], name: "Carol", maxCalls: 1, issuedAt: 1), world)
    #expect(world.machine.routing.route(called: "15557", trunk: "carrier")?.user == "carol")
    #expect(world.machine.routing.user("carol")?.allowance.calls == 1 && world.machine.routing.user("carol")?.name == "Carol")
    #expect(world.machine.routing.user("dora")?.allowance.calls == 5)
    #expect(world.machine.routing.callerNumber(of: "carol", wanted: nil) == "+15557")
    _ = login("dora", TokenGrant(numbers: ["+15557"], issuedAt: 2), world)
    #expect(world.machine.routing.route(called: "+15557", trunk: "carrier")?.user == "dora")
    #expect(world.machine.routing.user("carol")?.numbers == [])
    _ = carol
  }

  @Test func `another user's number is refused: of the file, and of a token that is as late`() {
    let world = world()
    var refused: [String] = []
    for (user, number) in [("carol", "+15551230009"), ("dora", "+15557"), ("eve", "15557")] {
      _ = login(user, TokenGrant(numbers: ["+15558\(user.utf8.count)\(user.utf8.first ?? 0)", number], issuedAt: 1), world)
    }
    for case .app(.refuse(let session, let failure)) in world.actions { refused.append("\(session) \(failure.msg ?? "")") }
    #expect(
      refused == [
        "carol trunkline.numbers[1]: +15551230009 is another user's here",
        "eve trunkline.numbers[1]: 15557 is another user's here",
      ])
    #expect(world.machine.routing.directory.grants["carol"] == nil)
  }

  @Test func `a listed user is what the file says`() {
    let world = world()
    _ = login(Surroundings.alice, TokenGrant(numbers: ["+15557"], issuedAt: 1), world)
    #expect(world.machine.routing.route(called: "+15557", trunk: "carrier") == nil)
    #expect(!world.actions.contains { if case .app(.refuse) = $0 { true } else { false } })
  }

  @Test func `grants outlive a new configuration that allows them, and no other`() {
    let world = world()
    _ = login("carol", TokenGrant(numbers: ["+15557"], issuedAt: 1), world)
    _ = login("dora", TokenGrant(numbers: ["+16667"], issuedAt: 1), world)
    var routing = world.machine.routing
    routing.directory = UserDirectory(
      routing.users, anyone: .init(id: "", numbers: []), grantRules: GrantRules(numbers: ["+1555"]))
    world.actions.removeAll()
    world.feed(.routing(routing))
    #expect(world.machine.routing.route(called: "+15557", trunk: "carrier")?.user == "carol")
    #expect(world.machine.routing.route(called: "+16667", trunk: "carrier") == nil)
    #expect(world.actions.contains { if case .grants([.removed(user: "dora")]) = $0 { true } else { false } })
    routing.directory = UserDirectory(routing.users, anyone: .init(id: "", numbers: []))
    world.feed(.routing(routing))
    #expect(world.machine.routing.route(called: "+15557", trunk: "carrier") == nil)
  }

  @Test func `a user that logged out long ago has its number, so that the call is not for nobody`() {
    let world = world()
    let key = login("carol", TokenGrant(numbers: ["+15557"], diversions: ["unreached": .init(code: 480)], issuedAt: 1), world)
    world.feed(.app(.disconnected(key, SessionID("carol"))))
    world.feed(.app(.ended(key, SessionID("carol"))))
    #expect(world.machine.routing.route(called: "+15557", trunk: "carrier")?.user == "carol")
    guard case .code(480)? = world.machine.routing.user("carol")?.diversions.rules[.unreached]?.target else {
      Issue.record("no diversion")
      return
    }
  }
}

extension Array where Element: Hashable {
  fileprivate func uniqued() -> [Element] {
    var seen: Set<Element> = []
    return filter { seen.insert($0).inserted }
  }
}
