import AudioCodecs
import BenchKit
import Glibc
import JitterBuffer
import JitterPeers

/// Delay against missing audio: ours at several settings, the peers at theirs, and fixed buffers chosen with hindsight.
enum TradeOff {
  static func add(to bench: Bench, policy: DelayPolicy) throws {
    let seconds = bench.isSmall ? 20 : 180
    try trade(bench, .tradeOff(seconds: seconds), policy)
    let kinds: [NetworkTrace.Kind] = bench.isSmall ? [.quiet, .stall] : NetworkTrace.Kind.allCases
    for kind in kinds where bench.wants(kind.rawValue) { try kindRows(bench, kind, seeds: bench.isSmall ? 1 : 3, policy) }
    if !bench.isSmall {
      for trace in Trace.recorded() where bench.wants(trace.name) {
        bench.progress("trade-off: \(trace.name)")
        let replay = try Replay(trace, encoding: .pcmu)
        let results = try replay.all(policy: policy, peers: true)
        rows(bench, trace.name, results, ratio: trace.name.contains("steps") ? .atMost(1.1) : .atMost(0.9, of: .peer))
        try picture(bench, replay, results)
      }
    }
    try repair(bench, policy: policy, seconds: seconds)
  }

  /// The row of the goals: late packets and mean delay on one network with everything in it.
  private static func trade(_ bench: Bench, _ trace: Trace, _ policy: DelayPolicy) throws {
    guard bench.wants(trace.name) else { return }
    bench.progress("trade-off: \(trace.name)")
    let replay = try Replay(trace, encoding: .pcmu)
    let results = try replay.all(policy: policy, peers: true)
    rows(bench, trace.name, results, late: .atMost(0.2), mean: .atMost(105))
    guard !bench.isSmall else { return }
    try picture(bench, replay, results)
  }

  /// Means over a kind's networks, of ratios the geometric mean.
  private static func kindRows(_ bench: Bench, _ kind: NetworkTrace.Kind, seeds: Int, _ policy: DelayPolicy) throws {
    bench.progress("trade-off: networks of the kind \(kind.rawValue)")
    var all: [[ReplayResult]] = []
    for seed in 1...seeds {
      let made = NetworkTrace.made(kind, seed: UInt64(seed))
      let replay = try Replay(Trace(name: kind.rawValue, packets: made.packets), encoding: .pcmu)
      let results = try replay.all(policy: policy, peers: true)
      all.append(results)
      if seed == 1, !bench.isSmall { try picture(bench, replay, results) }
    }
    let ratio: BenchGoal? =
      switch kind {
      case .quiet: .atMost(1.3)
      case .steps: .atMost(1.1)
      case .stall: .atMost(1.5)
      case .skew: nil
      default: .atMost(0.9, of: .peer)
      }
    rows(bench, kind.rawValue, all, ratio: ratio)
  }

  private static func rows(
    _ bench: Bench, _ name: String, _ results: [ReplayResult], late: BenchGoal? = nil, mean: BenchGoal? = nil,
    ratio: BenchGoal? = nil
  ) {
    rows(bench, name, [results], late: late, mean: mean, ratio: ratio)
  }

  private static func rows(
    _ bench: Bench, _ name: String, _ all: [[ReplayResult]], late: BenchGoal? = nil, mean: BenchGoal? = nil,
    ratio: BenchGoal? = nil
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
    row("late", unit: "%", goal: late) { 100 * Double($0.late) / Double(max(1, $0.packets)) }
    row("concealed", unit: "%") { 100 * $0.concealed }
    row("mean delay", unit: "ms", goal: mean) { $0.meanDelay }
    row("above fastest, by the best fixed delay's", unit: "ratio", goal: ratio, geometric: true) { $0.ratioToFixed }
  }

  /// Audio made up on 3 % loss when packets carry the copy of the one before.
  private static func repair(_ bench: Bench, policy: DelayPolicy, seconds: Int) throws {
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

  private static func picture(_ bench: Bench, _ replay: Replay, _ results: [ReplayResult]) throws {
    let name = replay.trace.name
    var curves: [(String, [ReplayResult])] = []
    curves.append(("ours, other loss costs", try JitterOptions.policies.map { replay.run(try OurReceiver(.pcmu, policy: $0)) }))
    curves.append(
      (
        "NetEQ, minimum delays",
        [0, 40, 80, 120].compactMap { NetEQReceiver(.pcmu, minimumDelayMilliseconds: $0) }.map(replay.run)
      ))
    curves.append(
      (
        "speexdsp, margins",
        [0, 20, 40, 80].compactMap { margin in
          guard let buffer = SpeexJitterBuffer(marginMilliseconds: margin) else { return nil }
          let receiver = PacketReceiver("speexdsp", buffer)
          return withoutStandardError { replay.run(receiver) }
        }
      ))
    curves.append(
      (
        "libre, minimum packets",
        ([1, 2, 3, 5, 8] as [UInt32]).compactMap { minimum in
          guard let buffer = LibreJitterBuffer(minimum: minimum) else { return nil }
          return replay.run(PacketReceiver("libre", buffer))
        }
      ))
    let words = name.lowercased().split { !$0.isASCII || !($0.isLetter || $0.isNumber) }
    let label = "audio missing beyond what was lost, %"
    func missing(_ result: ReplayResult) -> Double {
      max(0, 100 * result.concealed - 100 * Double(result.lost) / Double(max(1, result.packets)))
    }
    var plot = Plot(
      "Network: \(name)", x: .init("mean delay from send to play-out, ms"),
      y: .init(label, scale: .logarithmic, range: 0.01...20))
    if let ours = results.first { plot.add("ours", [(ours.meanDelay, missing(ours))]) }
    for (curve, points) in curves where !points.isEmpty {
      plot.add(curve, points.map { ($0.meanDelay, missing($0)) }.sorted { $0.0 < $1.0 })
    }
    plot.add("fixed, with hindsight", replay.fixedCurve())
    bench.save(
      plot.svg, as: "jitter-" + words.joined(separator: "-"),
      caption: "\(name): \(label), against mean delay. On the lower edge: 0.01 % or less. Left and low is better.")
  }
}
