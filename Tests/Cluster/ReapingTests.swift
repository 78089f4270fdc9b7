import AppSessions
import CallFlow
import CallModel
import Devices
import MemorySharedStore
import Testing
import TrunklineBytes

@testable import Cluster

/// Death of a node: calls are closed on evidence only, and each once.
@Suite struct ReapingTests {
  /// A node that is not the reaper, with a ringing call 1 and a connected call 2.
  private func busy(_ nodes: Int = 3, seed: UInt64 = 1) -> (world: ClusterWorld, victim: Int) {
    let world = ClusterWorld.running(nodes, seed: seed)
    let victim = world.follower
    world.start(victim, 1, user: "alice", mostOfTrunk: 10)
    world.start(victim, 2, user: "bob", connect: 5, mostOfTrunk: 10)
    return (world, victim)
  }

  @Test func `a killed process: all its calls are closed within 8 s, once, and nothing of it is left`() {
    for seed in 0..<12 as Range<UInt64> {
      let (world, victim) = busy(seed: seed)
      let dead = world.incarnation(victim)
      let start = world.now
      world.kill(victim)
      world.run(for: .seconds(8))
      #expect(Set(world.orphans(since: start)) == [callID(1), callID(2)], "seed \(seed)")
      world.run(for: .seconds(90))
      #expect(world.orphans().count == 2)
      #expect(world.sharedStore.store.calls(of: dead) == [])
      #expect(world.sharedStore.store.calls.isEmpty)
      #expect(world.sharedStore.store.trunks["carrier"]?.values.reduce(0, +) ?? 0 == 0, "its share goes back")
      #expect(world.sharedStore.store.tombstone(of: callID(2), at: start + .seconds(10)) != nil)
      for node in world.nodes where node.isAlive {
        let seen = node.machine.nodes.first { $0.lease.incarnation == dead }
        #expect(seen?.liveness == .dead, "seed \(seed): all know that it is dead")
      }
      guard seed == 0 else { continue }
      world.run(for: .seconds(3_600))
      #expect(world.nodes.allSatisfy { !$0.isAlive || !$0.machine.nodes.contains { $0.lease.incarnation == dead } }, "forgotten")
    }
  }

  @Test func `the reaper itself is killed: another closes its calls`() {
    for seed in 0..<12 as Range<UInt64> {
      let world = ClusterWorld.running(4, seed: seed)
      let victim = world.reaper
      world.start(victim, 1)
      let start = world.now
      world.kill(victim)
      world.run(for: .seconds(10))
      #expect(world.orphans(since: start) == [callID(1)], "seed \(seed)")
    }
  }

  @Test func `a reaper that dies in the middle leaves the rest to the next one`() {
    let world = ClusterWorld.running(4)
    let victim = world.follower
    for call in 0..<300 { world.start(victim, call, user: "u\(call)", connect: 5) }
    world.run(for: .seconds(1))
    let reaper = world.reaper
    world.kill(victim)
    while world.orphans().count < 100 { world.run(for: .milliseconds(5)) }
    world.kill(reaper)
    world.run(for: .seconds(30))
    // Calls that the dead reaper had claimed but not removed are closed after its claims expire. The calls of its last moment may
    // have two records then, of which the stream keeps one.
    world.run(for: .seconds(90))
    #expect(Set(world.orphans()).count == 300)
    #expect(world.orphans().count <= 300 + Limits.reapStep)
  }

  @Test func `1,000 calls are closed within 5 s of the evidence, 20 in one step`() {
    let world = ClusterWorld.running(3)
    let victim = world.follower
    for call in 0..<1_000 {
      world.input(victim, .locate(question(call, users: ["u\(call)"])))
      world.input(victim, .started(line(call, user: "u\(call)", connect: 5), users: ["u\(call)"]))
    }
    world.run(for: .seconds(3))
    world.kill(victim)
    while world.orphans().isEmpty { world.run(for: .milliseconds(5)) }
    let start = world.now
    while world.orphans().count < 1_000, world.now - start < .seconds(10) { world.run(for: .milliseconds(5)) }
    #expect(world.now - start < .seconds(5))
    var steps: [Instant: Int] = [:]
    for logged in world.log { if case .orphan = logged.action { steps[logged.at, default: 0] += 1 } }
    #expect(steps.values.max()! <= 20)
  }

  @Test func `a frozen process: ringing calls are moved in 12 s, connected ones live on for 30 s more`() {
    for seed in 0..<8 as Range<UInt64> {
      let (world, victim) = busy(seed: seed)
      let start = world.now
      world.freeze(victim)
      world.run(for: .seconds(12))
      #expect(world.orphans(since: start) == [callID(1)], "seed \(seed)")
      world.run(for: .seconds(8))
      #expect(world.orphans(since: start) == [callID(1)])
      world.thaw(victim)
      world.run(for: .seconds(8))
      #expect(world.reaped(by: victim) == [callID(1)], "the moved one ends here without a record")
      world.run(for: .seconds(60))
      #expect(world.orphans() == [callID(1)])
      #expect(world.sharedStore.store.calls(of: world.incarnation(victim)) == [callID(2)])
    }
  }

  @Test func `a process that is frozen for a minute finds all its calls reaped`() {
    let (world, victim) = busy()
    let start = world.now
    world.freeze(victim)
    world.run(for: .seconds(40))
    #expect(world.orphans(since: start) == [callID(1), callID(2)])
    world.run(for: .seconds(20))
    world.thaw(victim)
    world.run(for: .seconds(8))
    #expect(world.reaped(by: victim) == [callID(1), callID(2)])
    #expect(world.orphans().count == 2)
    #expect(world.nodes[victim].machine.state == .up)
    world.run(for: .seconds(30))
    #expect(world.sharedStore.store.calls.isEmpty)
    #expect(world.sharedStore.store.trunks["carrier"]?.values.reduce(0, +) ?? 0 == 0)
  }

  @Test func `a node that is cut off from the shared store only is left alone, for ever`() {
    let (world, victim) = busy()
    world.sharedStore.cut(victim, at: world.now)
    world.run(for: .seconds(300))
    #expect(world.orphans() == [])
    let seen = world.nodes[world.reaper].machine.nodes.first { $0.lease.incarnation == world.incarnation(victim) }
    #expect(seen?.liveness == .cutOff)
    world.sharedStore.mend(victim, at: world.now)
    world.run(for: .seconds(20))
    #expect(world.reaped(by: victim) == [])
    #expect(world.sharedStore.store.calls(of: world.incarnation(victim)) == [callID(1), callID(2)])
    // if it dies after that, it is reaped
    world.kill(victim)
    world.run(for: .seconds(10))
    #expect(world.orphans().count == 2)
  }

  @Test func `more than half of the leases gone together: nothing is closed without an operator or a new life`() {
    let world = ClusterWorld.running(5)
    for index in 0..<3 { world.start(index, index, user: "u\(index)", connect: 5) }
    world.run(for: .seconds(1))
    for index in 0..<3 { world.kill(index) }
    world.run(for: .seconds(120))
    #expect(world.orphans() == [])
    let watcher = world.reaper
    #expect(world.nodes[watcher].machine.nodes.count { $0.liveness == .held } == 3)
    world.input(watcher, .forget(node: "n0"))
    world.run(for: .seconds(5))
    #expect(world.orphans() == [callID(0)])
    let (dead, gone) = (world.incarnation(1), world.incarnation(0))
    let other = watcher == 3 ? 4 : 3
    #expect(world.nodes[other].machine.nodes.contains { $0.lease.incarnation == dead })
    world.restart(1)
    world.run(for: .seconds(10))
    let seen = world.nodes[other].machine.nodes
    #expect(!seen.contains { $0.lease.incarnation == dead }, "its node is back")
    #expect(seen.contains { $0.lease.incarnation == gone }, "which is not")
    // The new incarnation of n1 proves the old one dead; with it most nodes are back, and n2 is missing by itself.
    world.run(for: .seconds(30))
    #expect(Set(world.orphans()) == [callID(0), callID(1), callID(2)])
  }

  @Test func `an operator's word on a living node is refused, and on a silent one it counts at any node`() {
    let (world, victim) = busy(4)
    world.input(0, .forget(node: "n\(victim)"))
    world.input(0, .forget(node: "n77"))
    #expect(world.actions(of: 0).contains { if case .forgotten("n\(victim)", .living) = $0 { true } else { false } })
    #expect(world.actions(of: 0).contains { if case .forgotten("n77", .unknown) = $0 { true } else { false } })
    world.freeze(victim)
    world.run(for: .milliseconds(8_200))
    #expect(world.orphans() == [])
    let other = world.nodes.indices.first { $0 != victim && $0 != world.reaper }!
    world.input(other, .forget(node: "n\(victim)"))
    world.run(for: .seconds(3))
    #expect(Set(world.orphans()) == [callID(1), callID(2)])
  }

  @Test func `a reaper that was cut off touches nothing for 10 s`() {
    for seed in 0..<6 as Range<UInt64> {
      let (world, victim) = busy(4, seed: seed)
      world.kill(victim)
      world.run(for: .seconds(1))
      for index in 0..<4 where index != victim { world.sharedStore.cut(index, at: world.now) }
      world.run(for: .seconds(20))
      for index in 0..<4 { world.sharedStore.mend(index, at: world.now) }
      let start = world.now
      world.run(for: .seconds(10))
      #expect(world.orphans() == [], "seed \(seed)")
      world.run(for: .seconds(20))
      #expect(Set(world.orphans(since: start)) == [callID(1), callID(2)], "seed \(seed)")
    }
  }

  @Test func `a process that restarts in 2 s and the reaper share its calls: each is closed once, within 5 s`() {
    for seed in 0..<12 as Range<UInt64> {
      let world = ClusterWorld.running(3, seed: seed)
      let victim = world.follower
      for call in 0..<60 { world.start(victim, call, user: "u\(call)", connect: call % 2 == 0 ? 5 : nil) }
      world.run(for: .seconds(1))
      let dead = world.incarnation(victim)
      world.kill(victim)
      let start = world.now
      world.run(for: .seconds(2))
      world.restart(victim)
      let left = (0..<60).map { CallEntry(line($0, user: "u\($0)"), users: ["u\($0)"]) }
      world.input(victim, .inherited(left, of: dead))
      world.run(for: .seconds(3))
      #expect(Set(world.orphans(since: start)).count == 60, "seed \(seed)")
      world.run(for: .seconds(90))
      #expect(world.orphans().count == 60)
      let told = world.actions(of: victim).count { action in
        switch action {
        case .orphan, .reapedBefore: true
        default: false
        }
      }
      #expect(told == 60, "each line of the journal is answered once")
      #expect(world.sharedStore.store.calls.isEmpty)
    }
  }

  @Test func `an entry that a failover has lost ends no call, and is put back; one that a reaper has taken does`() {
    let (world, victim) = busy()
    let own = world.incarnation(victim)
    world.sharedStore.cut(victim, at: world.now)
    world.run(for: .seconds(20))
    _ = world.sharedStore.store.apply(.remove(callID(1), at: own), at: world.now)
    _ = world.sharedStore.store.apply(.reaped(callID(2), of: own, by: world.incarnation(world.reaper)), at: world.now)
    world.sharedStore.mend(victim, at: world.now)
    world.run(for: .seconds(20))
    #expect(world.reaped(by: victim) == [callID(2)])
    #expect(world.sharedStore.store.calls(of: own) == [callID(1)])
    // its record no longer waits
    world.input(victim, .ended(callID(1), over: nil))
    #expect(world.nodes[victim].machine.unconfirmedEndCount == 0)
    world.run(for: .seconds(2))
    #expect(world.sharedStore.store.calls(of: own).isEmpty)
  }

  @Test func `the record of a call that ended meanwhile is written though a failover has lost its entry`() {
    let (world, victim) = busy()
    world.sharedStore.cut(victim, at: world.now)
    let start = world.now
    world.run(for: .seconds(1))
    world.input(victim, .ended(callID(1), over: nil))
    world.run(for: .seconds(19))
    _ = world.sharedStore.store.apply(.remove(callID(1), at: world.incarnation(victim)), at: world.now)
    world.sharedStore.mend(victim, at: world.now)
    world.run(for: .seconds(20))
    let settled = world.actions(of: victim, since: start).flatMap {
      if case .recordsDue(let calls) = $0 { calls } else { [CallID]() }
    }
    #expect(settled == [callID(1)] && world.reaped(by: victim).isEmpty)
  }

  @Test func `without shared store a process closes what it inherited after 3 s`() {
    let world = ClusterWorld(nodes: 1, seed: 1)
    world.sharedStore.goDown(at: world.now)
    let before = Incarnation(node: "n0", started: 0)
    world.input(0, .inherited((0..<100).map { CallEntry(line($0), users: ["alice"]) }, of: before))
    world.run(for: .milliseconds(3_500))
    #expect(world.orphans().count == 100)
  }

  @Test func `a call that ends without lease counts for no limit, and its entry stays until it is settled`() {
    let (world, victim) = busy()
    world.sharedStore.cut(victim, at: world.now)
    let start = world.now
    world.run(for: .milliseconds(10))
    for call in 1...2 { world.input(victim, .ended(callID(call), over: nil)) }
    let machine = world.nodes[victim].machine
    #expect(
      machine.unconfirmedEndCount == 2 && machine.calls.isEmpty)
    // it answers OPTIONS: no node closes its calls
    world.run(for: .seconds(60))
    world.sharedStore.mend(victim, at: world.now)
    world.run(for: .seconds(12))
    let settled = world.actions(of: victim, since: start).flatMap {
      if case .recordsDue(let calls) = $0 { calls } else { [CallID]() }
    }
    #expect(Set(settled) == [callID(1), callID(2)] && settled.count == 2 && world.reaped(by: victim).isEmpty)
    #expect(world.sharedStore.store.calls(of: world.incarnation(victim)).isEmpty && world.sharedStore.store.calls.isEmpty)
  }
}
