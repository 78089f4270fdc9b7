import AudioCodecs
import BenchKit
import Glibc
import JitterPeers

/// `bench-quality`: what people hear on a bad network. Speech goes as packets through impaired networks and the real receivers,
/// ours and NetEQ on the same packets, and is scored by PESQ. Beyond the options of every bench:
///
/// - `--speech FILE.wav`: another passage, 16 bit mono at 8 kHz or a multiple; several times.
/// - `--trace FILE.csv`: another network, lines `send_ms,arrival_ms` or `send_ms,lost`; several times.
/// - `--seeds N`: how often each network is played to each passage with other random numbers (3; 8 where there is jitter).
/// - `--paths a,b`, `--networks a,b`: only these.
/// - `--encoder`: in place of all that, the table of PESQ by bitrate, FEC and loss (`EncoderTable`).
/// - `--concealment`: in place of all that, lost G.711 through us, NetEQ and G.711 Appendix I (`ConcealmentTable`).
/// - `--pauses`: in place of all that, how talkspurts begin after packets of silence that were kept (`PauseTable`).
/// - `--keep FOLDER`: the WAV files stay there.
@main struct BenchQuality {
  nonisolated static func main() { Bench.main("quality") { bench in try Quality(bench).run() } }
}

struct Quality {
  private struct Point: Hashable {
    var path: Path
    var network: String
    var passage: String
    var who: String
  }
  private let bench: Bench
  private let folder: String
  private let passages: [Passage]
  private let networks: [Impairment]
  private let paths: [Path]
  private let seeds: UInt64?
  private let keeps: Bool

  init(_ bench: Bench) throws {
    self.bench = bench
    let arguments = bench.arguments
    func values(_ name: String) -> [String] {
      arguments.indices.filter { arguments[$0] == name && $0 + 1 < arguments.count }.map { arguments[$0 + 1] }
    }
    func name(_ path: String) -> String { path.split(separator: "/").last.map(String.init) ?? path }
    func chosen<Item>(_ all: [Item], _ option: String, _ name: (Item) -> String) -> [Item] {
      guard let wanted = values(option).last?.split(separator: ",").map(String.init) else { return all }
      return all.filter { wanted.contains(name($0)) }
    }
    if let kept = values("--keep").last {
      folder = kept
      mkdir(kept, 0o755)
    } else {
      let temporary = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
      var template = Array("\(temporary)/bench-quality-XXXXXX".utf8CString)
      guard let made = mkdtemp(&template) else { throw WAVFile.Failure(description: "no temporary folder") }
      folder = String(cString: made)
    }
    let all = try Passages.own() + values("--speech").map { Passage(name: name($0), samples: try WAVFile.read($0)) }
    let traces = try values("--trace").map { Impairment.trace(name($0), try TraceFile.delays($0)) }
    passages = bench.isSmall ? Array(all.prefix(1)) : all
    networks = chosen(bench.isSmall ? [.loss(0), .loss(5)] : Impairment.standard + traces, "--networks", \.name)
    paths = chosen(Path.allCases, "--paths", \.rawValue)
    seeds = bench.isSmall ? 1 : values("--seeds").last.flatMap { UInt64($0) }
    keeps = !values("--keep").isEmpty
  }

  func run() throws {
    if bench.arguments.contains("--encoder") {
      let files = try EncoderTable(bench, passages: passages, seeds: seeds, folder: folder).run()
      return keeps ? () : removeFolder(files)
    }
    if bench.arguments.contains("--concealment") {
      let table = ConcealmentTable(bench, passages: passages, networks: networks, seeds: seeds, folder: folder)
      let files = try table.run()
      return keeps ? () : removeFolder(files)
    }
    if bench.arguments.contains("--pauses") {
      let files = try PauseTable(bench, passages: passages, folder: folder).run()
      return keeps ? () : removeFolder(files)
    }
    if !NetEQ.isInstalled { bench.progress("NetEQ (libtgowt-dev) is not installed: ours only") }
    var pairs: [(reference: String, heard: String)] = []
    var points: [Point] = []
    for (index, passage) in passages.enumerated() {
      try WAVFile.write(passage.samples, to: "\(folder)/reference-\(index).wav")
      for network in networks {
        for path in paths {
          for seed in 1...seeds(of: network) {
            for (who, heard) in try hear(passage, network, path, seed) {
              let file = "\(pairs.count).wav"
              try WAVFile.write(heard, to: "\(folder)/\(file)")
              pairs.append(("reference-\(index).wav", file))
              points.append(Point(path: path, network: network.name, passage: passage.name, who: who))
            }
          }
        }
      }
      bench.progress("\(passage.name) played \(pairs.count) times in all")
    }
    let scores = Scorer.scores(pairs, in: folder)
    if let scores {
      report(points, scores)
    } else {
      // A small run is a test: one that scores nothing shows nothing.
      bench.require(!bench.isSmall, "nothing was scored: PESQ (.venv, made by Scripts/install test) is not installed")
      bench.progress("nothing is scored: PESQ (.venv, made by Scripts/install test) is not installed")
    }
    if !keeps { removeFolder(pairs.count) }
  }

  private func seeds(of network: Impairment) -> UInt64 {
    network.isRandom ? max(1, seeds ?? network.seeds) : 1
  }

  private func removeFolder(_ files: Int) {
    for index in passages.indices { unlink("\(folder)/reference-\(index).wav") }
    for index in 0..<files { unlink("\(folder)/\(index).wav") }
    unlink(folder + "/pairs.tsv")
    rmdir(folder)
  }

  private func hear(_ passage: Passage, _ network: Impairment, _ path: Path, _ seed: UInt64) throws
    -> [(who: String, heard: [Int16])]
  {
    let payloads = try Stream.encode(passage.samples, path.encoding, expectedLossPercent: max(5, network.expectedLossPercent))
    let delays = network.delays(payloads.count, seed)
    var heard = [(who: "ours", heard: try path.outward(Stream.play(payloads, path.encoding, delays).heard))]
    if let theirs = Stream.playByNetEQ(payloads, path.encoding, delays) {
      heard.append((who: "NetEQ", heard: try path.outward(theirs)))
    }
    return heard
  }

  private func report(_ points: [Point], _ scores: [Double]) {
    for path in paths {
      let clean = mean(points, scores, path, "0 % loss")
      for (network, count) in networks.map({ ($0.name, seeds(of: $0)) }) {
        let score = mean(points, scores, path, network)
        guard let ours = score["ours"] else { continue }
        let name = "\(path.title), \(network)"
        let peers = score["NetEQ"].map { [BenchFigure("NetEQ", $0)] } ?? []
        var note = "\(passages.count) passages × \(count) seeds"
        if let whole = clean["ours"] { note += "; drop \(Self.two(whole - ours))" }
        if let whole = clean["NetEQ"], let theirs = score["NetEQ"] { note += ", NetEQ \(Self.two(whole - theirs))" }
        let figure = BenchFigure("ours", ours)
        bench.add(BenchRow("PESQ: " + name, unit: "MOS", ours: figure, peers: peers, goal: path.leastScore(network), note: note))
        if let whole = clean["ours"], let goal = path.mostDrop(network) {
          var theirs: [BenchFigure] = []
          if let whole = clean["NetEQ"], let score = score["NetEQ"] { theirs = [BenchFigure("NetEQ", whole - score)] }
          let drop = BenchFigure("ours", whole - ours)
          bench.add(BenchRow("drop: " + name, unit: "MOS", ours: drop, peers: theirs, goal: goal))
        }
      }
      picture(path, points, scores)
    }
  }

  /// The score over the share of packets that are lost one by one.
  private func picture(_ path: Path, _ points: [Point], _ scores: [Double]) {
    let losses = networks.filter { $0.name.hasSuffix("% loss") }.map(\.name)
    var plot = Plot(
      "PESQ, \(path.title)", x: .init("packets lost, %"), y: .init("PESQ-NB, MOS", range: 1...4.6))
    for who in ["ours", "NetEQ"] {
      plot.add(
        who,
        losses.compactMap { name in
          guard let loss = Double(name.prefix { $0 != " " }), let score = mean(points, scores, path, name)[who] else {
            return nil
          }
          return (loss, score)
        })
    }
    bench.save(
      plot.svg, as: "quality-\(path.rawValue)",
      caption: "PESQ of \(path.title) by loss, the same packets through NetEQ beside it.")
  }

  private func mean(_ points: [Point], _ scores: [Double], _ path: Path, _ network: String) -> [String: Double] {
    var sums: [String: (sum: Double, count: Double)] = [:]
    for (point, score) in zip(points, scores) where point.path == path && point.network == network {
      sums[point.who, default: (0, 0)].sum += score
      sums[point.who, default: (0, 0)].count += 1
    }
    return sums.mapValues { $0.sum / $0.count }
  }

  private static func two(_ value: Double) -> String {
    let hundredths = Int((abs(value) * 100).rounded())
    let sign = value < 0 && hundredths > 0 ? "−" : ""
    return sign + "\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100)"
  }
}
