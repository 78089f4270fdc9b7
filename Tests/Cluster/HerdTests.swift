import Cluster
import Foundation
import MemorySharedStore
import Testing
import TrunklineBytes

/// The real machine with many devices, while a node, a third of the nodes, the shared store or everything fails at once.
///
/// 20 nodes and 10,000 devices here: a debug build takes 0.3 ms for a hello and its consequences, so that 50 nodes and 50,000
/// devices took 75 s. The release build of `bench-cluster --small` runs those, in every check; `bench-cluster --only herd` runs
/// 1,000 nodes and 1,000,000 devices. `TRUNKLINE_HERD=50,50000` sets other numbers here.
@Suite struct HerdTests {
  @Test func `all devices come back from everything, within what nodes and shared store can bear`() {
    let size = (ProcessInfo.processInfo.environment["TRUNKLINE_HERD"] ?? "20,10000").split(separator: ",").compactMap { Int($0) }
    var run = HerdRun(nodes: size[0], devices: size[1], seed: 7)
    #expect(run.herd.connected == size[1] && run.herd.entered == size[1])
    run.all()
    for result in run.results {
      #expect(result.mostHellos <= 2_000, "\(result)")
      #expect(result.mostCommands <= 50_000, "\(result)")
      #expect(result.connected >= 0.999, "\(result)")
      #expect(result.entered >= 0.999, "\(result)")
      #expect(result.idleCommands < 0.8, "\(result)")
      #expect(result.unwritten == 0, "\(result)")
    }
    #expect(run.results.count == 4)
  }

  @Test func `one seed replays a run, and another does not`() {
    func digest(_ seed: UInt64) -> UInt64 {
      var run = HerdRun(nodes: 6, devices: 600, seed: seed)
      run.all()
      return run.herd.digest
    }
    let first = digest(3)
    #expect(digest(3) == first)
    #expect(digest(4) != first)
  }
}
