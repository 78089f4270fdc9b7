import CallFlow
import CallModel
import Cluster
import MemorySharedStore
import Testing
import TrunklineBytes

/// A client that may write to the shared store can invent any number of nodes: each costs a bounded number of requests, and calls
/// continue.
@Suite struct StrangerTests {
  private func forge(_ count: Int, in world: ClusterWorld, for length: (Int) -> Duration) {
    for index in 0..<count {
      let lease = NodeLease(
        Incarnation(node: "x\(index)", started: 1), url: "wss://x", sip: "sip:10.9.9.9:\(index + 1)", version: "1")
      world.sharedStore.tamper(.renew(lease, for: length(index)), at: world.now)
    }
  }

  private func count(_ liveness: SeenNode.Liveness, in world: ClusterWorld, at node: Int = 0) -> Int {
    world.nodes[node].machine.nodes.count { $0.liveness == liveness }
  }

  @Test func `leases of 5,000 nodes that end together: three nodes keep theirs, and ring each other's devices`() {
    let world = ClusterWorld.running(3)
    world.came(1, key("alice"))
    world.start(1, 1)
    forge(4_900, in: world) { _ in .seconds(5) }
    world.run(for: .seconds(3))
    #expect(count(.living, in: world) == 4_903)
    let from = world.log.count
    world.run(for: .seconds(12))
    #expect(count(.held, in: world) == 4_900 && count(.living, in: world) == 3)
    for index in 0..<3 { #expect(world.nodes[index].machine.state == .up) }
    let (located, took) = world.locate(2, question(2))
    #expect(located?.remoteDevices == [RemoteDevice(key("alice"), at: "n1")])
    #expect(took <= .milliseconds(100))
    let closed = world.log[from...].contains {
      switch $0.action {
      case .reaped, .orphan, .close, .state: true
      default: false
      }
    }
    #expect(!closed)
  }

  @Test func `who is held for an hour is forgotten, and counts for no share`() {
    let world = ClusterWorld.running(3)
    forge(40, in: world) { _ in .seconds(5) }
    world.run(for: .seconds(3_590))
    #expect((0..<3).allSatisfy { count(.held, in: world, at: $0) == 40 })
    world.run(for: .seconds(30))
    for index in 0..<3 {
      #expect(world.nodes[index].machine.nodes.count == 3)
      let told = world.log.last { if case .nodes = $0.action { $0.node == index } else { false } }
      guard case .nodes(3)? = told?.action else {
        Issue.record("\(String(describing: told?.action))")
        continue
      }
    }
  }

  @Test
  func `nodes that go one after the other are asked 200 a second at most, and a node of ours that dies among them is found`() {
    let world = ClusterWorld.running(3)
    var asked: [Instant: Int] = [:]
    world.onProbe = { at, _ in asked[at, default: 0] += 1 }
    world.came(1, key("alice"))
    world.start(1, 1)
    forge(2_000, in: world) { .seconds(10) + .milliseconds($0 * 20) }
    world.run(for: .seconds(25))
    world.kill(1)
    world.run(for: .seconds(20))
    let worst = asked.keys.map { start in
      asked.filter { $0.key >= start && $0.key < start + .seconds(1) }.values.reduce(0, +)
    }.max()
    #expect((100...400).contains(worst ?? 0), "\(worst ?? 0) in a second: what was saved up, and the rate")
    let closed = world.log.filter {
      if case .orphan(let entry, _) = $0.action { entry.line.call == callID(1) } else { false }
    }
    #expect(closed.count == 1)
    #expect(world.nodes[0].machine.state == .up && world.nodes[2].machine.state == .up)
  }
}
