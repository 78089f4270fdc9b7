import AppSessions
import Cluster
import MemorySharedStore
import Testing
import TrunklineBytes

@testable import CallFlow
@testable import CallModel

/// What the shared store loses, refuses or answers late.
extension GrantTests {
  @Test func `what a token grants while the shared store is away counts at its node, and everywhere once it is back`() {
    let nodes = GrantNodes(3)
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
    let nodes = GrantNodes(3)
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
    let nodes = GrantNodes(3)
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
    let nodes = GrantNodes(3)
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

  @Test(arguments: ["OOM command not allowed", "READONLY You can't write against a read only replica."])
  func `a shared store that refuses writes in the middle of logins: all are served here, and written once it accepts them`(
    error: String
  ) {
    let nodes = GrantNodes(3)
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
    let nodes = GrantNodes(3)
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
    let nodes = GrantNodes(3)
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
    let nodes = GrantNodes(2)
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

  @Test func `rows of an earlier time: later tokens stay at the nodes, are counted, and are restored`() {
    let nodes = GrantNodes(3)
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
    let nodes = GrantNodes(3)
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
}
