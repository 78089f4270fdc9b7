import BenchKit
import Foundation

/// `bench-load`: the whole gateway under more and more calls of `trunkline-lab load`, which runs in its own process on its own
/// cores. The gateway is the one built beside this bench, or the binary that TRUNKLINE_BINARY names.
@main struct BenchLoad {
  nonisolated static func main() {
    Bench.main("load", about: "the whole gateway under more and more calls of `trunkline-lab load`.") { bench in
      let binary = Gateway.lab
      let steps = bench.isSmall ? "2" : "20,60,100,140,180,220,280,360"
      let result = try run(
        binary, ["load", "--json", "--steps", steps, "--seconds", bench.isSmall ? "0.5" : "10", "--rate", "20"])
      rows(result, bench)
      let wide = try run(
        binary,
        ["load", "--wide", "--json", "--steps", bench.isSmall ? "2" : "20,40,60,80,100"]
          + ["--seconds", bench.isSmall ? "0.5" : "6", "--rate", "20"])
      bench.add(
        BenchRow(
          "load: calls on one core, G.722 ↔ Opus at 16 kHz", unit: "calls", ours: BenchFigure("ours", Double(wide.callsPerCore)),
          note: "the most of the steps 20, 40, 60, 80, 100 that were kept whole"))
      let relayed = try run(
        binary,
        ["load", "--relay", "--json", "--steps", bench.isSmall ? "2" : "50,150,250"]
          + ["--seconds", bench.isSmall ? "0.5" : "4", "--rate", "50"])
      bench.add(
        BenchRow(
          "load: memory of a call, relayed", unit: "KB", ours: BenchFigure("ours", relayed.kilobytesPerCall), goal: .atMost(40),
          note: "slope of resident memory over steps of 50, 150 and 250 calls"))
    }
  }

  private struct Steps: Decodable {
    struct Step: Decodable {
      var offered: Int, connected: Int, refused: Int
      var refusedAfterMilliseconds: Double, keptPercent: Double, tickLatenessMilliseconds: Double
      var isVoid: Bool
    }
    var steps: [Step]
    var callsPerCore: Int
    var cpuPercentPerCall: Double, kilobytesPerCall: Double
    var overload: Step?
  }

  /// Its standard output, read to the end; its progress is printed on ours.
  private static func run(_ binary: String, _ arguments: [String]) throws -> Steps {
    let process = Process()
    let pipe = Pipe()
    process.executableURL = URL(fileURLWithPath: binary)
    (process.arguments, process.standardOutput, process.standardInput) = (arguments, pipe, FileHandle.nullDevice)
    try process.run()
    let output = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw BenchError(text: "trunkline-lab load ended with \(process.terminationStatus)")
    }
    return try JSONDecoder().decode(Steps.self, from: output)
  }

  private static func rows(_ result: Steps, _ bench: Bench) {
    let voids = result.steps.count { $0.isVoid }
    let note =
      "in steps of 5 % or less"
      + (voids > 0 ? "; \(voids) of \(result.steps.count) steps are void: the load could not keep time" : "")
    bench.add(
      BenchRow(
        "load: calls that one core carries", unit: "calls", ours: BenchFigure("ours", Double(result.callsPerCore)), note: note))
    if result.cpuPercentPerCall > 0 {
      bench.add(
        BenchRow(
          "load: calls per core by CPU time", unit: "calls/core", ours: BenchFigure("ours", 100 / result.cpuPercentPerCall),
          note: "the whole gateway, at the last step that was carried"))
    }
    bench.add(BenchRow("load: CPU of a call", unit: "% of a core", ours: BenchFigure("ours", result.cpuPercentPerCall)))
    bench.add(
      BenchRow(
        "load: memory of a call, transcoded", unit: "KB", ours: BenchFigure("ours", result.kilobytesPerCall), goal: .atMost(150),
        note: "slope of resident memory over all steps"))
    guard let over = result.overload else { return }
    bench.add(
      BenchRow(
        "load: 1.5 × capacity, kept by the worst admitted call", unit: "%", ours: BenchFigure("ours", over.keptPercent),
        goal: .atLeast(99.9), note: "\(over.offered) offered, \(over.connected) admitted, \(over.refused) refused"))
    bench.add(
      BenchRow(
        "load: time to a refusal, p99", unit: "ms", ours: BenchFigure("ours", over.refusedAfterMilliseconds), goal: .atMost(100)))
  }
}
