import BenchKit
import TrunklineRTP

/// More and more transcoded calls, until one loses more than 0.1 % of its packets or 1 % of all packets are late: the number that
/// a core carries, by the same rule for ours and rtpengine. `bench-load` does this to the whole gateway; rtpengine has no call
/// control, so this bench compares the media planes.
struct StepRows {
  static let row = "steps: transcoded calls that one core carries"
  /// In µs; a packet that takes longer has missed its tick.
  private static let latest = 20_000.0
  let bench: Bench
  let cores: Cores
  init(_ bench: Bench, _ cores: Cores) { (self.bench, self.cores) = (bench, cores) }

  func run() throws {
    guard bench.wants(Self.row) else { return }
    let material = try Material.spoken(Material.talk())
    let seconds = bench.isSmall ? 0.3 : 3.0
    let ours = try last("ours", bench.isSmall ? [4] : [80, 120, 160, 200, 240, 320, 400]) { calls in
      try Ours(cores).measure(calls, .opus, material, seconds: seconds, settle: bench.isSmall ? 0.2 : 1)
    }
    let theirs =
      try bench.isSmall
      ? nil
      : last("rtpengine", [20, 30, 40, 60, 80, 120]) { calls in
        try Theirs.measure(bench, cores, calls, transcodes: true, material)
      }
    bench.add(
      BenchRow(
        Self.row, unit: "calls", ours: BenchFigure("ours", Double(ours?.calls ?? 0)),
        peers: theirs.map { [BenchFigure("rtpengine", Double($0.calls))] } ?? [],
        note: "in steps of 5 % or less; every call keeps 99.9 % of its packets, 99 of 100 less than 20 ms late; "
          + [ours?.note, theirs?.note].compactMap { $0 }.joined(separator: "; ")))
    bench.add(
      BenchRow(
        "steps: the same by CPU time", unit: "calls/core", ours: BenchFigure("ours", ours?.byCPU ?? 0),
        peers: theirs.map { [BenchFigure("rtpengine", $0.byCPU)] } ?? [],
        note: "the last step's calls by the share of the core they took"))
    guard let ours, let theirs, theirs.calls > 0, theirs.byCPU > 0 else { return }
    bench.say(
      "Transcoded calls, PCMU ↔ Opus over DTLS-SRTP, that one core carries with every call whole: \(ours.calls), rtpengine \(theirs.calls); "
        + "by CPU time \(fixed(ours.byCPU, 0)) and \(fixed(theirs.byCPU, 0)).")
  }

  private struct Step {
    var calls: Int
    /// Calls that the core would carry if it did nothing else and were never late.
    var byCPU: Double
    var note: String
  }

  /// The last step at which every call kept its packets; nil if the implementation is not installed, or no step passed. The steps
  /// are wide up to the first that fails, then halved until the result is known to 5 %.
  private func last(_ name: String, _ steps: [Int], _ measure: (Int) throws -> Measured?) throws -> Step? {
    var best: Step?
    var failed: Int?
    for calls in steps {
      guard let (step, isKept) = try self.step(name, calls, measure) else { return nil }
      guard isKept || bench.isSmall else {
        failed = calls
        break
      }
      best = step
    }
    while let low = best?.calls, let high = failed, Double(high - low) > max(1, 0.05 * Double(low)) {
      guard let (step, isKept) = try self.step(name, (low + high) / 2, measure) else { return nil }
      if isKept { best = step } else { failed = step.calls }
    }
    return best
  }

  private func step(_ name: String, _ calls: Int, _ measure: (Int) throws -> Measured?) throws -> (Step, isKept: Bool)? {
    bench.progress("steps: \(name), \(calls) calls")
    guard let measured = try measure(calls) else { return nil }
    let latest = quantile(measured.figures.transits, 0.99)
    let late = "p99 late \(fixed(latest / 1_000, 1)) ms"
    let cpu = "\(fixed(Double(calls) / measured.callsPerCore * 100, 0)) % of the core"
    let void = measured.figures.isVoid ? ", generator late: VOID" : ""
    bench.progress("steps: \(name), \(calls) calls: \(fixed(measured.figures.worstShare * 100, 2)) %, \(late), \(cpu)\(void)")
    let step = Step(calls: calls, byCPU: measured.callsPerCore, note: "\(name) \(late), \(cpu)\(void)")
    return (step, measured.figures.worstShare >= 0.999 && latest <= Self.latest)
  }
}
