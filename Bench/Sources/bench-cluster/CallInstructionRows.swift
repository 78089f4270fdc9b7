import BenchKit
import Foundation

/// What a call takes of the control thread in instructions, at a node of the cluster and at one alone: two gateways under callgrind, which counts
/// the thread's own code and not the kernel's. The same on a busy machine.
struct CallInstructionRows {
  let bench: Bench
  let site: Site
  let reactor: Reactor

  private static let title = "control CPU of a call in instructions, rings at an app that declines"
  private static let users = 10
  private static let calls = 40
  /// Fifty times slower, an INVITE is still to have its answer of the shared store within 100 ms.
  private static let perSecond = 5.0

  func all() throws {
    guard !bench.isSmall, bench.mayWant(Self.title) else { return }
    guard let valgrind = Program.find("valgrind"), Program.find("callgrind_control") != nil else {
      return bench.progress("left out: instructions of a call (valgrind)")
    }
    bench.progress("\(Self.title): callgrind")
    let nodes = try site.counted(by: valgrind)
    defer { for node in nodes { node.end() } }
    let counts = try nodes.map(count)
    bench.add(
      BenchRow(
        Self.title, unit: "instructions", ours: BenchFigure("ours", counts[1]), peers: [BenchFigure("one node alone", counts[0])],
        goal: .atMost(1.15, of: .peer), note: "callgrind on the thread; \(Self.calls) calls, what it does without calls taken off"
      ))
  }

  private func count(_ node: Node) throws -> Double {
    let apps = try AppSockets.online(reactor, site, at: node, users: 0..<Self.users)
    defer { for app in apps { app.finish() } }
    for app in apps { app.declines() }
    let carrier = try Carrier(reactor, host: Site.carrier)
    func ring(_ calls: Int) -> Double {
      carrier.forget()
      let begin = monotonicNanoseconds()
      reactor.pace(
        calls, perSecond: Self.perSecond, linger: 20,
        until: { carrier.calls.count == calls && carrier.calls.values.allSatisfy { $0.endedAt != nil } }
      ) { _ = carrier.call(Site.number($0 % Self.users), to: node.sip) }
      let ended = carrier.calls.values.count { $0.endedAt != nil }
      bench.require(ended == calls, "\(Self.title): \(calls - ended) of \(calls) calls at \(node.name) did not end")
      // records and the shared store's answers
      reactor.run(for: 1)
      return milliseconds(begin, monotonicNanoseconds()) / 1e3
    }
    func control(_ option: String) throws { _ = try Program.run("/usr/bin/callgrind_control", [option, "\(node.process.pid)"]) }
    _ = ring(Self.users)
    try control("--zero")
    let seconds = ring(Self.calls)
    try control("--dump=calls")
    try control("--zero")
    reactor.run(for: seconds)
    try control("--dump=idle")
    return (try total(node, dump: 1) - total(node, dump: 2)) / Double(Self.calls)
  }

  /// Instructions of the thread that runs the core, by the files of a dump: one a thread, without its name.
  private func total(_ node: Node, dump: Int) throws -> Double {
    let files = try FileManager.default.contentsOfDirectory(atPath: node.folder.path).filter { $0.hasPrefix("counts.\(dump)-") }
    let totals = files.compactMap { file -> Double? in
      guard let text = try? String(contentsOf: node.folder.appendingPathComponent(file), encoding: .utf8),
        text.contains("11GatewayCoreAAV6handle"), let totals = text.range(of: "\ntotals: ")
      else { return nil }
      return Double(text[totals.upperBound...].prefix { $0.isNumber })
    }
    guard let most = totals.max() else { throw BenchError(text: "callgrind wrote nothing of control at \(node.name)") }
    return most
  }
}
