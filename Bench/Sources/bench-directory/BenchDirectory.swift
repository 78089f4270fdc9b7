import BenchKit
import Foundation
import TrunklineCallDirectory

/// `bench-directory`: what a Call Directory extension costs with a million entries. Each load is a process of its own, as on a telephone;
/// memory is its peak (`VmHWM`) less that of the same program when it does nothing.
@main struct BenchDirectory {
  nonisolated static func main() {
    if let role = LoadProcess.role(CommandLine.arguments) { role() }
    Bench.main(
      "directory", about: "a directory of 10⁶ entries: a Call Directory extension's time and peak memory, a server's import."
    ) { bench in
      try rows(bench)
      try ImportRows.rows(bench)
    }
  }

  /// How the entries are made.
  enum Kind: String, CaseIterable {
    /// Each label once, 23 bytes: names of companies.
    case names
    /// A few labels: "Spam likely".
    case kinds
  }

  static func rows(_ bench: Bench) throws {
    let count = bench.isSmall ? 20_000 : 1_000_000
    for kind in Kind.allCases {
      let folder = FileManager.default.temporaryDirectory.appendingPathComponent("bench-directory-\(UUID().uuidString)").path
      defer { try? FileManager.default.removeItem(atPath: folder) }
      let store = try DirectoryStore(folder: DirectoryFolder(path: folder), extensions: [LoadProcess.identifier])
      let written = try ContinuousClock().measure { try store.replace(with: entries(count, kind, generation: 0)) }
      bench.add(
        BenchRow("app: sort and write, \(kind)", unit: "s", ours: BenchFigure("ours", seconds(written)), note: "\(count) entries")
      )
      let empty = try LoadProcess.run("empty", folder)
      try add(bench, "full load", kind, count, try LoadProcess.run("full", folder), empty)
      try store.replace(with: entries(count, kind, generation: 1))
      try add(bench, "difference of 1 %", kind, count, try LoadProcess.run("incremental", folder), empty)
    }
  }

  private static func add(
    _ bench: Bench, _ name: String, _ kind: Kind, _ count: Int, _ load: LoadProcess.Figures, _ empty: LoadProcess.Figures
  ) throws {
    let expected = name == "full load" ? count : count / 50
    bench.require(load.entries == expected, "\(name), \(kind): \(load.entries) entries and removals in place of \(expected)")
    bench.add(
      BenchRow(
        "extension: \(name), \(kind)", unit: "s", ours: BenchFigure("ours", load.seconds), goal: .atMost(10),
        note: "\(count) entries"))
    bench.add(
      BenchRow(
        "extension: \(name), \(kind), peak memory", unit: "MB",
        ours: BenchFigure("ours", Double(load.peakKilobytes - empty.peakKilobytes) / 1_024), goal: .atMost(8),
        note: "beyond \(empty.peakKilobytes / 1_024) MB of the same program doing nothing"))
  }

  /// Unsorted and without doubled numbers; in generation 1 every hundredth has another number.
  private static func entries(_ count: Int, _ kind: Kind, generation: Int) -> some Sequence<DirectoryEntry> {
    (0..<count).lazy.compactMap { index in
      // a prime without common factor: each index once
      let position = Int64(index) * 7_368_787 % Int64(count)
      let number = 10_000_000_000 + position * 7_919 + (index % 100 == 0 ? Int64(generation) : 0)
      let label = kind == .names ? "Company no. \(number)" : "Spam likely \(index % 16)"
      return PhoneNumber(number).map { DirectoryEntry($0, label: label) }
    }
  }

  private static func seconds(_ duration: Duration) -> Double { duration / .seconds(1) }
}
