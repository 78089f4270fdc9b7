import BenchKit
import Glibc
import JitterPeers
import TrunklineAudioCodecs
import TrunklineJitterBuffer

/// Delay against missing audio: our receiver at several settings, the peers at theirs, and fixed buffers chosen with hindsight.
struct TradeOff {
  private static let mostMissing = 50.0
  private let bench: Bench
  private let policy: DelayPolicy
  private var page = PlotPage(
    "Audio missing beyond what was lost, against delay, on 14 networks: left and low is better",
    legend: "large dots: defaults; lines: other settings; titles: ours beside NetEQ",
    x: .init("mean delay, ms", scale: .logarithmic, range: 20...2000),
    y: .init("missing, %", scale: .logarithmic, range: 0.01...mostMissing))

  static func add(to bench: Bench, policy: DelayPolicy) throws {
    var tradeOff = TradeOff(bench: bench, policy: policy)
    try tradeOff.add()
  }

  private init(bench: Bench, policy: DelayPolicy) { (self.bench, self.policy) = (bench, policy) }

  private mutating func add() throws {
    let seconds = bench.isSmall ? 20 : 180
    try trade(.tradeOff(seconds: seconds))
    let kinds: [NetworkTrace.Kind] = bench.isSmall ? [.quiet, .stall] : NetworkTrace.Kind.allCases
    for kind in kinds where bench.wants(kind.rawValue) { try kindRows(kind, seeds: bench.isSmall ? 1 : 3) }
    if !bench.isSmall {
      for trace in Trace.recorded() where bench.wants(trace.name) {
        bench.progress("trade-off: \(trace.name)")
        let replay = try Replay(trace, encoding: .pcmu)
        let results = try replay.all(policy: policy, peers: true)
        rows(trace.name, [results])
        try picture(replay, results)
      }
      bench.save(
        page.svg, as: "jitter-networks",
        caption:
          "Audio missing beyond what was lost against mean delay from send to play-out, one scale for all; on an edge: there or "
          + "beyond. Grey: constant delays, chosen with hindsight.")
    }
    try repair(seconds: seconds)
  }

  /// The row for the goals: late packets and mean delay on one network that has all impairments.
  private mutating func trade(_ trace: Trace) throws {
    guard bench.wants(trace.name) else { return }
    bench.progress("trade-off: \(trace.name)")
    let replay = try Replay(trace, encoding: .pcmu)
    let results = try replay.all(policy: policy, peers: true)
    rows(trace.name, [results], late: .atMost(0.2), mean: .atMost(105))
    if !bench.isSmall { try picture(replay, results) }
  }

  /// Means over the networks of a kind; of ratios, the geometric mean.
  private mutating func kindRows(_ kind: NetworkTrace.Kind, seeds: Int) throws {
    bench.progress("trade-off: networks of the kind \(kind.rawValue)")
    var all: [[ReplayResult]] = []
    for seed in 1...seeds {
      let made = NetworkTrace.made(kind, seed: UInt64(seed))
      let replay = try Replay(Trace(name: kind.rawValue, packets: made.packets), encoding: .pcmu)
      let results = try replay.all(policy: policy, peers: true)
      all.append(results)
      if seed == 1, !bench.isSmall { try picture(replay, results) }
    }
    rows(kind.rawValue, all)
  }

  private func rows(
    _ name: String, _ all: [[ReplayResult]], late: BenchGoal? = nil, mean: BenchGoal? = nil
  ) {
    let count = Double(max(1, all.count))
    func row(_ what: String, unit: String, goal: BenchGoal? = nil, geometric: Bool = false, _ value: (ReplayResult) -> Double) {
      var figures = all[0].indices.map { index in
        var hash = ResultHash()
        var sum = 0.0
        for results in all {
          hash.add(results[index].hash)
          sum += geometric ? log(max(0.001, value(results[index]))) : value(results[index])
        }
        return BenchFigure(all[0][index].name, geometric ? exp(sum / count) : sum / count, hash: hash.value)
      }
      let ours = figures.removeFirst()
      bench.add(BenchRow("\(name): \(what)", unit: unit, ours: ours, peers: figures, goal: goal))
    }
    // A difference of 0.3 is inaudible.
    row("rating R by G.107", unit: "R", goal: .atLeast(0.9967, of: .peer)) { $0.rFactor }
    row("late", unit: "%", goal: late) { 100 * Double($0.late) / Double(max(1, $0.packets)) }
    row("concealed", unit: "%") { 100 * $0.concealed }
    row("mean delay", unit: "ms", goal: mean) { $0.meanDelay }
    row("above fastest, by the best fixed delay's", unit: "ratio", geometric: true) { $0.ratioToFixed }
  }

  /// Concealed audio at 3 % loss if packets carry a copy of the one before.
  private func repair(seconds: Int) throws {
    guard bench.wants("Opus FEC") else { return }
    let trace = Trace.made("3 % loss", seconds: seconds, Impairments(loss: 0.03, jitter: 5), seed: 9)
    let replay = try Replay(trace, encoding: .opus)
    let results = try replay.all(policy: policy, peers: true)
    var figures = results.map { BenchFigure($0.name, 100 * $0.concealed) }
    let ours = figures.removeFirst()
    bench.add(
      BenchRow(
        "3 % loss, Opus FEC: concealed", unit: "%", ours: ours, peers: figures,
        limit: BenchFigure("lost without a copy", 100 * replay.unrepairable), goal: .atMost(0.5),
        note: "by the receivers' counters"))
    var delays = results.map { BenchFigure($0.name, $0.meanDelay) }
    let delay = delays.removeFirst()
    bench.add(BenchRow("3 % loss, Opus FEC: mean delay", unit: "ms", ours: delay, peers: delays))
  }

  private mutating func picture(_ replay: Replay, _ results: [ReplayResult]) throws {
    var settings: [(String, [ReplayResult])] = []
    settings.append(("ours", try JitterOptions.policies.map { try replay.ours($0) }))
    settings.append(
      ("NetEQ", [0, 40, 80, 120].compactMap { NetEQReceiver(.pcmu, minimumDelayMilliseconds: $0) }.map(replay.run)))
    settings.append(
      (
        "speexdsp",
        [0, 20, 40, 80].compactMap { margin in
          guard let buffer = SpeexJitterBuffer(marginMilliseconds: margin) else { return nil }
          let receiver = PacketReceiver("speexdsp", buffer, frameMilliseconds: 20)
          return withoutStandardError { replay.run(receiver) }
        }
      ))
    settings.append(
      (
        "libre",
        ([1, 2, 3, 5, 8] as [UInt32]).compactMap { minimum in
          guard let buffer = LibreJitterBuffer(minimum: minimum) else { return nil }
          return replay.run(PacketReceiver("libre", buffer, frameMilliseconds: 20))
        }
      ))
    var curves = results.map { PlotPage.Curve($0.name, [Self.spot($0)], marks: true) }
    for (name, points) in settings where !points.isEmpty {
      curves.append(.init(name, points.sorted { $0.meanDelay < $1.meanDelay }.map(Self.spot)))
    }
    let fixed = replay.fixedCurve().filter { $0.1 <= Self.mostMissing }.map { PlotPage.Spot($0.0, $0.1) }
    curves.append(.init("best fixed delay", fixed, isLimit: true))
    let name = replay.trace.name
    page.add(name.hasSuffix(".csv") ? String(name.dropLast(4)) : name, finding: Self.finding(results), curves: curves)
  }

  private static func spot(_ result: ReplayResult) -> PlotPage.Spot { .init(result.meanDelay, missing(result)) }

  /// Concealed audio in percent, less the share of the lost packets.
  private static func missing(_ result: ReplayResult) -> Double {
    max(0, 100 * result.concealed - 100 * Double(result.lost) / Double(max(1, result.packets)))
  }

  /// Our receiver compared with NetEQ, both with their defaults.
  private static func finding(_ results: [ReplayResult]) -> String {
    guard let ours = results.first, let theirs = results.first(where: { $0.name == "NetEQ" }) else { return "" }
    let (delay, missing) = (ours.meanDelay - theirs.meanDelay, Self.missing(ours) - Self.missing(theirs))
    let sooner =
      abs(delay) < 2 ? "as soon" : "\(fixed(abs(delay), 0)) ms \(delay < 0 ? "sooner" : "later")"
    let made = abs(missing) < 0.05 ? "as much missing" : "\(fixed(abs(missing), 1)) % \(missing < 0 ? "less" : "more") missing"
    return sooner + ", " + made
  }
}
