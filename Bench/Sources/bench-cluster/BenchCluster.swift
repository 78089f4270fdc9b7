import BenchKit
import Foundation

/// `bench-cluster`: what it costs that any node takes the call. Three nodes of the release gateway over a Redis of the bench's own, and one gateway
/// alone beside them; the gateway is the one that was built beside this bench, or the binary that TRUNKLINE_BINARY names.
@main struct BenchCluster {
  nonisolated static func main() {
    Bench.main(
      "cluster", about: "what it costs that any node takes the call, beside one node alone in the same run.",
      options: [
        BenchOption("--herd NODES,DEVICES", "the simulated herd: 1000,1000000; small 50,50000"),
        BenchOption("--seed N", "of the herd, 7: the same one replays a run"),
      ],
      examples: [
        "bench-cluster --only INVITE", "bench-cluster --only herd --herd 200,200000 --seed 3",
        "bench-cluster --only \"control CPU\" --json",
      ]
    ) { bench in
      try RESPRows.add(to: bench)
      try NumberRows(bench: bench).all()
      guard bench.counted == nil else { return }
      try nodes(bench)
      OutageRows(bench: bench).all()
      try HerdRows(bench).all()
    }
  }

  private static func nodes(_ bench: Bench) throws {
    guard
      bench.mayWant("INVITE", "control CPU", "hellos", "commands", "connections", "shared store's memory", "locates", "reaping")
    else {
      return
    }
    if !runAhead() { bench.progress("no permission for real-time scheduling: the load's own lateness is in the times") }
    let site = try Site()
    defer { site.end() }
    let reactor = Reactor()
    try LatencyRows(bench: bench, site: site, reactor: reactor).all()
    try CallCostRows(bench: bench, site: site, reactor: reactor).all()
    try CallInstructionRows(bench: bench, site: site, reactor: reactor).all()
    let hellos = HelloRows(bench, site, reactor)
    try hellos.all()
    let sharedStore = SharedStoreRows(bench: bench, site: site, reactor: reactor)
    try sharedStore.commands()
    try ReapRows(bench: bench, site: site, reactor: reactor).all()
    try sharedStore.locates(hellos.count)
  }
}
