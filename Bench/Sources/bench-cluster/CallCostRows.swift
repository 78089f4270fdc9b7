import BenchKit
import Foundation

/// The control thread's time for a call, at a node of a cluster and at a single node: in pairs of short runs, one after the
/// other, so that other load on the machine affects both.
struct CallCostRows {
  let bench: Bench
  let site: Site
  let reactor: Reactor

  private enum Shape: String, CaseIterable {
    /// INVITE, `call.offer`, `call.reject`, a refusal, ACK.
    case declined = "rings at an app that declines"
    /// The same on a trunk with `max_calls`.
    case limited = "the same, of a trunk with max_calls"
    /// INVITE, 200, ACK, BYE, 200, with ports and a media session. No device: no notification.
    case recorded = "answered by a recording"
  }
  private static let users = 50

  func all() throws {
    let shapes = Shape.allCases.prefix(bench.isSmall ? 1 : 3).filter { bench.mayWant(title($0)) }
    guard !shapes.isEmpty else { return }
    let nodes = [site.alone!, site.nodes[0]]
    var apps: [AppSocket] = []
    for node in nodes { apps += try AppSockets.online(reactor, site, at: node, users: 0..<Self.users) }
    defer { for app in apps { app.finish() } }
    for app in apps { app.declines() }
    for shape in shapes { try measure(shape, nodes) }
  }

  private func title(_ shape: Shape) -> String { "control CPU of a call, \(shape.rawValue)" }

  private struct Cost {
    var control = 0.0, sharedStore = 0.0, all = 0.0
  }

  private func measure(_ shape: Shape, _ nodes: [Node]) throws {
    let (pairs, calls, rate) = bench.isSmall ? (2, 40, 200.0) : (16, 400, 400.0)
    bench.progress("\(title(shape)): \(pairs) pairs of \(calls) calls, \(Int(rate)) a second")
    let carrier = try Carrier(reactor, host: shape == .limited ? Site.limited : Site.carrier)
    carrier.hangsUp = shape == .recorded
    var costs: [[Cost]] = [[], []]
    for pair in 0..<pairs {
      for index in pair % 2 == 0 ? [0, 1] : [1, 0] {
        costs[index].append(slice(shape, carrier, nodes[index], calls, rate))
      }
    }
    func mean(_ costs: [Cost], _ value: (Cost) -> Double) -> Double { costs.reduce(0) { $0 + value($1) } / Double(costs.count) }
    // only a cluster has the thread `shared_store`
    let ratios = zip(costs[1], costs[0]).map { $0.control / $1.control }
    guard let interval = Interval(groups: ratios.map { [$0] }) else { return }
    bench.add(
      BenchRow(
        title(shape), unit: "ms/call", ours: BenchFigure("ours", mean(costs[1], \.control)),
        peers: [BenchFigure("one node alone", mean(costs[0], \.control))], goal: .atMost(1.15, of: .peer),
        note: String(
          format:
            "pair by pair %.3f (%.3f to %.3f, 95 %%) × alone; thread shared-store %.3f ms beside it; all threads %.3f, alone %.3f ms",
          interval.mean, interval.low, interval.high, mean(costs[1], \.sharedStore), mean(costs[1], \.all), mean(costs[0], \.all))
      ))
  }

  private func slice(_ shape: Shape, _ carrier: Carrier, _ node: Node, _ calls: Int, _ rate: Double) -> Cost {
    carrier.forget()
    let before = node.process.threadCPU
    let records = node.records
    reactor.pace(
      calls, perSecond: rate, linger: 5,
      until: { carrier.calls.count == calls && carrier.calls.values.allSatisfy { $0.endedAt != nil } }
    ) { _ = carrier.call(shape == .recorded ? Site.recorded : Site.number($0 % Self.users), to: node.sip) }
    let ended = carrier.calls.values.count { $0.endedAt != nil }
    bench.require(ended == calls, "\(title(shape)): \(calls - ended) of \(calls) calls at \(node.name) did not end")
    reactor.run(for: 2, until: { node.records >= records + calls })
    let written = node.records - records
    bench.require(written == calls, "\(title(shape)): \(written) records of \(calls) calls at \(node.name)")
    let after = node.process.threadCPU
    func cost(_ thread: String) -> Double { ((after[thread] ?? 0) - (before[thread] ?? 0)) / Double(calls) }
    return Cost(
      control: cost("control"), sharedStore: cost("shared-store"), all: after.keys.reduce(0) { $0 + cost($1) })
  }
}
