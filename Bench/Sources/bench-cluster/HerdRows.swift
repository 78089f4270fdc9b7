import BenchKit
import Foundation
import MemorySharedStore

/// Many nodes and very many devices on virtual time, by the real cluster machine: `Tests/MemorySharedStore/Herd.swift`, which the test suite runs
/// smaller. What must hold, holds on any machine: a bound that is broken fails the bench.
struct HerdRows {
  let bench: Bench
  let nodes: Int
  let devices: Int
  let seed: UInt64

  init(_ bench: Bench) throws {
    self.bench = bench
    func numbers(_ option: String, _ fallback: String) throws -> [Int] {
      let index = bench.arguments.firstIndex(of: option)
      let text = index.flatMap { $0 + 1 < bench.arguments.count ? bench.arguments[$0 + 1] : nil } ?? fallback
      let numbers = text.split(separator: ",").compactMap { Int($0) }.filter { $0 > 0 }
      guard numbers.count == fallback.split(separator: ",").count else {
        throw BenchError(text: "\(option) \(text): as in \(fallback)")
      }
      return numbers
    }
    let size = try numbers("--herd", bench.isSmall ? "50,50000" : "1000,1000000")
    (nodes, devices) = (size[0], size[1])
    seed = UInt64(try numbers("--seed", "7")[0])
  }

  func all() {
    guard bench.mayWant("herd") else { return }
    let start = ContinuousClock.now
    bench.progress("herd: \(devices) devices come to \(nodes) nodes, seed \(seed)")
    var run = HerdRun(nodes: nodes, devices: devices, seed: seed)
    bench.require(run.herd.entered == devices, "herd: \(run.herd.entered) of \(devices) devices were entered")
    run.all { result in
      bench.progress("herd: \(result.name), after \((ContinuousClock.now - start).components.seconds) s")
      rows(result)
    }
    let digest = String(run.herd.digest, radix: 16)
    bench.say(
      "Herd of \(nodes) nodes and \(devices) devices with seed \(seed): digest \(digest) of every hello and welcome, "
        + "in \((ContinuousClock.now - start).components.seconds) s.")
  }

  private func rows(_ result: HerdRun.Result) {
    func row(_ what: String, _ unit: String, _ value: Double, _ goal: BenchGoal, _ note: String = "") {
      let row = BenchRow(
        "herd: \(result.name): \(what)", unit: unit, ours: BenchFigure("ours", value), goal: goal, note: note)
      bench.add(row)
      bench.require(row.isMet != false, "\(row.name): \(value), not \(goal.text)")
    }
    row("hellos of a node, most", "1/s", Double(result.mostHellos), .atMost(2_000), "\(nodes) nodes, \(devices) devices")
    row("commands of the shared store, most", "1/s", Double(result.mostCommands), .atMost(50_000))
    row(
      "welcome again, and entered in the shared store, after 60 s", "%", 100 * min(result.connected, result.entered),
      .atLeast(99.9))
    // A lease is renewed every 2 s; the reaper's own look is every second.
    row(
      "commands of a node at rest, after 90 s", "1/s", result.idleCommands, .atMost(0.8),
      "\(result.unwritten) writes wait then")
    bench.require(result.unwritten == 0, "herd: \(result.name): \(result.unwritten) writes still wait")
  }
}
