import AppSessions
import Bytes
import Cluster
import JSONWebToken
import MemorySharedStore
import Testing

@testable import CallFlow

/// What login tokens grant, over the shared store.
@Suite struct GrantTests {
  /// Nodes with the grants that their call machines would have.
  private final class Nodes {
    let world: ClusterWorld
    var grants: [UserGrants]
    var pages: [Int]
    private static let rules = GrantRules(numbers: ["+"])

    init(_ count: Int, seed: UInt64 = 1) {
      world = ClusterWorld(nodes: count, seed: seed)
      grants = Array(repeating: UserGrants(), count: count)
      pages = Array(repeating: 0, count: count)
      world.onAction = { [unowned self] logged in
        guard case .grants(let told) = logged.action else { return false }
        world.after(.zero) { [unowned self] in take(told, logged.node) }
        return true
      }
      for node in 0..<count { world.input(node, .sharesGrants(true)) }
    }

    private func take(_ told: SharedGrants, _ node: Int) {
      pages[node] += 1
      var shared = grants[node].merge(told.rows, Self.rules, at: 0).shared
      if let known = told.known { shared += grants[node].missing(in: known) }
      if !shared.isEmpty { world.input(node, .grants(shared)) }
    }

    func token(_ node: Int, _ user: String, _ numbers: [String], _ issuedAt: Int64) {
      let changes = try? grants[node].accept(TokenGrant(numbers: numbers, issuedAt: issuedAt), of: user, at: 0)
      world.input(
        node, .grants((changes ?? []).compactMap { if case .stored(let entry) = $0 { SharedGrant(entry) } else { nil } }))
    }
    func erase(_ node: Int, _ user: String, at: Int64) {
      _ = grants[node].remove(user)
      world.input(node, .grants([SharedGrant(user: user, grant: nil, issuedAt: at, seen: 0)]))
    }
    /// A new process of the node: what its store held is there.
    func restart(_ node: Int) {
      world.kill(node)
      world.restart(node)
      world.input(node, .sharesGrants(true))
    }
    func expectSame(_ location: SourceLocation = #_sourceLocation) {
      let all = grants.map { $0.entries.mapValues(\.grant) }
      for node in all { #expect(node == all[0], sourceLocation: location) }
      let sharedStore = world.sharedStore.store.grantRows.compactMapValues(\.grant)
      #expect(sharedStore == all[0], sourceLocation: location)
      for node in world.nodes { #expect(node.machine.unwritten == 0, sourceLocation: location) }
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

  @Test func `what came while the shared store was away, or what it has lost, is put back`() {
    let nodes = Nodes(3)
    nodes.world.run(for: .seconds(15))
    nodes.token(0, "alice", ["+1"], 10)
    nodes.world.run(for: .seconds(1))
    nodes.world.sharedStore.goDown(at: nodes.world.now)
    nodes.world.run(for: .seconds(5))
    nodes.token(1, "bob", ["+1"], 20)
    nodes.token(2, "carol", ["+3"], 21)
    nodes.world.sharedStore.comeUp(isFlushed: false, at: nodes.world.now)
    nodes.world.run(for: .seconds(15))
    nodes.expectSame()
    #expect(nodes.grants[0].owner(of: "+1")?.user == "bob")
    nodes.world.sharedStore.flush(at: nodes.world.now)
    nodes.world.run(for: .seconds(25))
    nodes.expectSame()
    #expect(nodes.grants[0].userCount == 3)
  }

  @Test(arguments: 1...12 as ClosedRange<UInt64>)
  func `whatever is lost on the way, all nodes come to the same`(seed: UInt64) {
    let nodes = Nodes(4, seed: seed)
    var random = SplitMix64(seed: seed)
    nodes.world.sharedStore.faults.losesRequests = 0.05
    nodes.world.sharedStore.faults.losesReplies = 0.05
    nodes.world.sharedStore.faults.losesMessages = 0.3
    nodes.world.sharedStore.faults.reorders = seed % 2 == 0
    if seed % 3 == 0 { nodes.world.sharedStore.replicationLag = .seconds(1) }
    nodes.world.run(for: .seconds(15))
    for step in 1...150 as ClosedRange<Int64> {
      let node = Int.random(in: 0..<4, using: &random)
      let user = "u\(Int.random(in: 0..<8, using: &random))"
      switch Int.random(in: 0..<20, using: &random) {
      case 0: nodes.erase(node, user, at: step * 10 + 5)
      case 1: nodes.restart(node)
      case 2 where step % 40 < 5: nodes.world.sharedStore.flush(at: nodes.world.now)
      default:
        let numbers = Set((0..<Int.random(in: 0..<3, using: &random)).map { _ in "+\(Int.random(in: 0..<9, using: &random))" })
        nodes.token(node, user, numbers.sorted(), step * 10)
      }
      nodes.world.run(for: .milliseconds(Int64.random(in: 1...400, using: &random)))
    }
    nodes.world.sharedStore.faults = MemorySharedStore.Faults()
    nodes.world.run(for: .seconds(60))
    nodes.expectSame()
  }
}
