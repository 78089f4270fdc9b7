import BenchKit
import Glibc

/// `bench-noise`: no payload is a burst of noise. Damaged packets of every codec go through the receive path, and each 20 ms of
/// what is heard is held against the loudest 20 ms of the source in the 200 ms before: more than 3 dB in mean square or highest
/// sample is a burst. Prints one line for each combination with a burst, and a row with all of them for each codec. Beyond the
/// options of every bench:
///
/// - `--seeds N`: how often each damage is made with other random numbers (2, some 40 s in all).
/// - `--talkers`, `--damages`, `--patterns`, `--passages a,b`: only these.
/// - `--all`: a line for every combination; `--places`: every burst, and every place where good speech was brought down.
/// - `--speech FILE`: instead of the passages, 8 kHz samples of 16 bits without a heading; `--encoder BITRATE,LOSS,COMPLEXITY`: how
///   libopus is set, in percent of the bench's own bit rate and in percent.
/// - `--packets FILE,...`: instead of the talkers and the recordings that are kept, packets of other encoders (`Recording`).
/// - `--rows FILE`: writes what was judged, and whether it was wrong (`Bench/fit_noise.py`).
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
    let (setting, rows) = (EncoderSetting(value("--encoder") ?? ""), try value("--rows").map { try RowFile($0) })
    let prints = !bench.isJSON && bench.arguments.contains("--places")
    let seeds = value("--seeds").flatMap { UInt64($0) } ?? (bench.isSmall ? 1 : 2)
    var passages = (bench.isSmall ? [Passage.telephone] : chosen("--passages", Passage.self)).map { ($0.rawValue, $0.samples) }
    if let file = value("--speech") { passages = [("speech", try samples(of: file))] }
    let files = value("--packets")?.split(separator: ",").map(String.init)
    let isPlain = !bench.isSmall && value("--talkers") == nil && value("--speech") == nil
    let recordings = try files.map { try $0.map(Recording.init) } ?? (isPlain ? Recording.kept : [])
    let talkers = files == nil ? chosen("--talkers", Talker.self) : []
    let names = talkers.map(\.rawValue) + recordings.map(\.name)
    for (index, talker) in names.enumerated() {
      var (all, clean) = (Outcome(), Outcome())
      let own = index < talkers.count ? talkers[index] : nil
      for (passage, speech) in own == nil ? [("recorded", [])] : passages {
        let probe = try own.map { try Probe($0, speech, setting) } ?? Probe(recordings[index - talkers.count])
        let good = try probe.run(.empty, .never, seed: 1, rows: rows)
        clean.add(good)
        if prints { for place in good.clippings { print("\(talker) \(passage) clipped: \(place)") } }
        for damage in chosen("--damages", Damage.self) {
          for pattern in chosen("--patterns", Pattern.self) {
            var outcome = Outcome()
            for seed in 1...max(1, seeds) { outcome.add(try probe.run(damage, pattern, seed: seed, rows: rows)) }
            all.add(outcome)
            if !bench.isJSON, outcome.bursts > 0 || bench.arguments.contains("--all") {
              print(line("\(talker) \(passage) \(damage) \(pattern)", outcome))
            }
            if prints { for place in outcome.places { print("  \(place)") } }
          }
        }
      }
      bursts += all.bursts
      let held = BenchFigure("ours", 10_000 * Double(clean.limited) / Double(max(1, clean.windows)))
      let depth = clean.clippings.map(\.depth).max() ?? 0
      let (places, time) = (clean.clippings.count, clean.clippings.reduce(0) { $0 + $1.milliseconds })
      let heard = "\(clean.windows) packets; \(places) places, \(time) ms, by up to \(format(depth)) dB"
      bench.add(BenchRow("held back of good speech: \(talker)", unit: "per 10,000", ours: held, note: heard))
      if let own, !bench.isSmall, value("--speech") == nil { try addSounds(own, setting, prints, bench) }
      let share = BenchFigure("ours", 10_000 * Double(all.bursts) / Double(max(1, all.hit)))
      let note = "\(all.hit) damaged packets, the worst \(format(all.worst)) dB, \(all.damaged) refused, \(all.limited) limited"
      bench.add(BenchRow("bursts: \(talker)", unit: "per 10,000", ours: share, note: note))
    }
    // 104 of some 56,000 when this was written, 49 of them of G.722.
    bench.require(!bench.isSmall || bursts <= 140, "\(bursts) bursts in the small run, at most 140 are allowed")
  }

  /// Sounds that are no voice, sent well: how long of them is not heard as it was sent.
  private static func addSounds(_ talker: Talker, _ setting: EncoderSetting, _ prints: Bool, _ bench: Bench) throws {
    var (time, longest, depth, worst) = (0, 0, 0.0, "")
    for sound in Sound.allCases {
      let outcome = try Probe(talker, sound.samples, setting).run(.empty, .never, seed: 1)
      for place in outcome.clippings {
        if prints { print("\(talker) \(sound) clipped: \(place)") }
        time += place.milliseconds
        depth = max(depth, place.depth)
        if place.milliseconds > longest { (longest, worst) = (place.milliseconds, ", of \(sound)") }
      }
    }
    let note = "of \(Sound.allCases.count * 8) s; the longest \(longest) ms\(worst), by up to \(format(depth)) dB"
    bench.add(BenchRow("held back of sounds: \(talker)", unit: "ms", ours: BenchFigure("ours", Double(time)), note: note))
  }

  private static func samples(of file: String) throws -> [Int16] {
    guard let handle = fopen(file, "r") else { throw BenchError(text: "\(file): \(String(cString: strerror(errno)))") }
    defer { fclose(handle) }
    var samples = [Int16](repeating: 0, count: 480_000)
    let count = fread(&samples, 2, samples.count, handle)
    return Array(samples.prefix(count))
  }

  private static func line(_ name: String, _ outcome: Outcome) -> String {
    name + String(repeating: " ", count: max(1, 44 - name.count))
      + "\(format(outcome.worst)) dB, \(outcome.bursts) bursts of \(outcome.hit) hit; \(outcome.damaged) refused, "
      + "\(outcome.limited) limited, heard \(format(outcome.heard * 100)) %"
  }
}
