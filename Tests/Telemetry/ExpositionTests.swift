import Foundation
import Telemetry
import Testing
import TrunklinePlatform

@Suite struct ExpositionTests {
  enum Reason: String, CaseIterable, Sendable { case stranger, malformed }

  private func filled() -> MetricRegistry {
    let registry = MetricRegistry()
    let drops = LabelledCounters<Reason>()
    drops[.stranger].increment(by: 2)
    let histogram = Histogram(bounds: [0.1, 1])
    for value in [0.05, 0.5, 0.5, 7] { histogram.record(value) }
    registry.register([
      .counters("trunkline_test_drops_total", help: "Drops by reason.", label: "reason", drops),
      .histogram("trunkline_test_answer_seconds", help: "Answer to audio.", histogram),
      MetricFamily(name: "trunkline_test_odd", help: "A \\ and a\nbreak.", kind: .gauge, labelNames: ["name"]) {
        [MetricSample(["a \"quoted\" \\ \n name"], .number(0.5)), MetricSample(["inf"], .number(.infinity))]
      },
    ])
    registry.register(ProcessMetrics.families(version: "1.2.3"))
    return registry
  }

  @Test func `counters, gauges and histograms have the lines of the text format`() {
    let text = String(decoding: filled().render(), as: UTF8.self)
    for line in [
      "# TYPE trunkline_test_drops_total counter", "trunkline_test_drops_total{reason=\"stranger\"} 2",
      "trunkline_test_drops_total{reason=\"malformed\"} 0", "trunkline_test_answer_seconds_bucket{le=\"0.1\"} 1",
      "trunkline_test_answer_seconds_bucket{le=\"1.0\"} 3", "trunkline_test_answer_seconds_bucket{le=\"+Inf\"} 4",
      "trunkline_test_answer_seconds_sum 8.05", "trunkline_test_answer_seconds_count 4",
      "# HELP trunkline_test_odd A \\\\ and a\\nbreak.", "trunkline_test_odd{name=\"a \\\"quoted\\\" \\\\ \\n name\"} 0.5",
      "trunkline_test_odd{name=\"inf\"} +Inf", "trunkline_build_info{version=\"1.2.3\"} 1",
    ] {
      #expect(text.split(separator: "\n").contains(Substring(line)), "\(line)")
    }
  }

  @Test func `the process tells its memory, descriptors and CPU time`() throws {
    let lines = String(decoding: filled().render(), as: UTF8.self).split(separator: "\n")
    for name in ["process_resident_memory_bytes", "process_open_fds", "process_cpu_seconds_total"] {
      let line = try #require(lines.first { $0.hasPrefix(name + " ") })
      #expect((Double(line.split(separator: " ")[1]) ?? 0) > 0, "\(name)")
    }
  }

  @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/promtool"), "needs Debian's package prometheus"))
  func `promtool finds nothing to say against the page`() throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/promtool")
    process.arguments = ["check", "metrics"]
    let (input, output) = (Pipe(), Pipe())
    (process.standardInput, process.standardOutput, process.standardError) = (input, output, output)
    try process.run()
    try input.fileHandleForWriting.write(contentsOf: filled().render())
    try input.fileHandleForWriting.close()
    let said = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    #expect(process.terminationStatus == 0 && said.isEmpty, "\(said)")
  }
}
