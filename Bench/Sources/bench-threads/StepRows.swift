import BenchKit

/// More and more transcoded calls until one of them loses or most are late: how many a core carries, by the same rule for ours and rtpengine.
/// `bench-load` steps the whole gateway up; rtpengine has no calls of its own to step, so both media planes stand here.
struct StepRows {
  static let row = "steps: transcoded calls that one core carries"
  /// A packet's time, in µs: what is later has missed its turn.
  private static let latest = 20_000.0
  let bench: Bench
  let cores: Cores
  init(_ bench: Bench, _ cores: Cores) { (self.bench, self.cores) = (bench, cores) }

  func run() throws {
    guard bench.wants(Self.row) else { return }
    let material = try Material.spoken(Material.talk())
    let seconds = bench.isSmall ? 0.3 : 3.0
    let ours = try step("ours", bench.isSmall ? [4] : [80, 100, 120, 140, 160, 180]) { calls in
      try Ours(cores).measure(calls, .opus, material, seconds: seconds, settle: bench.isSmall ? 0.2 : 1)
    }
    let theirs =
      try bench.isSmall
      ? nil
      : step("rtpengine", [10, 20, 30, 40, 50, 60]) { calls in
        try Theirs.measure(bench, cores, calls, transcodes: true, material)
      }
    bench.add(
      BenchRow(
        Self.row, unit: "calls", ours: BenchFigure("ours", Double(ours?.calls ?? 0)),
        peers: theirs.map { [BenchFigure("rtpengine", Double($0.calls))] } ?? [],
        note: "every call keeps 99.9 % of its packets, 99 of 100 less than 20 ms late; "
          + [ours?.note, theirs?.note].compactMap { $0 }.joined(separator: "; ")))
    var bars = BarPlot("Transcoded calls that one core carries, PCMU ↔ Opus + SRTP", label: "calls")
    bars.add("ours", Double(ours?.calls ?? 0))
    if let theirs { bars.add("rtpengine", Double(theirs.calls)) }
    bench.save(
      bars.svg, as: "threads-steps",
      caption: "The last step at which every call kept 99.9 % of its packets and 99 of 100 came in time.")
  }

  /// The last step at which every call kept its packets; nil if who is measured is not installed, or none did.
  private func step(_ name: String, _ steps: [Int], _ measure: (Int) throws -> Measured?) throws -> (calls: Int, note: String)? {
    var best: (calls: Int, note: String)?
    for calls in steps {
      bench.progress("steps: \(name), \(calls) calls")
      guard let measured = try measure(calls) else { return nil }
      let late = "p99 late \(fixed(quantile(measured.figures.transits, 0.99) / 1_000, 1)) ms"
      let cpu = "\(fixed(Double(calls) / measured.callsPerCore * 100, 0)) % of the core"
      let void = measured.figures.isVoid ? ", generator late: VOID" : ""
      bench.progress("steps: \(name), \(calls) calls: \(fixed(measured.figures.worstShare * 100, 2)) %, \(late), \(cpu)\(void)")
      let isKept = measured.figures.worstShare >= 0.999 && quantile(measured.figures.transits, 0.99) <= Self.latest
      guard isKept || bench.isSmall else { break }
      best = (calls, "\(name) \(late), \(cpu)\(void)")
    }
    return best
  }
}
