import Cluster
import MemorySharedStore
import Testing
import TrunklineBytes

/// Nodes of two versions of the program.
@Suite struct VersionTests {
  /// The lease of a node that is not one of the world's machines.
  private func lease(_ world: ClusterWorld, writes format: Int, reads: ClosedRange<Int>, for time: Duration = .seconds(3_600)) {
    let lease = NodeLease(
      Incarnation(node: "other", started: 7), url: "wss://other/v1/connect", sip: "sip:10.9.9.9:5060", version: "9",
      format: format,
      reads: reads)
    world.sharedStore.write(.renew(lease, for: time), at: world.now)
  }

  private func refused(_ world: ClusterWorld, _ node: Int) -> [NodeLease] {
    world.actions(of: node).compactMap { if case .incompatible(let lease) = $0 { lease } else { nil } }
  }

  @Test func `a version that reads more than ours and writes what we read is a node like others`() {
    let world = ClusterWorld.running(1)
    lease(world, writes: 1, reads: 1...2)
    let second = world.add()
    world.run(for: .seconds(3))
    #expect(world.nodes[second].machine.state == .up && refused(world, second).isEmpty)
    #expect(world.nodes[second].machine.nodes.map(\.lease.incarnation.node) == ["n1", "n0", "other"])
  }

  @Test func `a node whose version shares no format with a living one says so and does not start; its lease goes back`() {
    for (writes, reads) in [(2, 2...3), (2, 1...2), (0, 0...0), (1, 0...0)] {
      let world = ClusterWorld.running(1)
      lease(world, writes: writes, reads: reads)
      let second = world.add()
      world.run(for: .seconds(3))
      #expect(refused(world, second).map(\.incarnation.node) == ["other"], "writes \(writes), reads \(reads)")
      #expect(world.nodes[second].machine.state != .up)
      #expect(!world.sharedStore.store.liveLeases(at: world.now).contains { $0.incarnation == world.incarnation(second) })
      #expect(world.nodes[0].machine.state == .up && refused(world, 0).isEmpty, "who runs goes on")
      #expect(world.nodes[0].machine.nodes.count == 1, "and takes the stranger for nobody")
      #expect(world.nodes[0].machine.statistics.valuesDropped > 0)
    }
  }

  @Test func `once the strange version is gone a node starts`() {
    let world = ClusterWorld.running(1)
    lease(world, writes: 2, reads: 2...2, for: .seconds(6))
    world.run(for: .seconds(7))
    let second = world.add()
    world.run(for: .seconds(3))
    #expect(world.nodes[second].machine.state == .up && refused(world, second).isEmpty)
  }
}
