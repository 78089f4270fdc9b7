import Cluster
import MemorySharedStore
import Testing
import TrunklineBytes

@Suite struct TaskTests {
  let trunk = SingleTask.trunk("carrier")

  private func world(_ count: Int, seed: UInt64 = 1) -> ClusterWorld {
    let world = ClusterWorld.running(count, seed: seed)
    for index in 0..<count { world.input(index, .trunks(single: ["carrier"], limited: [])) }
    world.run(for: .seconds(3))
    return world
  }

  @Test func `one node leads a task, and another takes over within 15 s of its death, its drain or its stop`() throws {
    for (seed, end) in (["kill", "drain", "stop", "cut"] * 3).enumerated() {
      let world = world(3, seed: UInt64(seed))
      let leader = try #require(world.leaders(of: trunk).first)
      #expect(world.leaders(of: trunk).count == 1)
      switch end {
      case "kill": world.kill(leader)
      case "drain": world.input(leader, .draining)
      case "cut": world.sharedStore.cut(leader, at: world.now)
      default:
        world.input(leader, .stopping)
        world.run(for: .milliseconds(50))
        world.kill(leader)
      }
      world.run(for: .seconds(15))
      #expect(world.leaders(of: trunk).contains { $0 != leader }, "\(end), seed \(seed)")
      guard end == "cut" else {
        #expect(world.leaders(of: trunk).count == 1, "\(end)")
        continue
      }
      world.sharedStore.mend(leader, at: world.now)
      world.run(for: .seconds(5))
      #expect(world.leaders(of: trunk).count == 1, "the one that was cut off hears of it")
    }
  }

  @Test func `while the shared store is away the leader of a trunk goes on, and no reaper does`() {
    let world = world(3)
    let leader = world.leaders(of: trunk)
    world.sharedStore.goDown(at: world.now)
    world.run(for: .seconds(60))
    #expect(world.leaders(of: trunk) == leader && leader.count == 1)
    #expect(world.leaders(of: .reaper) == [])
    world.sharedStore.comeUp(isFlushed: false, at: world.now)
    world.run(for: .seconds(15))
    #expect(world.leaders(of: trunk).count == 1)
    #expect(world.leaders(of: .reaper).count == 1)
  }

  @Test func `never do two reapers lead at once, whoever is frozen or cut off`() {
    for seed in 0..<10 as Range<UInt64> {
      let world = ClusterWorld.running(4, seed: seed)
      var random = SplitMix64(seed: seed)
      for _ in 0..<40 {
        let index = Int.random(in: 0..<4, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: world.freeze(index)
        case 1: if world.nodes[index].isFrozen { world.thaw(index) }
        case 2: world.sharedStore.cut(index, at: world.now)
        default: world.sharedStore.mend(index, at: world.now)
        }
        for _ in 0..<20 {
          world.run(for: .milliseconds(200))
          #expect(world.leaders(of: .reaper).count <= 1, "seed \(seed) at \(world.now)")
        }
      }
    }
  }

  @Test func `an idle node asks the shared store 0.5 times a second, and 0.1 for each task`() {
    let world = world(4)
    world.run(for: .seconds(30))
    let before = world.sharedStore.total
    world.run(for: .seconds(100))
    // Four nodes, two tasks; two leaders renew theirs every 3.3 s, and the reaper its lease every second.
    #expect(Double(world.sharedStore.total - before) / 100 < 4 * 0.7 + 2 * 0.35 + 0.6)
  }
}

private func * (list: [String], count: Int) -> [String] { Array(repeating: list, count: count).flatMap(\.self) }

@Suite struct NameTests {
  @Test func `a second node of a name that lives says where the first is`() {
    let world = ClusterWorld.running(2)
    let second = world.add(named: "n1")
    world.run(for: .milliseconds(100))
    // otherwise our own transport would reject its packets as those of an unknown peer, and its silence would prove nothing
    #expect(world.nodes[second].machine.nodes.contains { $0.lease.incarnation == world.incarnation(1) })
    world.run(for: .seconds(3))
    let taken = world.actions(of: second).compactMap { if case .nameInUse(let lease, true) = $0 { lease } else { nil } }
    #expect(taken.map(\.incarnation) == [world.incarnation(1)])
    #expect(world.nodes[1].machine.state == .up, "the first does not notice")
  }

  @Test func `a process that restarts within the lease of its predecessor has its own at once`() {
    let world = ClusterWorld.running(2)
    world.kill(1)
    world.run(for: .seconds(2))
    world.restart(1)
    world.run(for: .milliseconds(100))
    #expect(world.nodes[1].machine.state == .up)
    world.run(for: .seconds(3))
    #expect(!world.actions(of: 1).contains { if case .nameInUse = $0 { true } else { false } })
  }

  @Test func `without a journal that knows it, the lease of a dead one of our name is waited for`() {
    let world = ClusterWorld.running(2)
    world.kill(1)
    world.restart(1, knowsPredecessor: false)
    world.run(for: .seconds(8))
    #expect(world.nodes[1].machine.state == .up)
  }

  @Test func `a process that was frozen and whose name another has taken ends its calls without records`() {
    let world = ClusterWorld.running(3)
    world.start(1, 1, connect: 5)
    world.freeze(1)
    world.run(for: .seconds(20))
    let second = world.add(named: "n1")
    world.run(for: .seconds(20))
    #expect(world.nodes[second].machine.state == .up)
    world.thaw(1)
    world.run(for: .seconds(5))
    #expect(world.reaped(by: 1) == [callID(1)])
    #expect(world.actions(of: 1).contains { if case .nameInUse(_, false) = $0 { true } else { false } })
    #expect(world.orphans() == [callID(1)])
  }

  @Test func `what the leader of a trunk says of it is heard by all, with its lease`() {
    let world = ClusterWorld.running(3)
    func heard(_ node: Int) -> [[String: String]] {
      world.actions(of: node).compactMap { if case .troubles(let troubles) = $0 { troubles } else { nil } }
    }
    world.input(0, .troubles(["carrier": "OPTIONS not answered"]))
    world.run(for: .milliseconds(2_300))
    #expect(heard(1) == [["carrier": "OPTIONS not answered"]] && heard(2) == heard(1) && heard(0).isEmpty)
    world.input(0, .troubles(["carrier": "OPTIONS not answered"]))
    world.input(0, .troubles([:]))
    world.run(for: .milliseconds(2_300))
    #expect(heard(1).last == [:] && heard(1).count == 2)
    // a report that is not renewed, or that of a dead node, does not count
    world.input(0, .troubles(["carrier": "not registered"]))
    world.run(for: .milliseconds(2_300))
    world.sharedStore.cut(1, at: world.now)
    world.run(for: .milliseconds(100))
    #expect(heard(1).last == [:] && heard(2).last == ["carrier": "not registered"])
    world.kill(0)
    world.run(for: .seconds(9))
    #expect(heard(2).last == [:])
    world.input(2, .troubles(Dictionary(uniqueKeysWithValues: (0..<500).map { ("t\($0)", "not registered") })))
    world.sharedStore.mend(1, at: world.now)
    world.run(for: .seconds(10))
    #expect(heard(1).last?.count == 100, "a lease has its limit")
  }

  @Test func `how many nodes take calls is told each time it changes`() {
    let world = ClusterWorld.running(3)
    func counts() -> [Int] { world.actions(of: 0).compactMap { if case .nodes(let count) = $0 { count } else { nil } } }
    #expect(counts().last == 3)
    world.input(1, .draining)
    world.run(for: .seconds(3))
    #expect(counts().last == 2)
    world.kill(2)
    world.run(for: .seconds(9))
    #expect(counts().last == 1)
  }

  @Test func `a further trunk of a call has a place among those of all nodes, until it is given back`() {
    let world = ClusterWorld.running(2)
    func admit(_ node: Int, _ call: Int, _ trunk: String = "b", most: Int = 2) -> Bool? {
      let from = world.log.count
      world.input(node, .admit(callID(call), trunk: trunk, most: most))
      world.run(for: .milliseconds(50))
      return world.log[from...].compactMap {
        if case .admitted(callID(call), trunk, let isOurs) = $0.action { isOurs } else { nil }
      }.first
    }
    world.start(0, 1, mostOfTrunk: 9)
    world.start(1, 2, user: "bob", mostOfTrunk: 9)
    #expect(admit(0, 1) == true && admit(1, 2) == true && admit(0, 1) == false)
    world.input(1, .released(callID(2), trunk: "b"))
    world.run(for: .milliseconds(50))
    #expect(admit(0, 1) == true, "a call that leaves over the trunk of its caller has two places")
    #expect(
      world.sharedStore.store.trunks["b"]?.values.reduce(0, +) == 2 && world.sharedStore.store.trunks["carrier"]?.count == 2)
    world.input(0, .ended(callID(1), over: nil))
    world.run(for: .milliseconds(50))
    #expect(world.sharedStore.store.trunks["b"]?.isEmpty ?? true)
  }
}
