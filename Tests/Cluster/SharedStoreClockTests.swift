import Cluster
import Testing
import TrunklineBytes

/// The shared store's clock, which nodes use for what they share.
@Suite struct SharedStoreClockTests {
  @Test func `it is told once, when it jumps, and after a failover to another host's; one that cannot be is not heard`() {
    let start = Instant.zero + .seconds(100)
    let settings = ClusterMachine.Settings(
      Incarnation(node: "n1", started: 1), url: "wss://n1", sip: "sip:10.0.0.1:5060", version: "1")
    var machine = ClusterMachine(settings, random: .seeded(1), at: start)
    var (output, told) = (ClusterMachine.Output(), [Int64]())
    var clocks: [Int64] = [1_000_100_000, 1_000_102_300, 1_000_104_600, 1_003_706_000, 1_003_708_000, -1, .max, 1_003_714_000]
    func take(_ input: ClusterMachine.Input, at now: Instant) {
      machine.handle(input, at: now, into: &output)
      let actions = output.actions
      output.removeAll()
      for action in actions {
        if case .clock(let offset) = action { told.append(offset) }
        guard case .sharedStore(let id, .renew(let lease, _)) = action else { continue }
        take(.sharedStore(.reply(id, .success(.nodes([lease], hadLease: true, clock: clocks.removeFirst())))), at: now)
      }
    }
    take(.sharedStore(.connected(wasFlushed: false)), at: start)
    for second in stride(from: Int64(2), through: 14, by: 2) where !clocks.isEmpty {
      take(.timer, at: start + .seconds(second))
    }
    #expect(told == [1_000_000_000, 1_003_600_000], "\(told)")
    #expect(clocks.isEmpty)
  }
}
