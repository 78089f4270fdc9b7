import BenchKit
import Foundation
import Glibc
import Synchronization

/// A node dies with many connected calls: how soon after the first evidence the carrier has the last BYE, and how long the
/// control loop of the node that sends them is busy with that alone.
struct ReapRows {
  let bench: Bench
  let site: Site
  let reactor: Reactor

  /// The first moment at which a node's `/v1/nodes` reports the other node dead.
  private final class Watch: Sendable {
    let isOver = Atomic(false)
    let deadAt = Atomic<UInt64>(0)
  }

  func all() throws {
    guard bench.mayWant("reaping", "live call") else { return }
    let calls = bench.isSmall ? 50 : 1_000
    let (victim, others) = (site.nodes[2], Array(site.nodes.prefix(2)))
    bench.progress("reaping: \(calls) calls connected at \(victim.name)")
    let carrier = try Carrier(reactor, host: Site.limited)
    let before = try calledMemory()
    reactor.pace(
      calls, perSecond: bench.isSmall ? 100 : 200, linger: 10,
      until: { carrier.calls.count == calls && carrier.calls.values.allSatisfy { $0.final != 0 } }
    ) { _ in _ = carrier.call(Site.recorded, to: victim.sip) }
    let connected = carrier.calls.values.count { $0.final == 200 }
    bench.require(connected == calls, "reaping: \(connected) of \(calls) calls were connected")
    reactor.run(for: 0.5)
    bench.add(
      BenchRow(
        "shared store's memory: a live call", unit: "KB",
        ours: BenchFigure("ours", (try calledMemory() - before) / Double(calls) / 1_024),
        goal: .atMost(0.9), note: "MEMORY USAGE of place, entry with a connected leg, and the trunk's count"))
    guard bench.mayWant("reaping") else { return }
    try kill(victim, others, carrier, calls)
  }

  private func calledMemory() throws -> Double {
    try site.redis.memory("tl:{u:recorded}*") + site.redis.memory("tl:{i:*") + site.redis.memory("tl:{t:*")
  }

  private func kill(_ victim: Node, _ others: [Node], _ carrier: Carrier, _ calls: Int) throws {
    let records = others.map(\.records).reduce(0, +)
    let cpu = others.map(\.process.threadCPU)
    let turns = others.map { $0.metric("trunkline_control_step_seconds_bucket") }
    let watch = Watch()
    let admins = others.map(\.admin)
    let thread = Thread {
      while !watch.isOver.load(ordering: .relaxed), watch.deadAt.load(ordering: .relaxed) == 0 {
        for admin in admins where (Gateway.page("/v1/nodes", admin: admin) ?? "").contains("\"dead\"") {
          watch.deadAt.store(monotonicNanoseconds(), ordering: .relaxed)
        }
        usleep(5_000)
      }
    }
    thread.start()
    let killed = monotonicNanoseconds()
    victim.process.kill()
    reactor.run(for: 40, until: { carrier.calls.values.allSatisfy { $0.byeAt != nil } })
    watch.isOver.store(true, ordering: .relaxed)
    let byes = carrier.calls.values.compactMap(\.byeAt)
    bench.require(byes.count == calls, "reaping: the carrier heard \(byes.count) of \(calls) BYEs")
    func written() -> Int { others.map(\.records).reduce(0, +) - records }
    reactor.run(for: 5, until: { written() >= calls })
    bench.require(written() == calls, "reaping: \(written()) records of \(calls) calls")
    guard let first = byes.min(), let last = byes.max() else { return }
    // the first evidence: the page, or the carrier's first BYE
    let dead = watch.deadAt.load(ordering: .relaxed)
    let evidence = dead == 0 ? first : min(dead, first)
    bench.add(
      BenchRow(
        "reaping \(calls) calls: evidence → last BYE", unit: "s", ours: BenchFigure("ours", milliseconds(evidence, last) / 1e3),
        goal: .atMost(5),
        note: String(
          format: "kill -9 → evidence %.1f s (the lease's end), first BYE %.0f ms after it; each with its record",
          milliseconds(killed, evidence) / 1e3,
          milliseconds(evidence, first))))
    let spent = zip(others, cpu).map { ($0.process.threadCPU["control"] ?? 0) - ($1["control"] ?? 0) }
    bench.add(
      BenchRow(
        "reaping \(calls) calls: control's longest turn", unit: "ms", ours: BenchFigure("ours", longest(others, turns)),
        goal: .atMost(20),
        note: String(
          format: "the bound of trunkline_control_step_seconds that holds all turns; control of the reaper used %.0f ms in all",
          spent.max() ?? 0)))
  }

  /// The smallest bucket bound, in milliseconds, that no control step since `before` exceeded.
  private func longest(_ nodes: [Node], _ before: [[String: Double]]) -> Double {
    zip(nodes, before).map { node, before in
      let now = node.metric("trunkline_control_step_seconds_bucket")
      let grown = now.compactMap { label, count -> (bound: Double, count: Double)? in
        let text = label.drop { $0 != "\"" }.dropFirst().prefix { $0 != "\"" }
        return (Double(text) ?? .infinity, count - (before[label] ?? 0))
      }.sorted { $0.bound < $1.bound }
      guard let all = grown.last?.count else { return Double.infinity }
      return 1_000 * (grown.first { $0.count >= all }?.bound ?? .infinity)
    }.max() ?? .infinity
  }
}
