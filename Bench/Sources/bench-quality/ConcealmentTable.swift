import BenchKit
import JitterPeers
import TrunklineAudioCodecs
import TrunklineBytes

/// `bench-quality --concealment`: PCMU from a trunk that loses packets, as an app hears it (Opus, no loss there), through our receiver,
/// NetEQ and ITU-T G.711 Appendix I (libspandsp; a fixed delay): the same words, the same losses. Each passage is played twice and the
/// second time scored, so that receivers have set themselves up. Differences are of pairs, with 95 % of the bootstrap over passages and
/// seeds (docs/design/codecs-and-concealment.md).
struct ConcealmentTable {
  private struct Point: Hashable {
    var network: String
    var who: String
  }
  private static let peers = ["NetEQ", "Appendix I"]
  private let bench: Bench
  private let passages: [Passage]
  private let networks: [Impairment]
  private let seeds: UInt64
  private let folder: String

  init(_ bench: Bench, passages: [Passage], networks: [Impairment], seeds: UInt64?, folder: String) {
    (self.bench, self.passages, self.networks, self.seeds, self.folder) = (bench, passages, networks, seeds ?? 3, folder)
  }

  /// How many files are left in the folder.
  func run() throws -> Int {
    var (points, pairs): ([Point], [(reference: String, heard: String)]) = ([], [])
    for (index, passage) in passages.enumerated() {
      let reference = "reference-\(index).wav"
      try WAVFile.write(passage.samples, to: "\(folder)/\(reference)")
      let payloads = try Stream.encode(passage.samples + passage.samples, .pcmu, expectedLossPercent: 0)
      for network in networks {
        for seed in 1...max(1, seeds) {
          let delays = network.delays(payloads.count, seed)
          for (who, heard) in try hear(payloads, delays) {
            let file = "\(pairs.count).wav"
            let outward = try Path.trunkToApp.outward(heard)
            try WAVFile.write(Array(outward.dropFirst(passage.samples.count)), to: "\(folder)/\(file)")
            pairs.append((reference, file))
            points.append(Point(network: network.name, who: who))
          }
        }
      }
      bench.progress("\(passage.name) played \(pairs.count) times in all")
    }
    if let scores = Scorer.scores(pairs, in: folder) {
      report(Dictionary(grouping: zip(points, scores), by: \.0).mapValues { $0.map(\.1) })
    } else {
      bench.progress("nothing is scored: PESQ (.venv, made by Scripts/install test) is not installed")
    }
    return pairs.count
  }

  private func hear(_ payloads: [[UInt8]], _ delays: [Double?]) throws -> [(String, [Int16])] {
    var heard = [("ours", try Stream.play(payloads, .pcmu, delays))]
    if let theirs = Stream.playByNetEQ(payloads, .pcmu, delays) { heard.append(("NetEQ", theirs)) }
    // It has no jitter buffer.
    if delays.allSatisfy({ $0 ?? 0 == 0 }), let concealer = AppendixI() {
      heard.append(
        (
          "Appendix I",
          zip(payloads, delays).flatMap { payload, delay in
            guard delay != nil else { return concealer.conceal(payload.count) }
            var samples = [Int16](repeating: 0, count: payload.count)
            var span = samples.mutableSpan
            _ = G711.decode(payload.span, law: .mu, into: &span)
            concealer.received(&samples)
            return samples
          }
        ))
    }
    return heard
  }

  private func report(_ scores: [Point: [Double]]) {
    for network in networks {
      guard let ours = scores[Point(network: network.name, who: "ours")] else { continue }
      var (peers, leads): ([BenchFigure], [String]) = ([], [])
      for who in Self.peers {
        guard let theirs = scores[Point(network: network.name, who: who)] else { continue }
        peers.append(BenchFigure(who, Self.mean(theirs)))
        let (lead, low, high) = Self.interval(zip(ours, theirs).map { $0 - $1 })
        leads.append("\(who) by \(Self.two(lead)) (\(Self.two(low))…\(Self.two(high)))")
      }
      bench.add(
        BenchRow(
          "concealment: \(network.name)", unit: "MOS", ours: BenchFigure("ours", Self.mean(ours)), peers: peers,
          note: (["\(passages.count) passages, \(ours.count) runs"] + leads).joined(separator: "; ")))
    }
  }

  private static func mean(_ values: [Double]) -> Double { values.reduce(0, +) / Double(max(1, values.count)) }

  /// The mean, and 95 % of the bootstrap around it.
  private static func interval(_ values: [Double]) -> (mean: Double, low: Double, high: Double) {
    var random = SplitMix64(seed: 1)
    let means = (0..<1_000).map { _ in
      mean(values.indices.map { _ in values[Int(random.next() % UInt64(values.count))] })
    }.sorted()
    return (mean(values), means[25], means[974])
  }

  private static func two(_ value: Double) -> String { "\((value * 100).rounded() / 100)" }
}
