import AppSessions
import Cluster
import JSONWebToken
import MemorySharedStore
import Testing
import TrunklineBytes

@testable import CallFlow
@testable import CallModel

/// Grants of login tokens, over the shared store.
@Suite struct GrantTests {
  /// Nodes with the grants that their call machines would have.
  private final class Nodes {
    let world: ClusterWorld
    var grants: [UserGrants]
    /// Users with a session at the node.
    var sessions: [Set<String>]
    var pages: [Int]
    /// Nodes whose copy may lack grants.
    private(set) var uncertain: Set<Int> = []
    private var reported: [UInt64]
    private static let rules = GrantRules(numbers: ["+"])

    init(_ count: Int, seed: UInt64 = 1) {
      world = ClusterWorld(nodes: count, seed: seed)
      grants = Array(repeating: UserGrants(), count: count)
      sessions = Array(repeating: [], count: count)
      pages = Array(repeating: 0, count: count)
      reported = Array(repeating: 0, count: count)
      world.onAction = { [unowned self] logged in
        switch logged.action {
        case .grants(let told): world.after(.zero) { [unowned self] in take(told, logged.node) }
        case .grantsUncertain(true): uncertain.insert(logged.node)
        case .grantsUncertain(false): uncertain.remove(logged.node)
        default: return false
        }
        return true
      }
      for node in 0..<count { world.input(node, .sharesGrants(true)) }
    }

    private func take(_ told: SharedGrants, _ node: Int) {
      pages[node] += 1
      if let known = told.known {
        _ = grants[node].compare(known, at: 0)
        let ours = grants[node].stale.intersection(sessions[node]).sorted().compactMap { grants[node].unshared($0, after: []) }
        if !ours.isEmpty { world.input(node, .grants(ours)) }
      }
      _ = grants[node].apply(told.rows, Self.rules, at: 0)
      report(node)
    }

    private func report(_ node: Int) {
      guard grants[node].staleDigest != reported[node] else { return }
      reported[node] = grants[node].staleDigest
      world.input(node, .staleGrants(reported[node]))
    }
    /// An operator's `users restore` at the node.
    func restoreLost(_ node: Int) {
      let lost = grants[node].stale.sorted().compactMap { grants[node].unshared($0, after: []) }
      if !lost.isEmpty { world.input(node, .grants(lost)) }
    }

    func token(_ node: Int, _ user: String, _ numbers: [String], _ issuedAt: Int64) {
      let grant = TokenGrant(numbers: numbers, issuedAt: issuedAt)
      guard let changes = try? grants[node].accept(grant, of: user, at: 0) else { return }
      sessions[node].insert(user)
      if let unshared = grants[node].unshared(user, after: changes) { world.input(node, .grants([unshared])) }
    }
    func erase(_ node: Int, _ user: String, at: Int64) {
      _ = grants[node].remove(user)
      report(node)
      world.input(node, .grants([SharedGrant(user: user, grant: nil, issuedAt: at, seen: 0)]))
    }
    /// A new process of the node, which loads what its store held.
    func restart(_ node: Int) {
      world.kill(node)
      sessions[node] = []
      uncertain.remove(node)
      world.restart(node)
      world.input(node, .sharesGrants(true))
      reported[node] = 0
      report(node)
    }
    func expectSame(_ location: SourceLocation = #_sourceLocation) {
      let sharedStore = world.sharedStore.store.grantRows.compactMapValues(\.grant)
      for node in grants {
        #expect(node.entries.mapValues(\.grant) == sharedStore, sourceLocation: location)
        #expect(node.stale.isEmpty, sourceLocation: location)
      }
      #expect(uncertain.isEmpty, sourceLocation: location)
      for node in world.nodes { #expect(node.machine.unwritten == 0, sourceLocation: location) }
    }
    /// A number has one user: in the shared store, and at each node.
    func expectOneUser(_ location: SourceLocation = #_sourceLocation) {
      let numbers = world.sharedStore.store.grantRows.values.flatMap(\.canonicalNumbers)
      #expect(Set(numbers).count == numbers.count, sourceLocation: location)
      for node in grants {
        #expect(node.owners.count == node.entries.values.reduce(0) { $0 + $1.grant.numbers.count }, sourceLocation: location)
      }
    }
  }

  @Test func `a grant is at every node within a tenth of a second, and moves`() {
    let nodes = Nodes(3)
    nodes.world.run(for: .seconds(15))
    nodes.token(0, "alice", ["+1", "+2"], 10)
    nodes.world.run(for: .milliseconds(100))
    for node in 0..<3 { #expect(nodes.grants[node].owner(of: "+2")?.user == "alice") }
    nodes.token(2, "bob", ["+2"], 20)
    nodes.world.run(for: .milliseconds(100))
    for node in 0..<3 { #expect(nodes.grants[node].owner(of: "+2")?.user == "bob") }
    nodes.erase(1, "bob", at: 30)
    nodes.world.run(for: .milliseconds(150))
    for node in 0..<3 { #expect(nodes.grants[node].owner(of: "+2") == nil) }
    nodes.expectSame()
  }

  @Test func `a node that comes later has all of it, in steps`() {
    let nodes = Nodes(2)
    nodes.world.run(for: .seconds(15))
    for user in 0..<1_200 { nodes.token(0, "u\(user)", ["+\(user)"], 10) }
    nodes.world.run(for: .seconds(5))
    nodes.expectSame()
    nodes.grants[1] = UserGrants()
    nodes.pages[1] = 0
    nodes.restart(1)
    nodes.world.run(for: .seconds(20))
    nodes.expectSame()
    #expect(nodes.pages[1] >= 3)
  }

  @Test func `nothing is read where tokens grant nothing, and all once they may`() {
    let nodes = Nodes(2)
    nodes.world.input(1, .sharesGrants(false))
    nodes.world.run(for: .seconds(15))
    nodes.token(0, "alice", ["+1"], 10)
    nodes.world.run(for: .seconds(15))
    #expect(nodes.grants[1].isEmpty)
    nodes.world.input(1, .sharesGrants(true))
    nodes.world.run(for: .seconds(1))
    nodes.expectSame()
  }

  @Test func `what had no answer is asked again after a second or two`() {
    let nodes = Nodes(2)
    nodes.world.run(for: .seconds(15))
    nodes.world.sharedStore.faults.losesRequests = 1
    nodes.token(0, "alice", ["+1"], 10)
    nodes.world.run(for: .milliseconds(300))
    nodes.world.sharedStore.faults.losesRequests = 0
    nodes.world.run(for: .milliseconds(2_300))
    nodes.expectSame()
    #expect(nodes.grants[1].userCount == 1)
  }

  @Test func `a number that moves has a user at each node at each moment`() {
    let nodes = Nodes(3)
    nodes.world.run(for: .seconds(15))
    nodes.token(0, "alice", ["+1"], 10)
    nodes.world.run(for: .seconds(1))
    for step in 1...20 as ClosedRange<Int64> {
      nodes.token(Int(step % 3), step % 2 == 0 ? "alice" : "zoe", ["+1"], 10 + step)
      for _ in 0..<100 {
        nodes.world.run(for: .milliseconds(2))
        for node in 0..<3 { #expect(nodes.grants[node].owner(of: "+1") != nil) }
      }
    }
    nodes.expectSame()
  }

  @Test func `what a token grants while the shared store is away counts at its node, and everywhere once it is back`() {
    let nodes = Nodes(3)
    nodes.world.run(for: .seconds(15))
    nodes.token(0, "alice", ["+1"], 10)
    nodes.world.run(for: .seconds(1))
    nodes.world.sharedStore.goDown(at: nodes.world.now)
    nodes.world.run(for: .seconds(5))
    nodes.token(1, "bob", ["+1"], 20)
    nodes.token(2, "carol", ["+1", "+3"], 15)
    nodes.world.run(for: .seconds(1))
    #expect((0..<3).map { nodes.grants[$0].owner(of: "+1")?.user } == ["alice", "bob", "carol"])
    nodes.world.sharedStore.comeUp(isFlushed: false, at: nodes.world.now)
    nodes.world.run(for: .seconds(15))
    nodes.expectSame()
    nodes.expectOneUser()
    #expect(nodes.grants[0].owner(of: "+1")?.user == "bob" && nodes.grants[1].owner(of: "+3")?.user == "carol")
  }

  @Test func `what the shared store has lost is served, reported, and written by the next login, or for a user with a session`() {
    let nodes = Nodes(3)
    nodes.world.run(for: .seconds(15))
    nodes.token(0, "alice", ["+1"], 10)
    nodes.token(1, "bob", ["+2"], 11)
    nodes.token(2, "dora", ["+4"], 12)
    nodes.world.run(for: .seconds(100))
    for node in 0..<2 { nodes.sessions[node] = [] }
    nodes.world.sharedStore.flush(at: nodes.world.now)
    nodes.world.run(for: .seconds(25))
    #expect(nodes.world.sharedStore.store.grantRows.keys.sorted() == ["dora"], "she has a session")
    for node in 0..<3 {
      #expect(nodes.grants[node].owner(of: "+1")?.user == "alice" && nodes.grants[node].stale == ["alice", "bob"])
    }
    // the user's current token, at any node
    nodes.token(2, "alice", ["+1"], 10)
    nodes.world.run(for: .seconds(1))
    #expect(nodes.world.sharedStore.store.grantRows.keys.sorted() == ["alice", "dora"])
    for node in 0..<3 { #expect(nodes.grants[node].stale == ["bob"]) }
    // a number of a lost row moves, and moves back
    nodes.token(1, "carol", ["+2"], 12)
    nodes.world.run(for: .seconds(1))
    nodes.token(0, "bob", ["+2"], 13)
    // the next renewals show that no node serves a lost grant
    nodes.world.run(for: .seconds(5))
    nodes.expectSame()
    #expect(nodes.grants[2].owner(of: "+2")?.user == "bob")
  }

  @Test func `while the shared store is away, and until all is read again, a node's copy may lack grants`() {
    let nodes = Nodes(3)
    #expect(nodes.uncertain == [0, 1, 2])
    nodes.world.run(for: .seconds(15))
    nodes.token(0, "alice", ["+1"], 10)
    nodes.world.run(for: .seconds(1))
    #expect(nodes.uncertain.isEmpty)
    nodes.world.sharedStore.cut(1, at: nodes.world.now)
    nodes.world.run(for: .seconds(1))
    #expect(nodes.uncertain == [1])
    nodes.token(0, "bob", ["+2"], 20)
    nodes.world.run(for: .seconds(1))
    nodes.world.sharedStore.mend(1, at: nodes.world.now)
    for _ in 0..<1_000 {
      nodes.world.run(for: .milliseconds(10))
      #expect(nodes.uncertain == [1] || nodes.uncertain.isEmpty && nodes.grants[1].owner(of: "+2")?.user == "bob")
    }
    nodes.expectSame()
    // connected, but no read has an answer
    nodes.world.sharedStore.faults.losesRequests = 1
    nodes.world.run(for: .seconds(20))
    #expect(nodes.uncertain == [0, 1, 2])
    nodes.world.sharedStore.faults.losesRequests = 0
    nodes.world.run(for: .seconds(20))
    nodes.expectSame()
  }

  @Test func `after a flush only nodes without the others' copies are uncertain, until the lost grants are written again`() {
    let nodes = Nodes(3)
    nodes.world.run(for: .seconds(15))
    nodes.token(0, "alice", ["+1"], 10)
    nodes.token(1, "bob", ["+2"], 11)
    nodes.world.run(for: .seconds(100))
    for node in 0..<3 { nodes.sessions[node] = [] }
    nodes.world.sharedStore.flush(at: nodes.world.now)
    nodes.world.run(for: .seconds(25))
    #expect(nodes.uncertain.isEmpty && nodes.grants.allSatisfy { $0.stale == ["alice", "bob"] })
    // a node without a store of its own
    nodes.grants[2] = UserGrants()
    nodes.restart(2)
    nodes.world.run(for: .seconds(20))
    #expect(nodes.grants[2].isEmpty && nodes.uncertain == [2])
    nodes.token(2, "alice", ["+1"], 10)
    nodes.world.run(for: .seconds(5))
    #expect(nodes.uncertain == [2] && nodes.grants[2].stale.isEmpty && nodes.grants[0].stale == ["bob"])
    nodes.restoreLost(0)
    nodes.world.run(for: .seconds(5))
    nodes.expectSame()
    #expect(nodes.grants[2].owner(of: "+2")?.user == "bob")
  }

  @Test func `copies that differ may be restored in any order: the later token has the number`() {
    for order in [[0, 1], [1, 0]] {
      let nodes = Nodes(2)
      nodes.world.run(for: .seconds(15))
      nodes.token(0, "alice", ["+1", "+3"], 10)
      nodes.world.run(for: .seconds(100))
      let old = nodes.grants[0]
      nodes.token(1, "bob", ["+1"], 20)
      nodes.world.run(for: .seconds(100))
      for node in 0..<2 { nodes.sessions[node] = [] }
      // node 0 missed bob's token
      nodes.grants[0] = old
      nodes.world.sharedStore.flush(at: nodes.world.now)
      nodes.world.run(for: .seconds(25))
      #expect(nodes.uncertain == [0, 1], "each has users that the other does not have")
      for node in order {
        nodes.restoreLost(node)
        nodes.world.run(for: .seconds(5))
      }
      nodes.expectSame()
      nodes.expectOneUser()
      #expect(nodes.grants.allSatisfy { $0.owner(of: "+1")?.user == "bob" && $0.owner(of: "+3")?.user == "alice" })
    }
  }

  @Test(arguments: ["OOM command not allowed", "READONLY You can't write against a read only replica."])
  func `a shared store that refuses writes in the middle of logins: all are served here, and written once it accepts them`(
    error: String
  ) {
    let nodes = Nodes(3)
    nodes.world.run(for: .seconds(15))
    for user in 0..<100 {
      if user == 50 { nodes.world.sharedStore.faults.refusesGrants = error }
      nodes.token(0, "u\(user)", ["+\(user)"], 10)
      nodes.world.run(for: .milliseconds(20))
    }
    nodes.token(1, "bob", ["+1"], 20)
    nodes.erase(2, "u2", at: 30)
    nodes.world.run(for: .seconds(20))
    #expect(nodes.grants[0].userCount == 100 && nodes.grants[1].owner(of: "+1")?.user == "bob")
    #expect(nodes.grants[2].userCount < 60 && nodes.grants[2].owner(of: "+1")?.user == "u1", "the copy goes on")
    nodes.world.sharedStore.faults.refusesGrants = nil
    nodes.world.run(for: .seconds(5))
    nodes.expectSame()
    nodes.expectOneUser()
    #expect(nodes.grants.allSatisfy { $0.userCount == 100 && $0.owner(of: "+1")?.user == "bob" })
  }

  @Test func `answers that come too late count as none: copies go on, and all is as it was once they are in time`() {
    let nodes = Nodes(3)
    nodes.world.run(for: .seconds(15))
    nodes.token(0, "alice", ["+1"], 10)
    nodes.world.run(for: .seconds(1))
    nodes.world.sharedStore.faults.latency = 0.2...0.4
    nodes.token(0, "bob", ["+1"], 20)
    nodes.token(1, "carol", ["+2"], 20)
    nodes.world.run(for: .seconds(30))
    nodes.expectOneUser()
    for node in 0..<3 { #expect(nodes.grants[node].owner(of: "+1") != nil) }
    nodes.world.sharedStore.faults = MemorySharedStore.Faults()
    nodes.world.run(for: .seconds(30))
    nodes.expectSame()
    #expect(nodes.grants.allSatisfy { $0.owner(of: "+1")?.user == "bob" && $0.owner(of: "+2")?.user == "carol" })
  }

  @Test func `rows that are missing or not signed: copies go on, their users are counted, and each login repairs its own`() {
    let nodes = Nodes(3)
    nodes.world.run(for: .seconds(15))
    for user in 0..<10 { nodes.token(user % 3, "u\(user)", ["+\(user)"], 10) }
    nodes.world.run(for: .seconds(100))
    for node in 0..<3 { nodes.sessions[node] = [] }
    nodes.world.sharedStore.faults.hidesGrants = ["u1", "u2", "u3"]
    // all is read after an outage
    nodes.world.sharedStore.goDown(at: nodes.world.now)
    nodes.world.run(for: .seconds(5))
    nodes.world.sharedStore.comeUp(isFlushed: false, at: nodes.world.now)
    nodes.world.run(for: .seconds(20))
    for node in 0..<3 {
      #expect(nodes.grants[node].stale == ["u1", "u2", "u3"] && nodes.grants[node].owner(of: "+2")?.user == "u2")
      #expect(nodes.world.nodes[node].machine.statistics.valuesDropped >= 3)
    }
    #expect(nodes.uncertain.isEmpty)
    nodes.world.sharedStore.faults.hidesGrants = []
    nodes.token(0, "u1", ["+1"], 10)
    for user in 2...3 { nodes.token(1, "u\(user)", ["+\(user)"], 20) }
    nodes.world.sharedStore.goDown(at: nodes.world.now)
    nodes.world.run(for: .seconds(5))
    nodes.world.sharedStore.comeUp(isFlushed: false, at: nodes.world.now)
    nodes.world.run(for: .seconds(20))
    nodes.expectSame()
  }

  @Test func `grants alone are lost, as in one shard of a Redis Cluster: it is noticed by the next read`() {
    let nodes = Nodes(2)
    nodes.world.run(for: .seconds(15))
    for user in 0..<5 { nodes.token(0, "u\(user)", ["+\(user)"], 10) }
    nodes.world.run(for: .seconds(100))
    for node in 0..<2 { nodes.sessions[node] = [] }
    nodes.world.sharedStore.store.loseGrants()
    nodes.world.run(for: .seconds(25))
    #expect(nodes.grants.allSatisfy { $0.stale.count == 5 && $0.userCount == 5 })
    // fewer rows than before, and one that is new
    nodes.token(1, "bob", ["+9"], 20)
    nodes.world.run(for: .seconds(25))
    #expect(nodes.grants.allSatisfy { $0.stale.count == 5 && $0.owner(of: "+9")?.user == "bob" })
    nodes.restoreLost(1)
    nodes.world.run(for: .seconds(5))
    nodes.expectSame()
  }

  @Test func `what changes while a node applies all rows in steps is read after them`() {
    let nodes = Nodes(2)
    nodes.world.run(for: .seconds(15))
    for user in 0..<3_000 { nodes.token(0, "u\(user)", ["+\(user)"], 10) }
    nodes.world.run(for: .seconds(10))
    nodes.grants[1] = UserGrants()
    nodes.pages[1] = 0
    nodes.restart(1)
    for _ in 0..<20_000 where nodes.pages[1] < 2 { nodes.world.run(for: .milliseconds(1)) }
    #expect(nodes.pages[1] == 2)
    // the last ones that are applied, by the order of the users
    nodes.token(0, "bob", ["+0", "+1", "+10"], 20)
    nodes.world.run(for: .seconds(5))
    nodes.expectSame()
    #expect(nodes.grants[1].owner(of: "+0")?.user == "bob")
  }

  @Test func `rows of an earlier time: later tokens stay at the nodes, are counted, and are restored`() {
    let nodes = Nodes(3)
    nodes.world.run(for: .seconds(15))
    nodes.token(0, "alice", ["+1", "+2"], 10)
    nodes.world.run(for: .seconds(5))
    let old = nodes.world.sharedStore.store
    nodes.token(1, "bob", ["+1"], 20)
    nodes.token(2, "alice", ["+3"], 30)
    nodes.world.run(for: .seconds(100))
    for node in 0..<3 { nodes.sessions[node] = [] }
    nodes.world.sharedStore.store = old
    nodes.world.run(for: .seconds(30))
    for node in nodes.grants {
      #expect(node.stale == ["alice", "bob"] && node.owner(of: "+3")?.user == "alice" && node.owner(of: "+1")?.user == "bob")
      #expect(node.owner(of: "+2") == nil)
    }
    nodes.restoreLost(2)
    nodes.world.run(for: .seconds(5))
    nodes.expectSame()
    #expect(nodes.grants.allSatisfy { $0.owner(of: "+3")?.user == "alice" && $0.owner(of: "+1")?.user == "bob" })
  }

  @Test func `what was written within the last minute outlives a failover that loses it`() {
    let nodes = Nodes(3)
    nodes.world.sharedStore.replicationLag = .seconds(1)
    nodes.world.run(for: .seconds(15))
    nodes.token(0, "alice", ["+1"], 10)
    nodes.token(1, "dora", ["+2"], 10)
    nodes.world.run(for: .seconds(5))
    nodes.token(1, "bob", ["+1"], 20)
    nodes.erase(2, "dora", at: 30)
    nodes.world.run(for: .milliseconds(500))
    nodes.world.sharedStore.failOver(at: nodes.world.now)
    nodes.world.run(for: .seconds(20))
    nodes.expectSame()
    #expect(nodes.grants[0].owner(of: "+1")?.user == "bob" && nodes.grants[0]["dora"] == nil)
  }

  @Test func `a node that was down does not revive an erased user`() {
    let nodes = Nodes(3)
    nodes.world.run(for: .seconds(15))
    nodes.token(0, "alice", ["+1"], 10)
    nodes.world.run(for: .seconds(1))
    nodes.world.kill(2)
    nodes.erase(0, "alice", at: 20)
    nodes.world.run(for: .seconds(30))
    nodes.restart(2)
    nodes.world.run(for: .seconds(20))
    #expect(nodes.grants[2].isEmpty)
    nodes.token(2, "alice", ["+1"], 10)
    nodes.world.run(for: .seconds(1))
    nodes.expectSame()
    #expect(nodes.grants[0].isEmpty)
  }

  @Test(arguments: 1...16 as ClosedRange<UInt64>)
  func `whatever is lost on the way, all nodes come to the state of the shared store`(seed: UInt64) {
    let count = seed % 2 == 0 ? 3 : 4
    let nodes = Nodes(count, seed: seed)
    var random = SplitMix64(seed: seed)
    nodes.world.sharedStore.faults.losesRequests = 0.05
    nodes.world.sharedStore.faults.losesReplies = 0.05
    nodes.world.sharedStore.faults.losesMessages = 0.3
    nodes.world.sharedStore.faults.reorders = seed % 4 < 2
    if seed % 3 == 0 { nodes.world.sharedStore.replicationLag = .seconds(1) }
    // the last token or erasure of each user
    var last: [String: (numbers: [String]?, at: Int64)] = [:]
    func say(_ node: Int, _ user: String) {
      guard let (numbers, at) = last[user] else { return }
      if let numbers { nodes.token(node, user, numbers, at) } else { nodes.erase(node, user, at: at) }
    }
    nodes.world.run(for: .seconds(15))
    for step in 1...200 as ClosedRange<Int64> {
      let node = Int.random(in: 0..<count, using: &random)
      let user = "u\(Int.random(in: 0..<8, using: &random))"
      switch Int.random(in: 0..<24, using: &random) {
      case 0:
        last[user] = (nil, step * 10 + 5)
        say(node, user)
      case 1: nodes.restart(node)
      case 2 where step % 40 < 5: nodes.world.sharedStore.flush(at: nodes.world.now)
      case 3 where step % 40 > 35: nodes.world.sharedStore.failOver(at: nodes.world.now)
      case 4, 5: say(node, user)
      default:
        let numbers = Set((0..<Int.random(in: 0..<3, using: &random)).map { _ in "+\(Int.random(in: 0..<9, using: &random))" })
        last[user] = (numbers.sorted(), step * 10)
        say(node, user)
      }
      nodes.world.run(for: .milliseconds(Int64.random(in: 1...400, using: &random)))
      nodes.expectOneUser()
    }
    nodes.world.sharedStore.faults = MemorySharedStore.Faults()
    nodes.world.run(for: .seconds(60))
    nodes.expectOneUser()
    // every user logs in again, or is erased again, everywhere
    for user in last.keys.sorted() { for node in 0..<count { say(node, user) } }
    nodes.world.run(for: .seconds(30))
    nodes.expectSame()
    nodes.expectOneUser()
  }

  @Test(arguments: 1...16 as ClosedRange<UInt64>)
  func `without a loss of the shared store nobody has to log in again`(seed: UInt64) {
    let nodes = Nodes(4, seed: seed)
    var random = SplitMix64(seed: seed &* 77)
    nodes.world.sharedStore.faults.losesRequests = 0.05
    nodes.world.sharedStore.faults.losesReplies = 0.05
    nodes.world.sharedStore.faults.losesMessages = 0.3
    nodes.world.sharedStore.faults.reorders = seed % 2 == 0
    nodes.world.run(for: .seconds(15))
    for step in 1...200 as ClosedRange<Int64> {
      let node = Int.random(in: 0..<4, using: &random)
      let user = "u\(Int.random(in: 0..<8, using: &random))"
      switch Int.random(in: 0..<24, using: &random) {
      case 0: nodes.erase(node, user, at: step * 10 + 5)
      case 1 where step % 20 < 10: nodes.world.sharedStore.goDown(at: nodes.world.now)
      case 2...6: nodes.world.sharedStore.comeUp(isFlushed: false, at: nodes.world.now)
      default:
        let numbers = Set((0..<Int.random(in: 0..<3, using: &random)).map { _ in "+\(Int.random(in: 0..<9, using: &random))" })
        nodes.token(node, user, numbers.sorted(), step * 10)
      }
      nodes.world.run(for: .milliseconds(Int64.random(in: 1...400, using: &random)))
    }
    nodes.world.sharedStore.comeUp(isFlushed: false, at: nodes.world.now)
    nodes.world.sharedStore.faults = MemorySharedStore.Faults()
    nodes.world.run(for: .seconds(60))
    nodes.expectSame()
    nodes.expectOneUser()
  }
}
