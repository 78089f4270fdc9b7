import BenchKit
import Foundation

/// The rows: each is a run of sipp against the same gateway.
struct CallRuns {
  let bench: Bench
  let gateway: MeasuredGateway
  let sipp: String
  private static let threads = ["control", "store", "media-0"]

  init(_ bench: Bench, _ gateway: MeasuredGateway, _ sipp: String) {
    (self.bench, self.gateway, self.sipp) = (bench, gateway, sipp)
  }

  /// A call that no device answers: INVITE, 480, ACK, and its record.
  func unreachable() throws {
    let (rate, calls) = bench.isSmall ? (1_000, 1_000) : (2_000, 20_000)
    guard bench.wants("refused with 480") else { return }
    bench.progress("\(calls) calls, \(rate) a second, refused with 480")
    try measure(
      "refused with 480", Scenario.unreachable, "busy", to: MeasuredGateway.userWithoutDevice, rate: rate, calls: calls,
      atLeast: 1_900)
  }

  /// A call that a recording answers: INVITE, 200, ACK, BYE, 200, with ports, a media session, journal line and record.
  func answered() throws {
    let (rate, calls) = bench.isSmall ? (200, 200) : (400, 6_000)
    guard bench.wants("answered") else { return }
    bench.progress("\(calls) calls, \(rate) a second, answered by a recording")
    try measure(
      "answered", Scenario.answered(milliseconds: 0), "answered", to: MeasuredGateway.recorded, rate: rate, calls: calls)
  }

  private func measure(
    _ name: String, _ scenario: String, _ outcome: String, to number: String, rate: Int, calls: Int, atLeast goal: Double? = nil
  ) throws {
    let known = gateway.records(atLeast: 0)
    let before = gateway.threadCPU()
    let run = try SippRun(sipp, scenario, to: number, gateway, rate: rate, calls: calls)
    let taken = run.times[outcome]?.count ?? 0
    let records = gateway.records(atLeast: known + taken) - known
    let after = gateway.threadCPU()
    bench.require(records == taken, "\(records) records of \(taken) calls \(name)")
    bench.require(run.failed == 0, "\(run.failed) calls \(name) failed")
    guard taken > 0 else { return bench.require(false, "no call was \(name)") }
    bench.add(
      BenchRow(
        "calls: \(name), a second", unit: "calls/s", ours: BenchFigure("ours", Double(taken) / max(run.seconds, 0.001)),
        goal: bench.isSmall ? nil : goal.map { .atLeast($0) },
        note: "\(rate) a second offered for \(calls / rate) s; \(taken) of \(calls) \(name), each with its record, "
          + "\(run.times["refused"]?.count ?? 0) got 503, \(run.failed) failed"))
    func cost(_ thread: String) -> Double { ((after[thread] ?? 0) - (before[thread] ?? 0)) / Double(calls) }
    let rest = after.keys.filter { !Self.threads.contains($0) }.reduce(0) { $0 + cost($1) }
    bench.add(
      BenchRow(
        "calls: \(name), CPU of the control thread", unit: "ms/call", ours: BenchFigure("ours", cost("control")),
        goal: .atMost(0.12),
        note: String(
          format: "SIP sockets, user agent and call machine; beside it store %.3f, media %.3f, all others %.3f ms", cost("store"),
          cost("media-0"), rest)))
    bench.add(
      BenchRow(
        "calls: \(name), time to the final response, p99", unit: "ms", ours: BenchFigure("ours", run.quantile(0.99, outcome)),
        note: String(format: "p50 %.1f ms, by sipp's clock of whole ms", run.quantile(0.5, outcome))))
  }

  /// More calls at a time than `limits.calls` allows; each lasts half a second.
  func tooMany() throws {
    guard bench.wants("refused with 503") else { return }
    let (rate, calls) = bench.isSmall ? (400, 400) : (1_000, 8_000)
    bench.progress("\(calls) calls, \(rate) a second, of which \(MeasuredGateway.most) fit at a time")
    let run = try SippRun(
      sipp, Scenario.answered(milliseconds: 500), to: MeasuredGateway.recorded, gateway, rate: rate, calls: calls)
    let refused = run.times["refused"]?.count ?? 0
    bench.require(refused > 0, "no call was refused")
    bench.require(run.failed == 0, "\(run.failed) calls failed beside refusals")
    bench.add(
      BenchRow(
        "calls: refused with 503, time to it, p99", unit: "ms", ours: BenchFigure("ours", run.quantile(0.99, "refused")),
        goal: .atMost(100),
        note: String(
          format: "%d calls a second offered, %d answered, %d refused; p50 %.1f ms, at most %.1f ms", rate,
          run.times["answered"]?.count ?? 0, refused, run.quantile(0.5, "refused"), run.quantile(1, "refused"))))
  }

  /// Memory after 100,000 further calls, once the tables of ended calls (20,000) are full.
  func memory() throws {
    guard bench.wants("memory") else { return }
    bench.progress("memory: 20,000 calls and 100,000 more, 2,000 a second")
    func play(_ calls: Int) throws -> Int {
      let run = try SippRun(sipp, Scenario.unreachable, to: MeasuredGateway.userWithoutDevice, gateway, rate: 2_000, calls: calls)
      // Server transactions last 32 s.
      usleep(35_000_000)
      return run.completed
    }
    let before = gateway.residentMegabytes
    _ = try play(20_000)
    let settled = gateway.residentMegabytes
    let done = try play(100_000)
    let after = gateway.residentMegabytes
    bench.add(
      BenchRow(
        "calls: memory after 100,000 more", unit: "MB", ours: BenchFigure("ours", after - settled), goal: .atMost(4),
        note: String(
          format: "%d calls; %.1f MB before the first 20,000, %.1f after them, %.1f at the end", done, before, settled, after)))
  }
}
