import BenchKit
import Foundation

/// `bench-ears`: what a real client hears of a real carrier's call, Trunkline and Janus in the same run. The calls are made by
/// `Bench/ears/ears.py`; here they become rows. The options: `options`.
@main struct BenchEars {
  nonisolated static func main() {
    Bench.main("ears", about: about, options: options) { bench in
      let calls = try EarCalls(bench).made()
      EarRows(bench, calls).add()
    }
  }

  private static let about =
    "what Chromium hears of a carrier's call, and the carrier of its, beside Janus in the same run; clean, 3 and 5 % loss."
  private static let options = [
    BenchOption("--full", "every network, and aiortc as a second client: some 45 minutes"),
    BenchOption(
      "--calls FILE", "the calls as JSON lines, kept and gone on with (default: ears-calls.jsonl in the results folder)"),
    BenchOption("--made", "only the rows of the calls that are there already; none is made"),
    BenchOption("--voices FOLDER", "recordings that are spoken (default: Bench/.voices, which Scripts/bench fills)"),
    BenchOption("--side-by-side N", "calls at a time (4)"),
  ]
}

/// Runs ears.py until it has made the calls that were asked for.
struct EarCalls {
  private let bench: Bench

  init(_ bench: Bench) { self.bench = bench }

  private func value(_ name: String) -> String? {
    bench.arguments.firstIndex(of: name).flatMap { $0 + 1 < bench.arguments.count ? bench.arguments[$0 + 1] : nil }
  }

  func made() throws -> [EarCall] {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let isFull = bench.arguments.contains("--full")
    let file =
      value("--calls") ?? bench.results.map { "\($0)/ears-calls.jsonl" } ?? NSTemporaryDirectory() + "ears-\(getpid()).jsonl"
    if !bench.arguments.contains("--made") { try make(into: file, isFull: isFull, folder) }
    let text = try String(contentsOfFile: file, encoding: .utf8)
    let calls = try text.split(separator: "\n").map { try JSONDecoder().decode(EarCall.self, from: Data($0.utf8)) }
    return calls.filter { $0.build == calls.last?.build }
  }

  private func make(into file: String, isFull: Bool, _ folder: URL) throws {
    let python =
      ProcessInfo.processInfo.environment["TRUNKLINE_PYTHON"] ?? folder.deletingLastPathComponent().path + "/.venv/bin/python"
    guard FileManager.default.isExecutableFile(atPath: python) else {
      throw BenchError(text: "no \(python): run Scripts/install bench")
    }
    var arguments = [
      folder.path + "/ears/ears.py", "--binary", Gateway.binary, "--results", file, "--side-by-side",
      value("--side-by-side") ?? "4",
    ]
    if bench.isSmall {
      arguments += ["--rows", "clean", "--clients", "chromium", "--bridges", "trunkline", "--calls", "1", "--passages", "1"]
    } else if !isFull {
      arguments += ["--rows", "clean,trunk-3,trunk-5,app-3,app-5", "--clients", "chromium", "--passages", "2"]
    }
    let voices = value("--voices") ?? folder.path + "/.voices"
    let files = ((try? FileManager.default.contentsOfDirectory(atPath: voices)) ?? []).filter { $0.hasSuffix(".wav") }.sorted()
    if files.count < 8 { bench.progress("\(files.count) recordings in \(voices): Bench/voices.py fetches eight") }
    arguments += ["--voices"] + files.map { "\(voices)/\($0)" }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: python)
    process.arguments = arguments
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw BenchError(text: "ears.py ended with status \(process.terminationStatus)") }
  }
}

struct BenchError: Error, CustomStringConvertible {
  var text: String
  var description: String { text }
}
