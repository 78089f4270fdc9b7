import BenchKit
import Glibc
import JitterPeers
import TrunklineAudioCodecs

/// `bench-quality`: how speech sounds on a bad network. Packets of speech pass impaired networks and the real receivers, ours and
/// NetEQ with the same packets, and PESQ scores the output. Voices: `Passages.all`. Options: `options`.
@main struct BenchQuality {
  nonisolated static func main() {
    Bench.main("quality", about: about, options: options) { bench in try Quality(bench).run() }
  }

  private static let about = "what people hear on a bad network, by PESQ and STOI, beside NetEQ on the same packets."
  private static let options = [
    BenchOption("--speech FILE.wav", "another passage, 16 bit mono at 8 kHz or a multiple; several times"),
    BenchOption("--trace FILE.csv", "another network, lines send_ms,arrival_ms or send_ms,lost; several times"),
    BenchOption("--seeds N", "how often each network is played to each passage with other random numbers (2; 4 with jitter)"),
    BenchOption("--paths A,B", "only these of \(Path.allCases.map(\.rawValue).joined(separator: ", "))"),
    BenchOption("--networks A,B", "only these of \(Impairment.standard.map(\.name).joined(separator: ", "))"),
    BenchOption("--encoder", "in place of all that, PESQ by bitrate, FEC and loss"),
    BenchOption("--concealment", "in place of all that, lost G.711 through us, NetEQ and ITU-T G.711 Appendix I"),
    BenchOption("--pauses", "in place of all that, how talkspurts begin after packets of silence that were kept"),
    BenchOption("--keep FOLDER", "the WAV files stay there"),
  ]
}

struct Quality {
  /// The parameters that determine a passage's packets.
  private struct Coded: Hashable {
    var expectedLoss: Int
    var lead: Int
  }
  private let bench: Bench
  private let folder: String
  private let passages: [Passage]
  private let widePassages: [Passage]
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
    let all =
      try (bench.isSmall ? Passages.own() : Passages.all())
      + values("--speech").map { Passage(name: name($0), samples: try WAVFile.read($0)) }
    let allWide = try bench.isSmall ? Passages.ownWide() : Passages.wide()
    let traces = try values("--trace").map { Impairment.trace(name($0), try TraceFile.delays($0)) }
    passages = bench.isSmall ? Array(all.prefix(1)) : all
    widePassages = bench.isSmall ? Array(allWide.prefix(1)) : allWide
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
    var points: [QualityPoint] = []
    let all = passages + widePassages
    for (index, passage) in all.enumerated() {
      try WAVFile.write(passage.samples, passage.band, to: "\(folder)/reference-\(index).wav")
      for path in paths where path.band == passage.band { points += try play(passage, index, path, files: points.count) }
      bench.progress("\(passage.name) played, \(points.count) recordings in all")
    }
    if let scores = Scorer.measure(points.map(\.heard), in: folder) {
      for index in points.indices { points[index].scores = scores[index] }
      QualityReport(bench, points, paths: paths, networks: networks.map(\.name)).add()
    } else {
      // A small run is a test: without any score it proves nothing.
      bench.require(!bench.isSmall, "nothing was scored: PESQ (.venv, made by Scripts/install test) is not installed")
      bench.progress("nothing is scored: PESQ (.venv, made by Scripts/install test) is not installed")
    }
    if !keeps { removeFolder(points.count) }
  }

  private func seeds(of network: Impairment) -> UInt64 {
    max(1, seeds ?? network.seeds)
  }

  private func removeFolder(_ files: Int) {
    for index in 0..<passages.count + widePassages.count { unlink("\(folder)/reference-\(index).wav") }
    for index in 0..<files { unlink("\(folder)/\(index).wav") }
    unlink(folder + "/pairs.tsv")
    rmdir(folder)
  }

  /// Plays a passage through every network, after its lead; where a start-up is judged, a second time from its first packet on.
  private func play(_ passage: Passage, _ index: Int, _ path: Path, files: Int) throws -> [QualityPoint] {
    var points: [QualityPoint] = []
    var coded: [Coded: [[UInt8]]] = [:]
    func add(_ network: Impairment, _ seed: UInt64, isStart: Bool) throws {
      let expected = max(5, network.expectedLossPercent)
      let lead = isStart ? [] : passage.lead(seed)
      let key = Coded(expectedLoss: expected, lead: lead.count)
      let payloads =
        try coded[key] ?? Stream.encode(lead + passage.samples, path.encoding, path.band, expectedLossPercent: expected)
      coded[key] = payloads
      for (who, heard) in try hear(payloads, network.delays(payloads.count, seed), path) {
        let file = "\(files + points.count).wav"
        try WAVFile.write(Array(heard.dropFirst(lead.count)), path.band, to: "\(folder)/\(file)")
        let wantsAll = !isStart && QualityReport.scoredInFull.contains(network.name)
        points.append(
          QualityPoint(
            path: path, network: network.name, passage: passage, seed: seed, isStart: isStart, who: who,
            heard: Heard(reference: "reference-\(index).wav", file: file, wantsAll: wantsAll)))
      }
    }
    for network in networks where path.isPlayed(network.name) {
      for seed in 1...seeds(of: network) { try add(network, seed, isStart: false) }
      if QualityReport.starts.contains(network.name) { try add(network, 1, isStart: true) }
    }
    return points
  }

  private func hear(_ payloads: [[UInt8]], _ delays: [Double?], _ path: Path) throws -> [(who: String, heard: [Int16])] {
    var heard = [(who: "ours", heard: try path.outward(Stream.play(payloads, path.encoding, delays, path.band)))]
    if let theirs = Stream.playByNetEQ(payloads, path.encoding, delays, path.band) {
      heard.append((who: "NetEQ", heard: try path.outward(theirs)))
    }
    return heard
  }
}
