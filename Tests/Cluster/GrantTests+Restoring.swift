import AppSessions
import Cluster
import MemorySharedStore
import Testing
import TrunklineBytes

@testable import CallFlow
@testable import CallModel

/// An operator's `users restore`.
extension GrantTests {
  /// Two nodes with copies of the users' grants, which the shared store has lost, and no sessions.
  private func lost(users: Int) -> GrantNodes {
    let nodes = GrantNodes(2)
    nodes.world.run(for: .seconds(15))
    for user in 0..<users { nodes.token(0, "u\(user)", ["+\(user)"], 10) }
    nodes.world.run(for: .seconds(100))
    for node in 0..<2 { nodes.sessions[node] = [] }
    nodes.world.sharedStore.flush(at: nodes.world.now)
    nodes.world.run(for: .seconds(30))
    #expect(nodes.grants.allSatisfy { $0.stale.count == users })
    return nodes
  }

  @Test func `copies that differ may be restored in any order: the later token has the number`() {
    for order in [[0, 1], [1, 0]] {
      let nodes = GrantNodes(2)
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

  @Test func `the answer follows the last write, a second request meanwhile is refused, and other nodes have the grants then`() {
    let nodes = lost(users: 1_200)
    nodes.restoreLost(0)
    nodes.restoreLost(0)
    nodes.world.run(for: .milliseconds(1))
    #expect(nodes.answers == [.restoring(users: 0)])
    nodes.world.run(for: .seconds(20))
    #expect(nodes.answers == [.restoring(users: 0), .restored(users: 1_200)] && nodes.largest.allSatisfy { $0 <= 500 })
    nodes.expectSame()
    nodes.restoreLost(0)
    nodes.world.run(for: .seconds(1))
    #expect(nodes.answers.last == .restored(users: 0))
  }

  @Test func `what a token or an operator changed after the request is never overwritten, at any time of the pass`() {
    for delay in [0, 1, 2, 5, 10, 20, 40, 80, 160, 320] as [Int64] {
      let nodes = lost(users: 1_200)
      nodes.restoreLost(0)
      nodes.world.run(for: .milliseconds(delay))
      for (index, user) in ["u0", "u500", "u999"].enumerated() { nodes.token(index % 2, user, ["+9\(user.dropFirst())"], 20) }
      for (index, user) in ["u1", "u501", "u998"].enumerated() { nodes.erase(index % 2, user, at: 20) }
      nodes.token(1, "bob", ["+2"], 30)
      nodes.world.run(for: .seconds(30))
      nodes.expectSame()
      nodes.expectOneUser()
      for node in nodes.grants {
        #expect(node.owner(of: "+90")?.user == "u0" && node.owner(of: "+9500")?.user == "u500" && node.owner(of: "+500") == nil)
        #expect(node["u1"] == nil && node["u501"] == nil && node["u998"] == nil && node.owner(of: "+2")?.user == "bob")
      }
    }
  }

  @Test
  func `if the shared store goes away during a pass, the answer says how many were written, and the next pass does the rest`() {
    let nodes = lost(users: 1_200)
    nodes.restoreLost(0)
    while nodes.world.sharedStore.store.grantRows.count < 600 { nodes.world.run(for: .milliseconds(1)) }
    nodes.world.sharedStore.goDown(at: nodes.world.now)
    nodes.world.run(for: .seconds(5))
    guard case .restoreFailed(let users)? = nodes.answers.last else {
      Issue.record("\(nodes.answers)")
      return
    }
    #expect((500..<1_200).contains(users) && nodes.answers.count == 1)
    // while it is away
    nodes.restoreLost(0)
    nodes.world.run(for: .seconds(1))
    #expect(nodes.answers.last == .restoreFailed(users: 0))
    nodes.world.sharedStore.comeUp(isFlushed: false, at: nodes.world.now)
    nodes.world.run(for: .seconds(20))
    nodes.restoreLost(0)
    nodes.world.run(for: .seconds(20))
    nodes.expectSame()
    guard case .restored(let rest)? = nodes.answers.last else {
      Issue.record("\(nodes.answers)")
      return
    }
    #expect(rest > 0 && users + rest <= 1_200)
  }

  @Test func `a shared store that refuses writes ends a pass, too`() {
    let nodes = lost(users: 1_200)
    nodes.restoreLost(0)
    while nodes.world.sharedStore.store.grantRows.count < 600 { nodes.world.run(for: .milliseconds(1)) }
    nodes.world.sharedStore.faults.refusesGrants = "OOM command not allowed"
    nodes.world.run(for: .seconds(2))
    guard case .restoreFailed(500..<1_200)? = nodes.answers.last else {
      Issue.record("\(nodes.answers)")
      return
    }
  }

  @Test func `a flush during a pass: what was written before it is written again`() {
    let nodes = lost(users: 1_200)
    nodes.restoreLost(0)
    while nodes.world.sharedStore.store.grantRows.count < 600 { nodes.world.run(for: .milliseconds(1)) }
    // one that the connection does not show
    nodes.world.sharedStore.store.loseGrants()
    nodes.world.run(for: .seconds(40))
    nodes.expectSame()
    guard case .restored(1_200...2_400)? = nodes.answers.first, nodes.answers.count == 1 else {
      Issue.record("\(nodes.answers)")
      return
    }
  }
}
