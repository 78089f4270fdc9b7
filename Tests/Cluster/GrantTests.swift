import AppSessions
import Cluster
import MemorySharedStore
import Testing
import TrunklineBytes

@testable import CallFlow
@testable import CallModel

/// Grants of login tokens, over the shared store.
@Suite struct GrantTests {
  @Test func `a grant is at every node within a tenth of a second, and moves`() {
    let nodes = GrantNodes(3)
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
    let nodes = GrantNodes(2)
    nodes.world.run(for: .seconds(15))
    for user in 0..<1_200 { nodes.token(0, "u\(user)", ["+\(user)"], 10) }
    nodes.world.run(for: .seconds(5))
    nodes.expectSame()
    nodes.grants[1] = UserGrants()
    nodes.pages[1] = 0
    nodes.restart(1)
    nodes.world.run(for: .seconds(20))
    nodes.expectSame()
    #expect(nodes.pages[1] >= 4 && nodes.largest[1] == 500)
  }

  @Test func `nothing is read where tokens grant nothing, and all once they may`() {
    let nodes = GrantNodes(2)
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
    let nodes = GrantNodes(2)
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
    let nodes = GrantNodes(3)
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

  @Test func `what changes while a node applies all rows in steps is read after them`() {
    let nodes = GrantNodes(2)
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

  @Test func `a node that was down does not revive an erased user`() {
    let nodes = GrantNodes(3)
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
    let nodes = GrantNodes(count, seed: seed)
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
      case 6: nodes.restoreLost(node)
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
    let nodes = GrantNodes(4, seed: seed)
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
