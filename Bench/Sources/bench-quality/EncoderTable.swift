import BenchKit
import JitterPeers
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

/// `bench-quality --encoder`: what bitrate and FEC of the Opus that we send are worth at each loss, by PESQ. libopus' encoder as a session
/// has it, packets lost one by one, and the receiver an app has: NetEQ, or ours where it is not installed. `EncoderControl` is derived
/// from the table (docs/design/codecs-and-concealment.md).
struct EncoderTable {
  private struct Point: Hashable {
    var bitrate: Int
    var repairs: Bool
    var loss: Int
  }
  private static let bitrates = [12_000, 16_000, 20_000, 24_000, 28_000, 32_000, 40_000]
  private static let losses = [0, 1, 2, 3, 5, 10, 20]
  private let bench: Bench
  private let passages: [Passage]
  private let seeds: UInt64
  private let folder: String

  init(_ bench: Bench, passages: [Passage], seeds: UInt64?, folder: String) {
    (self.bench, self.passages, self.seeds, self.folder) = (bench, passages, seeds ?? 3, folder)
  }

  /// How many files are left in the folder.
  func run() throws -> Int {
    var (points, pairs): ([Point], [(reference: String, heard: String)]) = ([], [])
    var speakers: [String] = []
    var bytes: [Point: Int] = [:]
    for (index, passage) in passages.enumerated() {
      // The first half is not scored: receivers set themselves up.
      let reference = "reference-\(index).wav"
      try WAVFile.write(passage.samples, to: "\(folder)/\(reference)")
      for bitrate in Self.bitrates {
        for repairs in [false, true] {
          for loss in Self.losses {
            let point = Point(bitrate: bitrate, repairs: repairs, loss: loss)
            let payloads = try encode(passage.samples + passage.samples, point)
            bytes[point, default: 0] += payloads.reduce(0) { $0 + $1.count } / 2
            for seed in 1...(loss == 0 ? 1 : seeds) {
              let delays = Impairment.loss(loss).delays(payloads.count, seed)
              let theirs = Stream.playByNetEQ(payloads, .opus, delays)
              let heard = try theirs ?? Stream.play(payloads, .opus, delays)
              let file = "\(pairs.count).wav"
              try WAVFile.write(Array(heard.dropFirst(passage.samples.count)), to: "\(folder)/\(file)")
              pairs.append((reference, file))
              points.append(point)
              speakers.append(passage.speaker)
            }
          }
        }
      }
      bench.progress("\(passage.name) played \(pairs.count) times in all")
    }
    if let scores = Scorer.scores(pairs, in: folder) {
      report(points, speakers, scores, bytes)
    } else {
      bench.progress("nothing is scored: PESQ (.venv, made by Scripts/install test) is not installed")
    }
    return pairs.count
  }

  private func report(_ points: [Point], _ speakers: [String], _ scores: [Double], _ bytes: [Point: Int]) {
    let seconds = passages.reduce(0.0) { $0 + Double($1.samples.count) / 8_000 }
    for loss in Self.losses {
      for bitrate in Self.bitrates {
        for repairs in [false, true] {
          let point = Point(bitrate: bitrate, repairs: repairs, loss: loss)
          let own = points.indices.filter { points[$0] == point }
          let groups = Dictionary(grouping: own) { speakers[$0] }.sorted { $0.key < $1.key }.map { $0.value.map { scores[$0] } }
          guard let mean = Interval(groups: groups) else { continue }
          let name = "encoder: \(loss) % loss, \(bitrate / 1_000) kbit/s\(repairs ? " with FEC" : "")"
          let kilobits = Double(bytes[point] ?? 0) * 8 / seconds / 1_000
          bench.add(
            BenchRow(
              name, unit: "MOS", ours: BenchFigure("ours", mean.mean, interval: mean),
              note: "\(own.count) passages, \((kilobits * 10).rounded() / 10) kbit/s"))
        }
      }
    }
  }

  /// As a session's encoder would be set after reports of this loss.
  private func encode(_ samples: [Int16], _ point: Point) throws -> [[UInt8]] {
    let expected = max(EncoderControl.leastExpectedLoss, (point.loss + 4) / 5 * 5)
    var encoder = try OpusEncoder(bitrate: point.bitrate, expectedLossPercent: point.repairs ? expected : 0)
    encoder.setRepair(point.repairs)
    return try stride(from: 0, to: samples.count - 159, by: 160).map { start in
      var payload = [UInt8](repeating: 0, count: 1_275)
      var span = payload.mutableSpan
      let tick = Array(samples[start..<start + 160])
      let length = try encoder.encode(tick.span, into: &span)
      return Array(payload[..<length])
    }
  }
}
