import BenchKit
import Glibc

/// `bench-noise`: no payload is a burst of noise. Damaged packets of every codec go through the receive path, and each 20 ms of
/// what is heard is held against the loudest 20 ms of the source in the 200 ms before: more than 3 dB in mean square or highest
/// sample is a burst. Prints one line for each combination with a burst, and a row with all of them for each codec. Beyond the
/// options of every bench:
///
/// - `--seeds N`: how often each damage is made with other random numbers (2, some 40 s in all).
/// - `--talkers`, `--damages`, `--patterns`, `--passages a,b`: only these.
/// - `--all`: a line for every combination; `--places`: every burst.
@main struct BenchNoise {
  nonisolated static func main() { Bench.main("noise") { bench in try run(bench) } }

  private static func run(_ bench: Bench) throws {
    func value(_ name: String) -> String? {
      bench.arguments.firstIndex(of: name).flatMap { $0 + 1 < bench.arguments.count ? bench.arguments[$0 + 1] : nil }
    }
    func chosen<Item: CaseIterable & RawRepresentable<String>>(_ option: String, _: Item.Type) -> [Item] {
      guard let wanted = value(option)?.split(separator: ",").map(String.init) else { return Array(Item.allCases) }
      return Item.allCases.filter { wanted.contains($0.rawValue) }
    }
    var bursts = 0
    let seeds = value("--seeds").flatMap { UInt64($0) } ?? (bench.isSmall ? 1 : 2)
    let passages = bench.isSmall ? [Passage.telephone] : chosen("--passages", Passage.self)
    for talker in chosen("--talkers", Talker.self) {
      var (all, clean) = (Outcome(), Outcome())
      for passage in passages {
        let probe = try Probe(talker, passage)
        clean.add(try probe.run(.empty, .never, seed: 1))
        for damage in chosen("--damages", Damage.self) {
          for pattern in chosen("--patterns", Pattern.self) {
            var outcome = Outcome()
            for seed in 1...max(1, seeds) { outcome.add(try probe.run(damage, pattern, seed: seed)) }
            all.add(outcome)
            if !bench.isJSON, outcome.bursts > 0 || bench.arguments.contains("--all") {
              print(line("\(talker) \(passage) \(damage) \(pattern)", outcome))
            }
            if bench.arguments.contains("--places") { for place in outcome.places { print("  \(place)") } }
          }
        }
      }
      bursts += all.bursts
      let held = BenchFigure("ours", 10_000 * Double(clean.limited) / Double(max(1, clean.windows)))
      bench.add(BenchRow("held back of good speech: \(talker)", unit: "per 10,000", ours: held, note: "\(clean.windows) packets"))
      let share = BenchFigure("ours", 10_000 * Double(all.bursts) / Double(max(1, all.hit)))
      let note = "\(all.hit) damaged packets, the worst \(format(all.worst)) dB, \(all.damaged) refused, \(all.limited) limited"
      bench.add(BenchRow("bursts: \(talker)", unit: "per 10,000", ours: share, note: note))
    }
    // 38 of some 56,000 when this was written.
    bench.require(!bench.isSmall || bursts <= 60, "\(bursts) bursts in the small run, at most 60 are allowed")
  }

  private static func line(_ name: String, _ outcome: Outcome) -> String {
    name + String(repeating: " ", count: max(1, 44 - name.count))
      + "\(format(outcome.worst)) dB, \(outcome.bursts) bursts of \(outcome.hit) hit; \(outcome.damaged) refused, "
      + "\(outcome.limited) limited, heard \(format(outcome.heard * 100)) %"
  }
}
