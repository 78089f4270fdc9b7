import AppProtocol
import AppSessions
import Bytes
import JSONWebToken
import SIPDialogs
import Testing

@testable import CallFlow

/// What login tokens grant, at several nodes.
@Suite struct SharedGrantsTests {
  private static let rules = GrantRules(numbers: ["+"], maxNumbers: 10)

  private func row(_ user: String, _ numbers: [String], _ issuedAt: Int64, seen: Int64 = 0) -> SharedGrant {
    SharedGrant(user: user, grant: TokenGrant(numbers: numbers, issuedAt: issuedAt), issuedAt: issuedAt, seen: seen)
  }
  private func taken(_ grants: inout UserGrants, _ numbers: [String], _ user: String, _ issuedAt: Int64) -> [SharedGrant] {
    let changes = try? grants.accept(TokenGrant(numbers: numbers, issuedAt: issuedAt), of: user, at: 0)
    return (changes ?? []).compactMap { if case .stored(let entry) = $0 { SharedGrant(entry) } else { nil } }
  }

  @Test func `a number that moved at another node moves here, in one step whatever comes first`() {
    for order in [[0, 1], [1, 0]] {
      var here = UserGrants()
      _ = taken(&here, ["+1", "+2"], "alice", 10)
      let rows = [row("alice", ["+1"], 10), row("bob", ["+2"], 20)]
      let told = here.merge(order.map { rows[$0] }, Self.rules, at: 0)
      #expect(here.owner(of: "+2")?.user == "bob" && here["alice"]?.numbers == ["+1"])
      #expect(Set(told.stored.map(\.user)) == ["alice", "bob"] && told.shared.map(\.user) == ["alice"])
    }
  }

  @Test func `two nodes that gave a number to two users come to the same one, also of tokens that are as late`() {
    for (a, b, winner) in [(10, 20, "zoe"), (20, 10, "alice"), (10, 10, "zoe")] as [(Int64, Int64, String)] {
      var (first, second) = (UserGrants(), UserGrants())
      let (one, two) = (taken(&first, ["+1", "+3"], "alice", a), taken(&second, ["+1"], "zoe", b))
      let more = (first.merge(two, Self.rules, at: 0).shared, second.merge(one, Self.rules, at: 0).shared)
      _ = (first.merge(more.1, Self.rules, at: 0), second.merge(more.0, Self.rules, at: 0))
      for node in [first, second] { #expect(node.owner(of: "+1")?.user == winner && node.owner(of: "+3")?.user == "alice") }
    }
  }

  @Test func `what is old, or what the configuration does not allow, is not taken`() {
    var here = UserGrants()
    let day: Int64 = 86_400_000
    let told = here.merge(
      [row("old", ["+1"], 1), row("wide", ["+1999"], 1, seen: 30 * day), row("good", ["+15"], 1, seen: 30 * day)],
      GrantRules(numbers: ["+15"]), at: 30 * day)
    #expect(here.userCount == 1 && told.stored.map(\.user) == ["good"] && told.shared.isEmpty)
    #expect(here.merge([row("a", ["+15"], 1)], nil, at: 0).stored.isEmpty)
  }

  @Test func `an erased user goes unless a later token is here`() {
    var here = UserGrants()
    _ = taken(&here, ["+1"], "alice", 10)
    let erased = { SharedGrant(user: "alice", grant: nil, issuedAt: $0, seen: 0) }
    #expect(here.merge([erased(9)], Self.rules, at: 0).stored.isEmpty && here["alice"] != nil)
    #expect(here.merge([erased(11)], Self.rules, at: 0).stored == [.removed(user: "alice")])
  }

  @Test func `a shared store that lacks grants gets them, and those of later tokens`() {
    var here = UserGrants()
    for (user, at) in [("a", 1), ("b", 2), ("c", 3)] as [(String, Int64)] { _ = taken(&here, ["+\(at)"], user, at) }
    #expect(Set(here.missing(in: ["a": 1, "b": 1]).map(\.user)) == ["b", "c"])
  }

  /// A shared store of one row a user, as the scripts keep it.
  private struct SharedStore {
    var rows: [String: SharedGrant] = [:]
    mutating func put(_ grants: [SharedGrant]) {
      for grant in grants where rows[grant.user].map(grant.isLater) ?? true { rows[grant.user] = grant }
    }
  }

  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func `whatever tokens come where, and whenever nodes hear of each other, all come to the same`(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var nodes = [UserGrants(), UserGrants(), UserGrants()]
    var sharedStore = SharedStore()
    func hear(_ node: Int, _ rows: [SharedGrant]) {
      sharedStore.put(nodes[node].merge(rows.shuffled(using: &random), Self.rules, at: 0).shared)
    }
    for step in 0..<300 {
      let node = Int.random(in: 0..<3, using: &random)
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<6:
        let numbers = Set((0..<Int.random(in: 0..<4, using: &random)).map { _ in "+\(Int.random(in: 0..<9, using: &random))" })
        // two tokens are never of one moment and one user
        let issuedAt = Int64(step / 4 * 100) + Int64(step % 4) + 1
        sharedStore.put(taken(&nodes[node], numbers.sorted(), "u\(Int.random(in: 0..<6, using: &random))", issuedAt))
      case 6:
        let user = "u\(Int.random(in: 0..<6, using: &random))"
        _ = nodes[node].remove(user)
        sharedStore.put([SharedGrant(user: user, grant: nil, issuedAt: Int64(step / 4 * 100) + 99, seen: 0)])
      default: hear(node, Array(sharedStore.rows.values.shuffled(using: &random).prefix(Int.random(in: 1...4, using: &random))))
      }
    }
    for _ in 0..<4 { for node in 0..<3 { hear(node, Array(sharedStore.rows.values)) } }
    for node in nodes {
      #expect(node.entries.mapValues(\.grant) == nodes[0].entries.mapValues(\.grant))
      #expect(node.owners == nodes[0].owners)
      #expect(node.entries.mapValues(\.grant) == sharedStore.rows.compactMapValues(\.grant))
      for (user, entry) in node.entries { for number in entry.grant.numbers { #expect(node.owner(of: number)?.user == user) } }
    }
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
  private func shared(_ world: Surroundings) -> [SharedGrant] {
    world.actions.flatMap { if case .shareGrants(let grants) = $0 { grants } else { [] as [SharedGrant] } }
  }

  @Test func `a grant is told to the others, theirs ring here, and go with an erased user`() {
    let world = world()
    login("carol", TokenGrant(numbers: ["+15557"], issuedAt: 5), world)
    #expect(shared(world).map(\.user) == ["carol"])
    world.feed(.sharedGrants(SharedGrants([row("dora", ["+15557"], 6, seen: 1_700_000_000_000)])))
    #expect(world.machine.routing.route(called: "15557", trunk: "carrier")?.user == "dora")
    #expect(shared(world).last == row("carol", [], 5, seen: shared(world).first?.seen ?? 0))
    #expect(world.operate { .devices(.forget(user: "dora", $0)) } == .forgotten(devices: 0, grants: 1))
    #expect(world.machine.routing.route(called: "15557", trunk: "carrier") == nil)
    #expect(shared(world).last?.user == "dora" && shared(world).last?.grant == nil)
    // at another node, of a user that is not known here
    world.operate { .devices(.forget(user: "erin", $0)) }
    #expect(shared(world).last?.user == "erin")
  }

  @Test func `the shared store gets what it lacks once all of it was read`() {
    let world = world()
    login("carol", TokenGrant(numbers: ["+15557"], issuedAt: 5), world)
    let before = shared(world).count
    world.feed(.sharedGrants(SharedGrants([], known: ["carol": 5])))
    #expect(shared(world).count == before)
    world.feed(.sharedGrants(SharedGrants([], known: [:])))
    #expect(shared(world).count == before + 1)
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
    world.feed(.sharedGrants(SharedGrants([], known: [:])))
    world.invite(to: "+15557")
    #expect(world.records.map(\.end.reason) == [.overload, .notFound])
  }
}
