import AppSessions
import CallFlow
import CallModel
import Cluster
import Devices
import MemorySharedStore
import Testing
import TrunklineBytes

/// After an outage of the shared store: which writes are repeated, when and how fast.
@Suite struct RestoringTests {
  @Test func `what happened while the shared store was away is put back within seconds`() {
    let world = ClusterWorld.running(3)
    world.came(0, key("gone"))
    world.start(0, 1, user: "over")
    world.start(0, 2, user: "live", mostOfTrunk: 5)
    world.sharedStore.goDown(at: world.now)
    world.run(for: .seconds(60))
    world.input(0, .deviceLeft(key("gone"), SessionID("s1")))
    world.input(0, .ended(callID(1), over: nil))
    world.came(0, key("new"))
    world.start(0, 3, user: "fresh", connect: 9, mostOfTrunk: 5)
    world.input(0, .devices([.stored(device("new"))]))
    world.sharedStore.comeUp(isFlushed: false, at: world.now)
    world.run(for: .seconds(10))
    let store = world.sharedStore.store
    #expect(store.whereabouts["gone"] == nil)
    #expect(store.whereabouts["new"]?["phone"]?.incarnation == world.incarnation(0))
    #expect(Set(store.calls.keys) == ["live", "fresh"])
    #expect(store.calls(of: world.incarnation(0)) == [callID(2), callID(3)])
    #expect(store.devices["new"]?["phone"] != nil)
    #expect(store.trunks["carrier"]?.values.reduce(0, +) == 2)
    #expect(world.nodes[0].machine.unwritten == 0)
    #expect(world.orphans() == [] && world.reaped(by: 0) == [])
  }

  @Test func `a call that has not begun is entered again when its node was taken for dead and goes on`() {
    let world = ClusterWorld.running(3)
    let (frozen, reader) = (world.follower, world.reaper)
    _ = world.locate(frozen, question(1))
    world.freeze(frozen)
    world.run(for: .seconds(40))
    // the node that reads its location now removes it
    _ = world.locate(reader, question(2))
    world.input(reader, .ended(callID(2), over: nil))
    world.run(for: .seconds(1))
    #expect(world.sharedStore.store.calls["alice"] == nil)
    world.thaw(frozen)
    world.run(for: .seconds(5))
    #expect(world.sharedStore.store.calls["alice"]?.keys.map { $0 } == [callID(1)])
  }

  @Test func `after a flush all that nodes remember comes back, and the newest registration wins`() {
    let world = ClusterWorld.running(3)
    world.input(0, .devices([.stored(device("alice", seen: 1))]))
    world.run(for: .seconds(1))
    _ = world.locate(1, question(1))
    world.input(2, .devices([.stored(device("alice", seen: 2))]))
    world.came(0, key("alice"))
    world.start(1, 2, user: "bob", connect: 5, mostOfTrunk: 5)
    world.run(for: .seconds(1))
    world.sharedStore.flush(at: world.now)
    world.run(for: .seconds(12))
    let store = world.sharedStore.store
    #expect(store.devices["alice"]?["phone"]?.lastSeen == 2)
    #expect(store.whereabouts["alice"]?["phone"]?.incarnation == world.incarnation(0))
    #expect(store.calls(of: world.incarnation(1)) == [callID(2)])
    #expect(Set(store.calls.keys) == ["alice", "bob"])
    #expect(store.trunks["carrier"]?.values.reduce(0, +) == 1)
    #expect(world.orphans() == [] && (0..<3).allSatisfy { world.reaped(by: $0) == [] })
  }

  @Test func `a flush long after the last registration: all registrations come back`() {
    let world = ClusterWorld.running(2)
    for user in 0..<20 { world.input(0, .devices([.stored(device("u\(user)"))])) }
    world.run(for: .seconds(3_600))
    world.sharedStore.flush(at: world.now)
    world.run(for: .seconds(12))
    #expect(world.sharedStore.store.devices.count == 20)
  }

  @Test func `a failover that loses the last second loses nothing for good`() {
    for seed in 0..<10 as Range<UInt64> {
      let world = ClusterWorld.running(3, seed: seed)
      world.sharedStore.replicationLag = .seconds(1)
      world.came(0, key("stays"))
      world.came(0, key("goes"))
      world.start(0, 1, user: "over")
      world.run(for: .seconds(3))
      world.input(0, .deviceLeft(key("goes"), SessionID("s1")))
      world.input(0, .ended(callID(1), over: nil))
      world.input(0, .devices([.stored(device("stays"))]))
      world.start(1, 2, user: "late", mostOfTrunk: 5)
      world.run(for: .milliseconds(300))
      world.sharedStore.failOver(at: world.now)
      world.run(for: .seconds(15))
      let store = world.sharedStore.store
      #expect(Set(store.whereabouts.keys) == ["stays"], "seed \(seed)")
      #expect(Set(store.calls.keys) == ["late"], "seed \(seed)")
      #expect(store.calls(of: world.incarnation(0)) == [])
      #expect(store.calls(of: world.incarnation(1)) == [callID(2)])
      #expect(store.devices["stays"] != nil)
      #expect(world.orphans() == [])
    }
  }

  @Test func `what a reaper closed before a failover is not closed again by the next one`() {
    for seed in 0..<10 as Range<UInt64> {
      let world = ClusterWorld.running(4, seed: seed)
      world.sharedStore.replicationLag = .seconds(2)
      let victim = world.follower
      for call in 0..<20 { world.start(victim, call, user: "u\(call)", connect: 5) }
      world.run(for: .seconds(3))
      world.kill(victim)
      while world.orphans().count < 20 { world.run(for: .milliseconds(5)) }
      world.run(for: .milliseconds(100))
      // Leads, claims and removals are lost; any node may lead next.
      world.sharedStore.failOver(at: world.now)
      world.run(for: .seconds(120))
      #expect(world.orphans().count == 20, "seed \(seed)")
    }
  }

  @Test func `a device that moved while its old node was cut off ends its old session there`() {
    let world = ClusterWorld.running(2)
    world.came(0, key("alice"), "old")
    world.run(for: .seconds(1))
    world.sharedStore.cut(0, at: world.now)
    world.run(for: .seconds(1))
    world.came(1, key("alice"), "new")
    world.run(for: .seconds(1))
    world.sharedStore.mend(0, at: world.now)
    world.run(for: .seconds(9))
    #expect(world.actions(of: 0).contains { if case .replaced(_, SessionID("old")) = $0 { true } else { false } })
    #expect(world.sharedStore.store.whereabouts["alice"]?["phone"]?.session == SessionID("new"))
  }

  @Test(arguments: [false, true]) func `after an outage a step defers and sends some hundred writes at most`(
    isFlushed: Bool
  ) {
    let world = ClusterWorld.running(2)
    for number in 0..<1_500 {
      world.came(0, key("u\(number)"))
      world.input(0, .devices([.stored(device("u\(number)"))]))
      world.input(0, .started(line(number, user: "u\(number)"), users: ["u\(number)"]))
      if number % 50 == 0 { world.run(for: .milliseconds(50)) }
    }
    world.run(for: .seconds(5))
    #expect(world.nodes[0].machine.unwritten == 0)
    if isFlushed { world.sharedStore.flush(at: world.now) } else { world.sharedStore.cut(0, at: world.now) }
    world.run(for: .seconds(1))
    if !isFlushed { world.sharedStore.mend(0, at: world.now) }
    var (waiting, sent) = (0, 0)
    for _ in 0..<4_000 {
      let before = world.log.count
      world.run(for: .milliseconds(5))
      waiting = max(waiting, world.nodes[0].machine.unwritten)
      sent = max(sent, world.log[before...].count { if case .sharedStore = $0.action { $0.node == 0 } else { false } })
    }
    #expect(waiting < 1_000 && sent < 500, "\(waiting) waited, \(sent) were sent in 5 ms")
    let store = world.sharedStore.store
    #expect(store.deviceCount == 1_500 && store.calls(of: world.incarnation(0)).count == 1_500)
    #expect(store.calls.count == 1_500 && store.devices.count == 1_500 && world.nodes[0].machine.unwritten == 0)
    #expect(world.orphans() == [] && world.reaped(by: 0) == [])
  }

  @Test func `a call that starts while the calls before it are put back after a flush has its location again`() {
    let world = ClusterWorld.running(1)
    for number in 0..<3_000 {
      world.input(0, .started(line(number, user: "u\(number)"), users: ["u\(number)"]))
      if number % 50 == 0 { world.run(for: .milliseconds(50)) }
    }
    // its id is before those that take seconds, so that the walk has passed it when it starts
    let early = CallID(high: 1, low: 1)
    var wanted = question(1, users: ["early"])
    wanted.call = early
    world.input(0, .locate(wanted))
    world.run(for: .seconds(5))
    #expect(world.sharedStore.store.calls["early"]?.count == 1)
    world.sharedStore.flush(at: world.now)
    while world.sharedStore.store.calls.isEmpty { world.run(for: .milliseconds(20)) }
    #expect(world.sharedStore.store.calls["early"] == nil)
    var first = line(1, user: "early")
    first.call = early
    world.input(0, .started(first, users: ["early"]))
    world.run(for: .seconds(60))
    #expect(world.sharedStore.store.calls["early"]?.count == 1 && world.sharedStore.store.calls.count == 3_001)
  }

  @Test func `at most 1,000 writes a second and node are put back`() {
    let world = ClusterWorld.running(2)
    world.sharedStore.goDown(at: world.now)
    for number in 0..<5_000 { world.came(0, key("u\(number)")) }
    world.run(for: .seconds(1))
    world.sharedStore.comeUp(isFlushed: false, at: world.now)
    let start = world.now.nanoseconds / 1_000_000_000
    world.run(for: .seconds(14))
    #expect(world.sharedStore.store.deviceCount == 5_000)
    let most = world.sharedStore.commands.filter { $0.key >= start }.values.max() ?? 0
    #expect(most <= 1_030, "\(most) in one second")
  }

  @Test func `the state is told once for each change`() {
    let world = ClusterWorld.running(1)
    world.sharedStore.goDown(at: world.now)
    world.run(for: .seconds(30))
    world.sharedStore.comeUp(isFlushed: false, at: world.now)
    world.run(for: .seconds(5))
    let states = world.actions().compactMap { if case .state(let state) = $0 { state } else { nil } }
    #expect(states == [.isolated, .up, .away, .isolated, .up])
  }

  @Test func `FLUSHALL behind connections that stand is noticed with the next renewal, and all is put back`() {
    for seed in 0..<6 as Range<UInt64> {
      let world = ClusterWorld.running(3, seed: seed)
      for number in 0..<30 { world.came(number % 3, key("u\(number)")) }
      world.start(0, 1, user: "u0", connect: 5, mostOfTrunk: 9)
      world.input(1, .devices([.stored(device("u1", seen: 9))]))
      world.run(for: .seconds(12))
      let commands = world.sharedStore.total
      world.run(for: .seconds(10))
      let idle = world.sharedStore.total - commands
      world.sharedStore.flush(keepsConnections: true, at: world.now)
      world.run(for: .milliseconds(2_100))
      for node in world.nodes { #expect(node.machine.statistics.flushes == 1 && node.machine.state == .up, "seed \(seed)") }
      world.run(for: .seconds(9))
      let store = world.sharedStore.store
      #expect(store.deviceCount == 30 && store.devices["u1"]?["phone"]?.lastSeen == 9, "seed \(seed)")
      #expect(store.calls(of: world.incarnation(0)) == [callID(1)] && store.calls["u0"]?.count == 1)
      #expect(store.trunks["carrier"]?[world.incarnation(0)] == 1)
      #expect(world.orphans().isEmpty && world.reaped(by: 0).isEmpty, "no call ends of it")
      let before = world.sharedStore.total
      world.run(for: .seconds(10))
      #expect(abs(world.sharedStore.total - before - idle) <= 3, "no command more than before")
      for node in world.nodes { #expect(node.machine.statistics.flushes == 1, "noticed once") }
    }
  }

  @Test(arguments: [false, true]) func `after a flush the newest session of a device is put back, and the older one ends`(
    isOldLast: Bool
  ) {
    for seed in 0..<6 as Range<UInt64> {
      let world = ClusterWorld.running(2, seed: seed)
      let (old, new) = (isOldLast ? 0 : 1, isOldLast ? 1 : 0)
      world.came(old, key("alice"), "old")
      world.run(for: .seconds(1))
      // the message about the newer session is lost
      world.sharedStore.faults.losesMessages = 1
      world.came(new, key("alice"), "new")
      world.run(for: .seconds(1))
      world.sharedStore.faults.losesMessages = 0
      world.sharedStore.flush(at: world.now)
      world.run(for: .seconds(15))
      #expect(world.actions(of: old).contains { if case .replaced(key("alice"), SessionID("old")) = $0 { true } else { false } })
      #expect(!world.actions(of: new).contains { if case .replaced = $0 { true } else { false } }, "seed \(seed)")
      #expect(world.sharedStore.store.whereabouts["alice"]?["phone"]?.session == SessionID("new"), "seed \(seed)")
    }
  }
}
