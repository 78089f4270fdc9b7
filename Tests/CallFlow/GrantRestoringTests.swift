import AppSessions
import JSONWebToken
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

/// Work that concerns all users with grants: `users restore`, the comparison with the shared store, the check after a reload. None
/// of it handles more than `grantsPerStep` users in one step of control.
@Suite struct GrantRestoringTests {
  private static let rules = GrantRules(numbers: ["+"], maxNumbers: 100)
  private static let most = CallModel.Limits.grantsPerStep

  private func row(_ user: String, _ numbers: [String], _ issuedAt: Int64) -> SharedGrant {
    SharedGrant(user: user, grant: TokenGrant(numbers: numbers, issuedAt: issuedAt), issuedAt: issuedAt, seen: 0)
  }
  private func name(_ index: Int) -> String { "u\(1_000_000 + index)" }

  /// A node whose shared store has lost the grants of all users.
  private func world(users: Int, numbers: Int = 1) -> Surroundings {
    let world = Surroundings { configuration, routing in
      configuration.isClustered = true
      routing.directory = UserDirectory(routing.users, anyone: Routing.User(id: "", numbers: []), grantRules: Self.rules)
    }
    let rows = (0..<users).map { user in
      row(name(user), (0..<numbers).map { "+\(10_000_000 + user * numbers + $0)" }, 10)
    }
    for start in stride(from: 0, to: users, by: Self.most) {
      let batch = Array(rows[start..<min(users, start + Self.most)])
      _ = world.machine.changeGrants { $0.apply(batch, Self.rules, at: 0) }
    }
    world.feed(.wallClock(offsetMilliseconds: 0))
    var steps = 1
    world.feed(.sharedGrants(.comparison(known: [:])))
    while world.machine.routing.directory.grants.isComparing {
      #expect(world.machine.staleGrants == steps * Self.most, "a step compares no more")
      steps += 1
      world.feed(.sharedGrants(.comparisonStep))
    }
    #expect(world.machine.staleGrants == users && steps == users / Self.most + 1)
    world.actions = []
    return world
  }
  private func begin(_ world: Surroundings, _ number: UInt64 = 1) { world.feed(.restoreGrants(QuestionID(number))) }
  private func answers(_ world: Surroundings) -> [OperationAnswer] { world.operationAnswers.map(\.answer) }
  /// The batch that waits for its confirmation; nil: none.
  private func batch(_ world: Surroundings) -> [SharedGrant]? {
    world.actions.compactMap { if case .restoreGrants(let batch) = $0 { batch } else { nil } }.last
  }
  private func confirm(_ world: Surroundings) {
    let count = batch(world)?.count ?? 0
    world.actions = []
    world.feed(.grantsRestored(users: count, hasFailed: false))
  }
  private func login(_ user: String, _ grant: TokenGrant, _ world: Surroundings) {
    world.feed(.app(.granted(DeviceKey(user: user, device: "phone"), SessionID(user), grant)))
  }

  @Test func `200,000 users are compared and written in batches, and the answer follows the last one`() {
    let world = world(users: CallModel.Limits.grantedUsers)
    begin(world)
    #expect(batch(world) == [] && answers(world).isEmpty)
    var (last, batches, users) = ("", 0, 0)
    confirm(world)
    while let batch = batch(world) {
      #expect((1...Self.most).contains(batch.count) && batch.reduce(0) { $0 + $1.octets } <= CallModel.Limits.grantOctetsPerStep)
      #expect(batch[0].user > last && answers(world).isEmpty)
      (last, batches, users) = (batch.last?.user ?? "", batches + 1, users + batch.count)
      confirm(world)
    }
    #expect(users == CallModel.Limits.grantedUsers && batches == users / Self.most)
    #expect(answers(world) == [.restored(users: users)])
  }

  @Test func `a batch of users with many numbers ends with its octets`() {
    let world = world(users: 300, numbers: 100)
    begin(world)
    var users = 0
    confirm(world)
    while let batch = batch(world) {
      let octets = batch.dropLast().reduce(0) { $0 + $1.octets }
      #expect(octets < CallModel.Limits.grantOctetsPerStep && batch.count < 100)
      users += batch.count
      confirm(world)
    }
    #expect(users == 300 && answers(world) == [.restored(users: 300)])
  }

  @Test func `a second request is refused while a pass runs, and begins another one after it`() {
    let world = world(users: 700)
    begin(world)
    confirm(world)
    confirm(world)
    begin(world, 2)
    #expect(answers(world) == [.restoring(users: 500)] && batch(world)?.count == 200)
    confirm(world)
    #expect(world.operationAnswers.map(\.question.number) == [2, 1] && answers(world).last == .restored(users: 700))
    begin(world, 3)
    #expect(batch(world) == [])
  }

  @Test func `a pass that fails is answered with what was written, and a confirmation without a pass is ignored`() {
    let world = world(users: 700)
    world.feed(.grantsRestored(users: 9, hasFailed: false))
    world.feed(.grantsRestored(users: 9, hasFailed: true))
    #expect(batch(world) == nil && answers(world).isEmpty)
    begin(world)
    confirm(world)
    world.feed(.grantsRestored(users: 64, hasFailed: true))
    #expect(answers(world) == [.restoreFailed(users: 64)])
    world.actions = []
    confirm(world)
    #expect(batch(world) == nil && answers(world).count == 1)
  }

  @Test func `a batch has what the copy has when it is read: later tokens, no erased users, no rows that the store has again`() {
    let world = world(users: 1_200)
    begin(world)
    confirm(world)
    login(name(600), TokenGrant(numbers: ["+77"], issuedAt: 20), world)
    // as late as the lost one, with other numbers, after a row took one
    world.feed(.sharedGrants(.rows([row("bob", ["+10000601"], 30)], isAll: false)))
    login(name(601), TokenGrant(numbers: ["+78"], issuedAt: 10), world)
    world.feed(.sharedGrants(.rows([row("carol", ["+10000602"], 30)], isAll: false)))
    world.feed(.devices(.forget(user: name(603), QuestionID(9))))
    world.feed(.sharedGrants(.rows([row(name(604), ["+10000604"], 10)], isAll: false)))
    confirm(world)
    let batch = batch(world) ?? []
    func numbers(_ index: Int) -> [String]? { batch.first { $0.user == name(index) }?.grant?.numbers }
    #expect(numbers(600) == ["+77"] && numbers(601) == ["+78"])
    #expect(numbers(602) == ["+10000602"], "the store decides by iat")
    #expect(numbers(603) == nil && numbers(604) == nil && numbers(605) == ["+10000605"] && batch.count == Self.most)
  }

  @Test func `a comparison during a pass begins it again: what was lost once more is before its cursor`() {
    let world = world(users: 700)
    begin(world)
    confirm(world)
    // the first 500 were written and read, then the store loses all
    let rows = (0..<500).map { row(name($0), ["+\(10_000_000 + $0)"], 10) }
    world.feed(.sharedGrants(.rows(rows, isAll: false)))
    #expect(world.machine.staleGrants == 200)
    world.feed(.sharedGrants(.comparison(known: [:])))
    world.feed(.sharedGrants(.comparisonStep))
    confirm(world)
    #expect(batch(world)?.first?.user == name(0) && batch(world)?.count == 500)
    confirm(world)
    confirm(world)
    #expect(answers(world) == [.restored(users: 500 + 700)])
  }

  @Test func `what a login writes during a comparison is not taken for lost, nor a number that a row takes for the user's own`() {
    var here = UserGrants()
    _ = here.apply((0..<4).map { row(name($0), ["+\($0)"], 10) }, Self.rules, at: 0)
    here.beginComparison([name(0): 10, name(1): 10, name(2): 10])
    #expect(here.compareNext(most: 1, at: 0).stale.isEmpty)
    let changes = (try? here.accept(TokenGrant(numbers: ["+9"], issuedAt: 20), of: name(2), at: 0)) ?? []
    #expect(here.unshared(name(2), after: changes)?.issuedAt == 20)
    _ = here.apply([row("bob", ["+3"], 30)], Self.rules, at: 0)
    while here.isComparing { _ = here.compareNext(most: 1, at: 0) }
    #expect(here.stale == [name(3)])
    #expect(here.lost(after: nil, most: 9, octets: 9).map(\.grant?.numbers) == [["+3"]])
  }

  @Test func `lost grants are reported when the comparison is complete: the digest of a part is no node's`() {
    let world = world(users: 700)
    func digests() -> [UInt64] { world.actions.compactMap { if case .staleGrants(let digest) = $0 { digest } else { nil } } }
    world.feed(.sharedGrants(.comparison(known: [name(0): 10])))
    #expect(digests().isEmpty)
    world.feed(.sharedGrants(.comparisonStep))
    #expect(digests().count == 1 && world.machine.staleGrants == 699)
    let rows = (0..<700).map { row(name($0), ["+\(10_000_000 + $0)"], 10) }
    world.feed(.sharedGrants(.rows(rows, isAll: false)))
    #expect(digests().last == 0 && digests().count == 2)
    begin(world)
    confirm(world)
    #expect(answers(world) == [.restored(users: 0)])
  }

  @Test func `a reload with other rules checks all grants in steps, and one with the same rules checks none`() {
    let world = world(users: 1_200)
    func reload(_ rules: GrantRules?) {
      var routing = world.machine.routing
      routing.directory = UserDirectory(routing.users, anyone: Routing.User(id: "", numbers: []), grantRules: rules)
      world.feed(.routing(routing))
    }
    func count() -> Int { world.machine.routing.directory.grants.userCount }
    reload(Self.rules)
    #expect(count() == 1_200 && world.machine.nextDeadline == nil)
    reload(GrantRules(numbers: ["+2"]))
    #expect(count() == 700)
    // other rules meanwhile: all that is left is checked by these
    reload(GrantRules(numbers: ["+10001"]))
    #expect(count() == 200)
    world.pass(.seconds(1))
    #expect(count() == 200 && world.machine.nextDeadline == nil)
    reload(nil)
    #expect(count() == 0)
  }

  @Test func `a full table evicts as many expired grants as it needs, the oldest first`() throws {
    var grants = UserGrants(users: 3, numbers: 6)
    for user in 0..<3 as Range<Int64> {
      _ = try grants.accept(TokenGrant(numbers: ["1\(user)", "2\(user)"], issuedAt: 1), of: "u\(user)", at: 2 - user)
    }
    let now = 40 * 86_400_000 as Int64
    #expect(try grants.accept(TokenGrant(numbers: ["3"], issuedAt: 1), of: "a", at: now).first == .removed(user: "u2"))
    #expect(grants.userCount == 3 && grants.owner(of: "10") != nil)
    let changes = try grants.accept(TokenGrant(numbers: ["4", "5", "6", "7"], issuedAt: 2), of: "a", at: now)
    #expect(changes.contains(.removed(user: "u1")) && grants.userCount == 2)
    #expect(throws: UserGrants.Fault.full) {
      try grants.accept(TokenGrant(numbers: (20..<27).map { "\($0)" }, issuedAt: 3), of: "b", at: now)
    }
    #expect(grants.userCount == 2 && grants.owner(of: "10") != nil, "nothing was evicted in vain")
  }
}
