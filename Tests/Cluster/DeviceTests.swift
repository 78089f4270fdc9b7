import AppSessions
import CallFlow
import CallModel
import Cluster
import Devices
import MemorySharedStore
import Testing
import TrunklineAppProtocol
import TrunklineBytes

@Suite struct DeviceTests {
  @Test func `a hello is welcomed once the shared store has it, with its registration`() {
    let world = ClusterWorld.running(2)
    world.input(1, .devices([.stored(device("alice"))]))
    world.run(for: .seconds(1))
    let start = world.now
    world.came(0, key("alice"))
    #expect(!world.actions(of: 0).contains { if case .welcome = $0 { true } else { false } })
    world.run(for: .milliseconds(5))
    let welcomes = world.actions(of: 0, since: start).compactMap {
      if case .welcome(_, _, let device, let isRevoked) = $0 { (device, isRevoked) } else { nil }
    }
    #expect(welcomes.count == 1 && welcomes[0].0?.target != nil && !welcomes[0].1)
  }

  @Test func `a hello waits 100 ms for a silent shared store and is put back later`() {
    let world = ClusterWorld.running(2)
    let start = world.now
    world.sharedStore.freeze(until: start + .seconds(1))
    world.came(0, key("alice"))
    world.run(for: .milliseconds(99))
    #expect(world.actions(of: 0, since: start).isEmpty)
    world.run(for: .milliseconds(2))
    #expect(world.actions(of: 0, since: start).count == 1)
    world.run(for: .seconds(5))
    #expect(world.sharedStore.store.whereabouts["alice"]?["phone"]?.incarnation == world.incarnation(0))
    #expect(world.nodes[0].machine.statistics.blindWelcomes == 1)
  }

  @Test func `a device that moves ends its session at the node before, once, and late words of that session change nothing`() {
    let world = ClusterWorld.running(2)
    world.came(0, key("alice"), "old")
    world.run(for: .seconds(1))
    world.came(1, key("alice"), "new")
    world.run(for: .seconds(1))
    let replaced = world.actions(of: 0).filter { if case .replaced(_, SessionID("old")) = $0 { true } else { false } }
    #expect(replaced.count == 1)
    world.input(0, .deviceLeft(key("alice"), SessionID("old")))
    world.run(for: .seconds(1))
    #expect(world.sharedStore.store.whereabouts["alice"]?["phone"]?.session == SessionID("new"))
  }

  @Test func `a session that a wake token began enters nothing, and the device's other session stays`() {
    let world = ClusterWorld.running(2)
    world.came(0, key("alice"), "login")
    world.run(for: .seconds(1))
    world.came(1, key("alice"), "woken", DeviceInfo(onlyCall: callID(1)))
    world.run(for: .seconds(1))
    #expect(world.sharedStore.store.whereabouts["alice"]?["phone"]?.session == SessionID("login"))
    #expect(world.actions(of: 1).contains { if case .welcome(_, SessionID("woken"), _, false) = $0 { true } else { false } })
    world.input(1, .deviceChanged(key("alice"), SessionID("woken"), DeviceInfo()))
    world.run(for: .seconds(1))
    #expect(world.sharedStore.store.whereabouts["alice"]?["phone"]?.session == SessionID("woken"), "a login from now on")
  }

  @Test func `of an INVITE and a hello that cross, one always sees the other`() {
    for seed in 0..<60 as Range<UInt64> {
      let world = ClusterWorld.running(2, seed: seed)
      let skew = Duration.microseconds(Int64(seed) * 50)
      if seed % 2 == 0 {
        world.input(0, .locate(question(1)))
        world.run(for: skew)
        world.came(1, key("alice"))
      } else {
        world.came(1, key("alice"))
        world.run(for: skew)
        world.input(0, .locate(question(1)))
      }
      world.run(for: .seconds(1))
      let saw = world.actions(of: 0).contains { action in
        switch action {
        case .located(_, .here(let remote, _, _)): !remote.isEmpty
        case .remote(.deviceConnected(RemoteDevice(key("alice"), at: "n1"))): true
        default: false
        }
      }
      #expect(saw, "seed \(seed)")
    }
  }

  @Test func `a wake goes to the socket of the device, and is counted as come or not`() {
    let world = ClusterWorld.running(2)
    world.came(1, key("alice"))
    world.start(0, 1)
    let wake = CallWake(call: callID(1), exp: 1_790_000_000, gw: "wss://n0.example.com", wake: "w")
    world.input(0, .wake(wake, key("alice"), node: "n1"))
    world.run(for: .milliseconds(100))
    #expect(world.actions(of: 1).contains { if case .wakeHere(key("alice"), wake) = $0 { true } else { false } })
    world.input(0, .wake(wake, key("alice", "tablet"), node: "n1"))
    world.input(0, .wake(wake, key("alice"), node: "nowhere"))
    world.run(for: .seconds(2))
    #expect(world.nodes[0].machine.statistics.wakesDropped == 1)
    #expect(world.nodes[1].machine.statistics.wakesDropped == 1, "of the tablet, which is not there")
  }

  @Test func `a revocation holds everywhere within a second, and after a lost subscription as soon as it is back`() {
    let world = ClusterWorld.running(3)
    for index in 0..<3 { world.came(index, key("alice", "d\(index)")) }
    world.run(for: .seconds(1))
    world.input(0, .devices([.stored(device("alice", "d1", seen: 5, revoked: 5))]))
    world.input(0, .revoke(key("alice", "d1")))
    world.run(for: .milliseconds(100))
    #expect(world.actions(of: 1).contains { if case .revoked(key("alice", "d1")) = $0 { true } else { false } })
    world.sharedStore.cut(2, at: world.now)
    world.run(for: .seconds(1))
    world.input(0, .devices([.stored(device("alice", "d2", seen: 6, revoked: 6))]))
    world.input(0, .revoke(key("alice", "d2")))
    world.run(for: .seconds(1))
    #expect(!world.actions(of: 2).contains { if case .revoked(key("alice", "d2")) = $0 { true } else { false } })
    let mended = world.now
    world.sharedStore.mend(2, at: mended)
    world.run(for: .seconds(9))
    #expect(world.actions(of: 2, since: mended).contains { if case .revoked(key("alice", "d2")) = $0 { true } else { false } })
    // a device that is known as revoked is not welcomed, with or without a shared store
    world.sharedStore.goDown(at: world.now)
    world.run(for: .milliseconds(10))
    world.came(2, key("alice", "d1"), "again")
    #expect(world.actions(of: 2).contains { if case .welcome(_, SessionID("again"), _, true) = $0 { true } else { false } })
  }
}

@Suite struct HostileMessageTests {
  @Test func `messages of unknown and dead nodes and of other sessions are dropped and counted`() {
    let world = ClusterWorld.running(2)
    world.came(0, key("alice"))
    world.run(for: .seconds(1))
    let stranger = Incarnation(node: "evil", started: 1)
    for _ in 0..<10_000 { world.sharedStore.forge(.revoked(key("alice")), from: stranger, to: 0, at: world.now) }
    world.sharedStore.forge(.replaced(key("alice"), SessionID("other")), from: world.incarnation(1), to: 0, at: world.now)
    let location = Whereabouts(key("alice"), at: stranger, session: SessionID("x"))
    world.sharedStore.forge(.came(location), from: world.incarnation(1), to: 0, at: world.now)
    let before = world.sharedStore.total
    world.run(for: .seconds(3))
    #expect(world.nodes[0].machine.statistics.messagesDropped == 10_002)
    #expect(!world.actions(of: 0).contains { if case .revoked = $0 { true } else { false } })
    #expect(world.sharedStore.total - before < 40, "no storm of commands either")
  }

  @Test func `a hint of ours that we do not have is dropped and taken off`() {
    let world = ClusterWorld.running(2)
    world.sharedStore.tamper(.enter(Whereabouts(key("alice"), at: world.incarnation(0), session: SessionID("x"))), at: world.now)
    world.sharedStore.tamper(
      .enter(Whereabouts(key("alice", "b"), at: Incarnation(node: "n9", started: 3), session: SessionID("x"))), at: world.now)
    #expect(world.locate(0, question(1, mayRedirect: true)).located?.remoteDevices == [])
    #expect(world.sharedStore.store.whereabouts["alice"]?["phone"] == nil)
    #expect(world.nodes[0].machine.statistics.hintsDropped == 2)
  }

  @Test func `replies that fit no question do no harm`() {
    let world = ClusterWorld.running(1)
    for number in 0..<200 as Range<UInt64> {
      world.input(0, .sharedStore(.reply(SharedStoreRequestID(number), .success(.done))))
      world.input(0, .sharedStore(.reply(SharedStoreRequestID(number + 1_000), .failure(.refused("NOPERM")))))
    }
    world.input(0, .sharedStore(.dropped(-5)))
    world.input(0, .probed(Incarnation(node: "x", started: 1), .refused))
    world.input(0, .ended(callID(9), over: nil))
    world.run(for: .seconds(3))
    #expect(world.nodes[0].machine.state == .up)
  }

  @Test func `leases of 5,000 nodes are read, and more are not`() {
    let world = ClusterWorld.running(1)
    for index in 0..<6_000 {
      let lease = NodeLease(Incarnation(node: "x\(index)", started: 1), url: "wss://x", sip: "sip:x", version: "1")
      world.sharedStore.tamper(.renew(lease, for: .seconds(30)), at: world.now)
    }
    world.run(for: .seconds(2))
    #expect(world.nodes[0].machine.nodes.count <= 5_001)
  }

  @Test func `how a call ended that devices were woken for is known at every node for two minutes`() {
    let world = ClusterWorld.running(2)
    func asked(_ number: Int, wait: Duration = .milliseconds(150)) -> [RemoteTombstone?] {
      let from = world.log.count
      world.input(1, .tombstone(callID(number)))
      world.run(for: wait)
      return world.log[from...].compactMap {
        if case .tombstone(callID(number), let found) = $0.action { .some(found) } else { nil }
      }
    }
    world.start(0, 1)
    world.start(0, 2)
    world.input(0, .ended(callID(1), over: CallOver(.answeredElsewhere, by: .app, at: 7)))
    world.input(0, .ended(callID(2), over: nil))
    world.run(for: .milliseconds(50))
    #expect(asked(1) == [RemoteTombstone(users: ["alice"], CallOver(.answeredElsewhere, by: .app, at: 7))])
    #expect(asked(2) == [nil], "none was woken for it: nothing is written")
    world.sharedStore.freeze(until: world.now + .seconds(1))
    let start = world.now
    #expect(asked(1) == [nil], "a shared store that is silent is not waited for")
    #expect(world.log.last.map { $0.at - start } == .milliseconds(100))
    world.run(for: .seconds(2))
    world.sharedStore.goDown(at: world.now)
    #expect(asked(1, wait: .zero) == [nil])
    world.sharedStore.comeUp(isFlushed: false, at: world.now)
    world.run(for: .seconds(130))
    #expect(asked(1) == [nil])
  }
}
