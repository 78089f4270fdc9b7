import BenchKit
import Foundation

/// An app that was killed is started by a push, rings, is answered: a process of its own each time.
struct StartRows {
  let bench: Bench
  let site: Site

  /// One start, in milliseconds.
  struct Start {
    var marks: [String: Double]
    var startedAt: Double
    /// At the carrier.
    var answeredAt: Double
    func from(_ first: String, to last: String) -> Double? {
      guard let first = marks[first], let last = marks[last] else { return nil }
      return last - first
    }
    func sinceStart(to last: String) -> Double? { marks[last].map { $0 - startedAt } }
  }

  private static let names = [
    "push delivered → reportNewIncomingCall", "process start → hello written", "process start → call.ringing written",
    "tap → call.answer written", "call.connected → action fulfilled", "didActivate → first sample played",
    "warm tap → 200 at the carrier", "100 ms round trip: tap before the socket → 200 at the carrier",
  ]

  func add() throws {
    guard Self.names.contains(where: { bench.wants($0) }) else { return }
    let warm = try starts(bench.isSmall ? 2 : 20, tap: .warm)
    row("push delivered → reportNewIncomingCall", warm.map { $0.from("pushed", to: "report") }, atMost: 2)
    bench.require(
      warm.allSatisfy { ($0.from("report", to: "pushTurnEnded") ?? -1) >= 0 },
      "a push was not reported in its delegate's own turn")
    row("process start → main", warm.map { $0.sinceStart(to: "main") }, note: "loader and Swift's runtime, before any of ours")
    func part(_ first: String, _ last: String) -> Double { median(warm.compactMap { $0.from(first, to: last) }) }
    row(
      "process start → hello written", warm.map { $0.sinceStart(to: "hello") }, atMost: 60,
      note: String(
        format: "of it main → push %.1f, push → socket %.1f, socket → upgrade %.1f ms", part("main", "pushed"),
        part("pushed", "open"),
        part("open", "opened")))
    row("process start → call.ringing written", warm.map { $0.sinceStart(to: "call.ringing") }, atMost: 120)
    row("tap → call.answer written", warm.map { $0.from("tap", to: "call.answer") }, atMost: 5)
    row("call.connected → action fulfilled", warm.map { $0.from("← call.connected", to: "fulfilled") }, atMost: 5)
    row(
      "didActivate → first sample played", warm.map { $0.from("didActivate", to: "firstSample") }, atMost: 40,
      note: "a device that takes 20 ms at a time")
    row("warm tap → 200 at the carrier", warm.map { start in start.marks["tap"].map { start.answeredAt - $0 } }, atMost: 100)
    guard !bench.isSmall else { return }
    let far = try starts(10, tap: .warm, roundTrip: 100)
    row(
      "100 ms round trip: process start → call.ringing written", far.map { $0.sinceStart(to: "call.ringing") }, atMost: 520,
      note: "4 round trips and 120 ms; 3 of them are TCP, TLS and the upgrade")
    row(
      "100 ms round trip: warm tap → 200 at the carrier", far.map { start in start.marks["tap"].map { start.answeredAt - $0 } },
      atMost: 100)
    let early = try starts(10, tap: .early, roundTrip: 100)
    row(
      "100 ms round trip: tap before the socket → 200 at the carrier",
      early.map { start in start.marks["tap"].map { start.answeredAt - $0 } }, atMost: 1_200)
  }

  private func row(_ name: String, _ values: [Double?], atMost goal: Double? = nil, note: String = "") {
    let known = values.compactMap { $0 }.sorted()
    bench.require(known.count == values.count, "\(name): seen in \(known.count) of \(values.count) starts")
    guard !known.isEmpty else { return }
    let p95 = known[min(known.count - 1, Int((Double(known.count) * 0.95).rounded(.up)) - 1)]
    let spread = String(format: "p95 of %d; median %.2f ms, fastest %.2f ms", known.count, median(known), known[0])
    bench.add(
      BenchRow(
        name + ", p95", unit: "ms", ours: BenchFigure("ours", p95), goal: goal.map { .atMost($0) },
        note: note.isEmpty ? spread : spread + "; " + note))
  }

  private func starts(_ count: Int, tap: AppProcess.Plan.Tap, roundTrip: Int = 0) throws -> [Start] {
    try (0..<count).map { number in
      bench.progress("start \(number + 1) of \(count), tap \(tap), round trip \(roundTrip) ms")
      let pushes = try site.pushes()
      let carrier = try site.carrier(talk: 1)
      defer { carrier.end() }
      var plan = AppProcess.Plan(gateway: site.url)
      (plan.push, plan.tap, plan.roundTripMilliseconds) = (try pushes.next(), tap, roundTrip)
      let app = try site.app(plan)
      defer { app.end(SIGKILL) }
      let answered = try carrier.time(of: "answered", within: 15)
      let report = try app.report(within: 15)
      bench.require(report.violations.isEmpty, "the app broke rules of iOS: \(report.violations)")
      return Start(
        marks: report.marks.mapValues { Double($0) / 1e6 }, startedAt: Double(app.startedAt) / 1e6, answeredAt: answered)
    }
  }
}

extension Spawned {
  func report(within seconds: Double) throws -> AppProcess.Report {
    let line = try line("{\"", within: seconds)
    return try JSONDecoder().decode(AppProcess.Report.self, from: Data(line.utf8))
  }
}
