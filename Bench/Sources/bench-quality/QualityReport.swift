import BenchKit

/// One recording of received audio, and its scores.
struct QualityPoint {
  var path: Path
  var network: String
  var passage: Passage
  var seed: UInt64
  /// True for a recording from the stream's first packet on, without a lead.
  var isStart: Bool
  var who: String
  var heard: Heard
  var scores: Scores?
}

/// The rows and the picture. Each figure is a mean over voices with its 95 % interval by a bootstrap over the speakers; each lead
/// is a difference of pairs: the same voice with the same losses.
struct QualityReport {
  /// Networks in which PESQ-WB and STOI are computed as well, and those in which a stream's first seconds are scored.
  static let scoredInFull: Set = ["0 % loss", "3 % loss", "5 % loss", "10 % loss"]
  static let starts: Set = ["0 % loss", "5 % loss"]

  private typealias Value = (Scores) -> Double?
  private struct Means {
    var ours: Interval
    var theirs: Interval?
    var lead: Interval?
  }
  private let bench: Bench
  private let points: [QualityPoint]
  private let paths: [Path]
  private let networks: [String]

  init(_ bench: Bench, _ points: [QualityPoint], paths: [Path], networks: [String]) {
    (self.bench, self.points, self.paths, self.networks) = (bench, points, paths, networks)
  }

  func add() {
    for path in paths {
      for network in networks {
        row(path.score, path, network, unit: "MOS", goal: path.leastScore(network)) { $0.perceived }
        drop(path, network)
      }
    }
    for path in paths {
      for network in networks where Self.scoredInFull.contains(network) {
        if path.band == .narrowband { row("PESQ-WB", path, network, unit: "MOS") { $0.wide } }
        row("STOI", path, network, unit: "of 1") { $0.intelligible }
      }
    }
    for path in paths {
      for network in networks where Self.starts.contains(network) {
        row("\(path.score) of the first seconds", path, network, isStart: true, unit: "MOS") { $0.perceived }
      }
    }
    picture()
  }

  private func row(
    _ what: String, _ path: Path, _ network: String, isStart: Bool = false, unit: String, goal: BenchGoal? = nil,
    _ value: @escaping Value
  ) {
    guard let means = means(path, network, isStart: isStart, value) else { return }
    // One speaker has no interval.
    let isAlone = Set(points.map(\.passage.speaker)).count < 2
    bench.add(
      BenchRow(
        "\(what): \(path.title), \(network)", unit: unit,
        ours: BenchFigure("ours", means.ours.mean, interval: isAlone ? nil : means.ours),
        peers: means.theirs.map { [BenchFigure("NetEQ", $0.mean, interval: isAlone ? nil : $0)] } ?? [], goal: goal,
        lead: isAlone ? nil : means.lead,
        note: note(path, network, isStart)))
  }

  /// The loss of each voice's score by the network, from its score on the clean line.
  private func drop(_ path: Path, _ network: String) {
    guard let goal = path.mostDrop(network) else { return }
    let drops = ["ours", "NetEQ"].map { who in
      let clean = Dictionary(
        all(path, "0 % loss", isStart: false, who).map { ($0.passage.name, $0.scores?.perceived ?? 0) }, uniquingKeysWith: { $1 })
      return interval(all(path, network, isStart: false, who)) { point in
        clean[point.passage.name].flatMap { clean in point.scores.map { clean - $0.perceived } }
      }
    }
    guard let ours = drops[0] else { return }
    bench.add(
      BenchRow(
        "drop: \(path.title), \(network)", unit: "MOS", ours: BenchFigure("ours", ours.mean, interval: ours),
        peers: drops[1].map { [BenchFigure("NetEQ", $0.mean, interval: $0)] } ?? [], goal: goal))
  }

  private func note(_ path: Path, _ network: String, _ isStart: Bool) -> String {
    let own = all(path, network, isStart: isStart, "ours")
    let (voices, seeds) = (Set(own.map(\.passage.name)).count, Set(own.map(\.seed)).count)
    return "\(voices) \(voices == 1 ? "voice" : "voices") × \(seeds) \(seeds == 1 ? "seed" : "seeds")"
  }

  private func all(_ path: Path, _ network: String, isStart: Bool, _ who: String) -> [QualityPoint] {
    points.filter { $0.path == path && $0.network == network && $0.isStart == isStart && $0.who == who }
  }

  private func interval(_ points: [QualityPoint], _ value: (QualityPoint) -> Double?) -> Interval? {
    var groups: [String: [Double]] = [:]
    for point in points {
      if let value = value(point) { groups[point.passage.speaker, default: []].append(value) }
    }
    // Sorted by name: the bootstrap draws by number.
    return Interval(groups: groups.sorted { $0.key < $1.key }.map(\.value))
  }

  private func means(_ path: Path, _ network: String, isStart: Bool = false, _ value: Value) -> Means? {
    let (own, theirs) = (all(path, network, isStart: isStart, "ours"), all(path, network, isStart: isStart, "NetEQ"))
    guard let ours = interval(own, { $0.scores.flatMap(value) }) else { return nil }
    var peer: [String: Double] = [:]
    for point in theirs { peer["\(point.passage.name) \(point.seed)"] = point.scores.flatMap(value) }
    let lead = interval(own) { point in
      guard let mine = point.scores.flatMap(value), let other = peer["\(point.passage.name) \(point.seed)"] else { return nil }
      return mine - other
    }
    return Means(ours: ours, theirs: interval(theirs) { $0.scores.flatMap(value) }, lead: lead)
  }

  /// The score over the share of singly lost packets, a panel for each path.
  private func picture() {
    let losses = networks.compactMap { name in
      name.hasSuffix("% loss") ? Double(name.prefix { $0 != " " }).map { (name: name, percent: $0) } : nil
    }
    guard losses.count > 1 else { return }
    var page = PlotPage(
      "PESQ by loss, the same packets through both", legend: "with 95 % intervals; above the panels our lead",
      x: .init("packets lost one by one, %", range: 0...20),
      y: .init("PESQ-NB, of G.722 PESQ-WB, MOS", range: 1.5...4.5))
    for path in paths {
      let all = losses.compactMap { loss in means(path, loss.name) { $0.perceived }.map { (loss: loss.percent, means: $0) } }
      func curve(_ interval: (Means) -> Interval?) -> [PlotPage.Spot] {
        all.compactMap { point in
          interval(point.means).map { PlotPage.Spot(point.loss, $0.mean, low: $0.low, high: $0.high) }
        }
      }
      let leads = [0.0, 5].compactMap { percent -> String? in
        guard let lead = all.first(where: { $0.loss == percent })?.means.lead else { return nil }
        return "\(lead.text) at \(fixed(percent, 0)) %"
      }
      page.add(
        path.title, finding: leads.joined(separator: ", "),
        curves: [.init("ours", curve(\.ours), marks: true), .init("NetEQ", curve(\.theirs), marks: true)])
    }
    bench.save(
      page.svg, as: "quality-loss",
      caption: "PESQ by loss with 95 % intervals over the voices; the lead over NetEQ is taken pair by pair. Higher is better.")
  }
}
